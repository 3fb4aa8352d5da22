"""Steps of automated training in an Azure ML pipeline file. They are carried to Azure ML, not run anywhere else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.base.spelling import snake
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import keys, listed, mapping, named, nullable, same, text, truth, whole, word
from jobs.azureml.read import automl_words as words
from jobs.azureml.read import command, data, runtime, sweep
from jobs.azureml.read.data import MODES
from jobs.azureml.read.passthrough import OrBound
from jobs.model.passthrough import PassthroughStep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Readers = Mapping[str, Callable[[Cursor], Any]]

_TASK = word(same(*words.TASKS), snake)
_LIMITS: Readers = {
    **dict.fromkeys(
        ("max_concurrent_trials", "max_cores_per_trial", "max_nodes", "max_trials", "timeout_minutes",
         "trial_timeout_minutes"),
        OrBound(whole),
    ),
    "enable_early_termination": OrBound(truth),
    "exit_score": OrBound(sweep.decimal),
}  # fmt: skip
_OF_IMAGES = ("max_concurrent_trials", "max_trials", "timeout_minutes")
_OF_TEXTS = (*_OF_IMAGES, "max_nodes", "trial_timeout_minutes")
_DATA: Readers = {
    "type": word(same("mltable")),
    "path": text,
    "mode": word(same(*MODES, "eval_mount", "eval_download")),
}
_SCALES = ("uniform", "loguniform", "quniform", "qloguniform", "normal", "lognormal", "qnormal", "qlognormal")
_WHOLE_STEPS = tuple(name for name in _SCALES if name.startswith("q"))
_SPLIT = re.compile(r"[ ,()]")


def _block(table: Readers, what: str) -> Callable[[Cursor], Any]:
    def read(cursor: Cursor) -> Any:
        return dict(keys(cursor, table, what=what)) if isinstance(cursor.value, dict) else cursor.wrong("a mapping")

    return read


def _data(cursor: Cursor) -> Any:
    """A table: bound, named, or described."""
    return cursor.value if isinstance(cursor.value, str) else _block(_DATA, "a table of data")(cursor)


def _list(read: Callable[[Cursor], Any]) -> Callable[[Cursor], Any]:
    def told(cursor: Cursor) -> Any:
        found = listed(read)(cursor)
        return Bad if found is Bad else list(found)

    return told


def _parameter(cursor: Cursor) -> Any:
    value = cursor.value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return value if value is None or isinstance(value, str) else cursor.wrong("text or a number")


def _transformers(cursor: Cursor) -> Any:
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping")
    table: Readers = {"fields": _list(text), "parameters": named(_parameter)}
    told = {}
    for key in cursor.value:
        name = words.TRANSFORMERS(Cursor(key, (*cursor.path, key), cursor.findings, cursor.base))
        if name is not Bad:
            told[name] = _list(_block(table, "a transformer of columns"))(cursor.at(key))
    return told


def _search_spaces(cursor: Cursor, kinds: Mapping[str, str], *, nlp: bool) -> Any:
    def one(inner: Cursor) -> Any:
        table = {key: (lambda each, key=key: _searched(each, key, kinds[key], nlp=nlp)) for key in kinds}
        return _block(table, "a search space")(inner)

    return _list(one)(cursor)


def _searched(cursor: Cursor, key: str, kind: str, *, nlp: bool) -> Any:
    """A fixed value of a model's setting, or the values that are tried."""
    if not isinstance(cursor.value, dict):
        return _fixed(cursor, key, kind, nlp=nlp)
    if str(cursor.value.get("type")).lower() != "choice":
        allowed = {"count": ("randint", *(() if nlp else _WHOLE_STEPS)), "rate": ("randint", *_SCALES)}.get(kind, ())
        found = sweep.distribution(cursor)
        if found is not Bad and found.type not in allowed:
            return cursor.wrong(" or ".join(f"`{name}`" for name in ("choice", *allowed)))
        return Bad if found is Bad else found.model_dump()
    table: Readers = {"type": text, "values": _list(lambda each: _fixed(each, key, kind, nlp=nlp))}
    told = _block(table, "a choice")(cursor)
    if told is not Bad and kind == "rate" and all(type(each) is int for each in cursor.value.get("values") or ()):
        told["values"] = [int(each) for each in told["values"]]
    return told if told is Bad else {**told, "type": "choice"}


def _fixed(cursor: Cursor, key: str, kind: str, *, nlp: bool) -> Any:
    value = cursor.value
    if kind == "count":
        return value if type(value) is int else cursor.wrong("a whole number")
    if kind == "word":
        return word(same(*words.words_of(key, nlp=nlp)), snake)(cursor)
    told = {"flag": truth, "rate": sweep.decimal, "text": text}[kind](cursor)
    if kind == "text" and not nlp and told is not Bad and _SPLIT.search(told):
        return cursor.wrong("text without blanks, commas and brackets, which azure-ai-ml cannot send here")
    return told


def _image_sweep(cursor: Cursor) -> Any:
    table: Readers = {"sampling_algorithm": sweep.sampling, "early_termination": sweep.early_termination}
    told = _block(table, "the sweep of a model")(cursor)
    if told is Bad:
        return Bad
    if "sampling_algorithm" not in told:
        if "sampling_algorithm" not in cursor.value:
            cursor.bad("key-missing", "There is no `sampling_algorithm`", "A sweep has its `sampling_algorithm`")
        return Bad
    algorithm = told["sampling_algorithm"]
    policy = told.get("early_termination")
    if not isinstance(algorithm, str):
        told["sampling_algorithm"] = algorithm.model_dump(exclude_none=True)
    return told if policy is None else {**told, "early_termination": policy.model_dump(exclude_unset=True)}


def _no_sweep(cursor: Cursor) -> Any:
    rule, remedy = "azure-ai-ml cannot send it of a text task in a pipeline", "Remove it; `search_space` stays."
    return cursor.bad("key-unsupported", "`sweep` stands here", rule, remedy)


def _resources(cursor: Cursor) -> Any:
    told = dict(keys(cursor, runtime.RESOURCES, what="the resources"))
    return {key: list(value) if isinstance(value, tuple) else value for key, value in told.items()}


def _queue(cursor: Cursor) -> Any:
    told = runtime.queue(cursor)
    return told if told is Bad else told.model_dump(exclude_none=True)


def _services(cursor: Cursor) -> Any:
    told = runtime.services(cursor)
    return told if told is Bad else {name: {**cursor.value[name], "type": each.type} for name, each in told.items()}


_TABLE: Readers = {
    "limits": _block(_LIMITS, "the limits"),
    "featurization": _block(
        {
            "dataset_language": OrBound(text),
            "mode": words.MODE,
            "blocked_transformers": _list(words.ENCODER),
            "column_name_and_types": data.tags,
            "transformer_params": _transformers,
            "enable_dnn_featurization": OrBound(truth),
        },
        "the featurization",
    ),
    "cv_split_column_names": _list(text),
    "n_cross_validations": words.VALIDATIONS,
    **dict.fromkeys(("validation_data_size", "test_data_size"), OrBound(sweep.decimal)),
    "weight_column_name": OrBound(text),
    "test_data": _data,
}
_ENSEMBLE: Readers = {
    "stack_meta_learner_kwargs": mapping,
    "stack_meta_learner_train_percentage": OrBound(sweep.decimal),
    "stack_meta_learner_type": words.LEARNER,
}


def _ensemble(cursor: Cursor) -> Any:
    told = _block(_ENSEMBLE, "the settings of a stack ensemble")(cursor)
    key = "stack_meta_learner_type"
    if told is not Bad and key not in cursor.value:
        return cursor.bad("key-missing", f"There is no `{key}`", "A stack ensemble says what it learns with")
    return told


def _training(task: str) -> Callable[[Cursor], Any]:
    models = _list(OrBound(word(same(*words.MODELS[task]), snake)))
    flags = ("enable_dnn_training", "enable_model_explainability", "enable_onnx_compatible_models",
             "enable_stack_ensemble", "enable_vote_ensemble")  # fmt: skip
    return _block(
        {
            **dict.fromkeys(flags, OrBound(truth)),
            "ensemble_model_download_timeout_minutes": OrBound(whole),
            "stack_ensemble_settings": _ensemble,
            "training_mode": words.TRAINING_MODE,
            **dict.fromkeys(("allowed_training_algorithms", "blocked_training_algorithms"), models),
        },
        "the training",
    )


def own_keys(task: str) -> Readers:
    """Keys of a task that the others do not have."""
    if task in words.MODELS:
        more: Readers = {"training": _training(task)}
        if task == "classification":
            more = {**more, "positive_label": OrBound(text)}
        if task == "forecasting":
            more = {**more, "forecasting": _block(words.FORECASTING, "the forecasting settings")}
        return {**_TABLE, **more}
    nlp = task.startswith("text")
    kinds = words.NLP if nlp else words.CLASSES if task.startswith("image_class") else words.DETECTION
    fixed = words.settings(kinds, nlp=nlp)
    told: Readers = {
        "limits": _block({key: _LIMITS[key] for key in (_OF_TEXTS if nlp else _OF_IMAGES)}, "the limits"),
        "search_space": lambda cursor: _search_spaces(cursor, kinds, nlp=nlp),
    }
    if nlp:
        featurization = _block({"dataset_language": OrBound(text)}, "the featurization")
        return {**told, "training_parameters": _block(fixed, "the training parameters"), "sweep": _no_sweep,
                "featurization": featurization}  # fmt: skip
    more = dict.fromkeys(("advanced_settings", "checkpoint_run_id"), OrBound(text))
    fixed = {**fixed, **more, "checkpoint_frequency": OrBound(whole)}
    if kinds is words.DETECTION:
        fixed |= dict.fromkeys(("log_training_metrics", "log_validation_loss"), word(same("enable", "disable")))
    return {
        **told,
        "training_parameters": _block(fixed, "the training parameters"),
        "sweep": _image_sweep,
        "test_data": _data,
        "validation_data_size": OrBound(sweep.decimal),
    }


def read_step(cursor: Cursor, node: Readers) -> Any:
    """Read a step; `Bad` when it is too broken to be one.

    Args:
        cursor: The step.
        node: Readers of the keys that every step has.
    """
    for key in ("task", "target_column_name", "training_data"):
        if key not in cursor.value and (key, cursor.value.get("task")) != ("target_column_name", "text_ner"):
            cursor.bad("key-missing", f"The step has no `{key}`", f"A step of type `automl` has its `{key}`")
    task: Any = _TASK(cursor.at("task")) if "task" in cursor.value else Bad
    if task is Bad:
        return Bad
    table: Readers = {
        **{key: node[key] for key in ("outputs", "identity", "tags", "properties", "compute", "display_name")},
        **dict.fromkeys(("type", "task", "$schema"), nullable(text)),
        **dict.fromkeys(("name", "description", "experiment_name", "environment_id"), OrBound(text)),
        "target_column_name": OrBound(text),
        "environment_variables": named(text),
        "resources": _resources,
        "queue_settings": _queue,
        "services": _services,
        "log_verbosity": words.VERBOSITY,
        "primary_metric": OrBound(word(same(*words.TASKS[task]), snake)),
        **dict.fromkeys(("training_data", "validation_data"), _data),
        **own_keys(task),
    }
    told = dict(keys(cursor, table, ignored=command.READ_ONLY, what=f"an automl step for {task}"))
    for key in ("type", "name", "$schema"):
        told.pop(key, None)
    known = {name: told.pop(name) for name in PassthroughStep.model_fields if name in told}
    return PassthroughStep(kind="automl", component=None, spec={**told, "task": task}, **known)
