"""Steps of an Azure ML pipeline file that are passed through: parallel, spark, automl, data_transfer and pipelines.

Nothing here is enriched and no rule judges it, so the keys of a kind keep the values of the file; Azure ML judges them.
Read are the keys that every step has, code and environments, and what the wire form depends on. Unknown keys are passed
through with a warning, as azure-ai-ml does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from amlstack.base.findings import Level
from amlstack.base.text import snake
from jobs.azureml.fields import (
    Bad,
    Cursor,
    Nullable,
    Reader,
    Readers,
    anything,
    by_text,
    has_keys,
    keys,
    listed,
    mapping,
    same,
    text,
    truth,
    unsent,
    version,
    warn_unknown,
    word,
)
from jobs.azureml.read import command, data
from jobs.azureml.read.command import READ_ONLY
from jobs.azureml.read.component import reference
from jobs.model.pipeline import PassthroughComponent, PassthroughStep
from jobs.values import EXPRESSION, Code, Output

SKIPPED = (*READ_ONLY, "id", "latest_version")
"""Keys that Azure ML writes."""


def split_unknown(
    cursor: Cursor, table: Readers, what: str, *, sent: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The known keys read, and the others as they are.

    Args:
        cursor: The block.
        table: Key to its reader.
        what: What the block is, for messages.
        sent: Whether azure-ai-ml sends unknown keys; where not, they are errors.
    """
    given = by_text(cursor)
    extra = {key: value for key, value in given.items() if key not in table and key not in SKIPPED}
    rule = "It is sent as it is, as azure-ai-ml does" if sent else "Every key is one that Azure ML knows"
    warn_unknown(cursor, extra, table, what, rule, level=Level.WARNING if sent else Level.ERROR)
    rest = {key: value for key, value in given.items() if key not in extra}
    inner = cursor.holding(rest)
    return dict(keys(inner, table, ignored=SKIPPED, what=what)), extra


HERE = Code(path=".")
"""The code of a spark step that names none, for azure-ai-ml the file's own folder."""
CODE, ENVIRONMENT = command.KEYS["code"], command.KEYS["environment"]
MOVES = {"copy_data": "", "import_data": "source", "export_data": "sink"}
"""Task of a data_transfer step to its key that names a place outside of Azure ML."""


def block(*required: str) -> Reader:
    """Reads a mapping with any values that has certain keys."""

    def read(cursor: Cursor) -> Any:
        value, name = mapping(cursor), cursor.path[-1]
        whole = value is Bad or has_keys(cursor, value, required, f"`{name}` has no `{{}}`", f"`{name}` has a `{{}}`")
        return value if whole else Bad

    return read


def _task(cursor: Cursor) -> Any:
    """The task of a parallel step, with its code and environment read."""
    value = block("type", "environment")(cursor)
    if value is Bad:
        return Bad
    read = {
        key: reader(cursor.at(key)) for key, reader in (("code", CODE), ("environment", ENVIRONMENT)) if key in value
    }
    return Bad if Bad in read.values() else {**value, **read}


def _entry(cursor: Cursor) -> Any:
    value = mapping(cursor)
    if value is Bad or value.keys() in ({"file"}, {"class_name"}):
        return value
    return cursor.wrong("a mapping with `file`, or with `class_name`")


def _pool(cursor: Cursor) -> Any:
    return dict(keys(cursor, {"instance_type": text, "runtime_version": version}, what="the resources of a spark step"))


def _place(cursor: Cursor) -> Any:
    """A place outside of Azure ML that data comes from or goes to."""
    value = block("type", "connection")(cursor)
    kind = Bad if value is Bad else word(same("database", "file_system"))(cursor.at("type"))
    return Bad if kind is Bad else {**value, "type": kind}


SPECS: Mapping[str, Readers] = {
    "parallel": {
        **dict.fromkeys(("partition_keys", "input_data", "logging_level", "mini_batch_size", "error_threshold",
                         "max_concurrency_per_instance", "mini_batch_error_threshold"), anything),
        **dict.fromkeys(("retry_settings", "resources"), mapping),
        "task": _task,
    },
    "spark": {
        **dict.fromkeys(("py_files", "jars", "files", "archives", "args"), anything),
        "code": CODE, "entry": _entry, "conf": mapping, "environment": Nullable(ENVIRONMENT),
    },
    "pipeline": {},
    "data_transfer": {
        "task": word(same(*MOVES)), "data_copy_mode": word(same("merge_with_overwrite", "fail_if_conflict")),
    },
}  # fmt: skip
"""Keys of each kind that its component has too."""
STEPS: Mapping[str, Readers] = {
    "parallel": {"environment_variables": anything, "environment": anything},
    "spark": {"resources": _pool},
    "pipeline": {},
    "data_transfer": {"source": _place, "sink": _place},
}
COMPONENT: Readers = {
    **{key: command.KEYS[key] for key in ("display_name", "description", "tags")},
    "properties": mapping,
    "is_deterministic": truth,
    "inputs": data.input_ports,
    "outputs": data.output_ports,
    "$schema": text,
    **dict.fromkeys(("name", "version"), unsent),
}
REQUIRED = {"parallel": "task", "spark": "entry", "data_transfer": "task"}


TASKS = ("classification", "regression", "forecasting", "image_classification",
                "image_classification_multilabel", "image_object_detection", "image_instance_segmentation",
                "text_classification", "text_classification_multilabel", "text_ner")  # fmt: skip
_WORDS = {"primary_metric", "log_verbosity", "mode", "training_mode", "allowed_training_algorithms", "use_stl",
          "blocked_training_algorithms", "blocked_transformers", "stack_meta_learner_type", "optimizer", "model_size",
          "learning_rate_scheduler", "validation_metric_type", "sampling_algorithm", "feature_lags",
          "short_series_handling_config", "target_aggregate_function", "job_tier"}  # fmt: skip
"""Keys of an automl step whose values are words, which azure-ai-ml sends in snake case."""


def _spaces(cursor: Cursor) -> Any:
    found = listed(mapping)(cursor)
    return Bad if found is Bad else list(found)


def read_automl_step(cursor: Cursor, node: Readers) -> Any:
    """Read a step; `Bad` when it is too broken to be one.

    Args:
        cursor: The step.
        node: Readers of the keys that every step has.
    """
    for key in ("task", "target_column_name", "training_data"):
        if key not in cursor.value and (key, cursor.value.get("task")) != ("target_column_name", "text_ner"):
            cursor.bad("key-missing", f"The step has no `{key}`", f"A step of type `automl` has its `{key}`")
    table = {key: node[key] for key in ("outputs", "identity", "tags", "properties", "compute", "display_name")}
    table["task"] = word(same(*TASKS), snake)
    blocks = ("limits", "training", "forecasting", "sweep", "training_parameters", "resources", "featurization")
    table |= {**dict.fromkeys(blocks, mapping), "search_space": _spaces}
    given = by_text(cursor)
    own = {key: _snaked(key, value) for key, value in given.items() if key not in (*table, *READ_ONLY, "type", "name")}
    known = {key: value for key, value in given.items() if key in table}
    read = dict(keys(cursor.holding(known), table, what="an automl step"))
    if "task" not in read:
        return Bad
    known = {name: read.pop(name) for name in PassthroughStep.model_fields if name in read}
    spec = own | {key: _snaked(key, value) for key, value in read.items()}
    return PassthroughStep(kind="automl", component=None, spec=spec, **known)


def _snaked(key: Any, value: Any) -> Any:
    """A value of an automl step with its words in snake case."""
    if isinstance(value, dict):
        return {name: _snaked(key if name == "values" else name, inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_snaked(key, inner) for inner in value]
    return snake(value) if key in _WORDS and isinstance(value, str) and not EXPRESSION.search(value) else value


class Steps(NamedTuple):
    """The readers of a pipeline's steps; handed in, as such a step may be a pipeline again.

    Attributes:
        read: Reads them.
        path_of: From a path in a pipeline to the keys in its file.
    """

    read: Reader
    path_of: Callable[[str], tuple[str, ...]]


_UNSENT = ("type", "name", "experiment_name", "description", "services", "queue_settings")
_OF_A_COMPONENT = ("is_deterministic", "code", "command", "environment", "resources")


def read_step(cursor: Cursor, kind: str, node: Readers, outputs: Reader, steps: Steps) -> Any:
    """Read a step; `Bad` when it is too broken to be one.

    Args:
        cursor: The step.
        kind: One of `KINDS`.
        node: Readers of the keys that every step has.
        outputs: Reads the outputs of a step that names no component.
        steps: Reads the steps of a pipeline that is a step.
    """
    if kind == "automl":
        return read_automl_step(cursor, node)
    inline = "component" not in cursor.value
    if inline and kind == "pipeline":
        return cursor.stated("key-missing")
    if not inline and kind == "pipeline" and not isinstance(cursor.value["component"], str):
        return cursor.at("component").wrong("a file, or `azureml:NAME:VERSION`")
    table: Readers = {
        **node,
        "type": anything,
        **SPECS[kind],
        **STEPS[kind],
        "component": partial(_reference, kind=kind, steps=steps),
    }
    if inline:
        table = {**table, "outputs": outputs, "description": text, "name": unsent, "experiment_name": unsent}
    if kind == "data_transfer":
        ignored = dict.fromkeys((*_UNSENT, *_OF_A_COMPONENT), Nullable(anything))
        table = {**table, **ignored, "description": text}
    given, extra = split_unknown(cursor, table, f"a {kind} step", sent=kind == "parallel" or not inline)
    known = {name: given.pop(name) for name in PassthroughStep.model_fields if name in given and name != "component"}
    description = given.pop("description", None)
    if kind == "data_transfer":
        return _moving(cursor, given, {**known, "description": description}, extra)
    for key in _UNSENT:
        given.pop(key, None)
    if inline:
        return _inline(cursor, kind, given, {**known, "description": description})
    component = given.pop("component", Bad)
    if kind == "spark" and isinstance(size := given.get("resources", {}).get("instance_type"), str):
        # azure-ai-ml lowers the size of a step with a component, and leaves an inline step's as it is written.
        given["resources"] = {**given["resources"], "instance_type": size.lower()}
    return (
        Bad if component is Bad else PassthroughStep(kind=kind, component=component, spec={**given, **extra}, **known)
    )


def _inline(cursor: Cursor, kind: str, given: dict[str, Any], known: dict[str, Any]) -> Any:
    """A step whose component is written in it; the keys of `STEPS` stay at the step."""
    description = known.pop("description")
    if _lacks(cursor, kind, given):
        return Bad
    if kind == "parallel":
        return _parallel(cursor, given, known)
    source = {"code": HERE, "tags": known.get("tags", {}), "description": description}
    source |= {key: value for key in ("code", "environment") if (value := given.pop(key, None)) is not None}
    step = {key: given.pop(key) for key in STEPS[kind] if key in given}
    if isinstance(given.get("conf"), dict):
        given["conf"] = scaled(given["conf"])
    component = PassthroughComponent(kind=kind, spec=given, inline=True, **source)
    return PassthroughStep(kind=kind, component=component, spec=step, **known)


def _parallel(cursor: Cursor, given: dict[str, Any], known: dict[str, Any]) -> PassthroughStep:
    """A parallel step whose component is written in it."""
    given.pop("environment", None)
    for key in ("tags", "display_name", "comment"):
        if known.pop(key, None):
            cursor.lost(key, f"A parallel step has `{key}`", "azure-ai-ml does not send it of one", "Leave it out.")
    task = dict(given.pop("task"))
    source = {key: task.pop(key) for key in ("code", "environment") if key in task}
    own = {key: value for key, value in given.items() if key != "environment_variables" and not _bound(value)}
    component = PassthroughComponent(kind="parallel", spec={**own, "task": task}, inline=True, **source)
    return PassthroughStep(kind="parallel", component=component, spec=given, **known)


def _moving(cursor: Cursor, given: dict[str, Any], known: dict[str, Any], extra: dict[str, Any]) -> Any:
    """A step that moves data: one that copies has a component in it, the others name none or a registered one."""
    description, inline = known.pop("description"), "component" not in cursor.value
    task, component = given.get("task"), given.pop("component", None if inline else Bad)
    if _lacks(cursor, "data_transfer", given) or component is Bad:
        return Bad
    places = (MOVES[str(task)],) if MOVES[str(task)] else ()
    if not has_keys(cursor, given, places, "The step has no `{}`", f"A step for {task} has its `{{}}`"):
        return Bad
    queue = given.pop("queue_settings", None)
    for key in (*_UNSENT, *_OF_A_COMPONENT):
        given.pop(key, None)
    if inline and task == "copy_data":
        known.pop("properties", None)  # azure-ai-ml sends none of such a step
        source = {"tags": known.get("tags", {}), "description": description}
        component = PassthroughComponent(kind="data_transfer", spec=dict(given), inline=True, **source)
    elif not inline and task == "import_data" and not known.get("outputs"):
        known["outputs"] = {"sink": Output(type="mltable")}  # what azure-ai-ml sends for a step without outputs
    if queue is not None:
        given["queue_settings"] = queue
    return PassthroughStep(kind="data_transfer", component=component, spec={**given, **extra}, **known)


def scaled(conf: dict[str, Any]) -> dict[str, Any]:
    """Settings of an inline spark step; with moving executors azure-ai-ml sends the least number as the first one."""

    def given(name: str, short: str) -> Any:
        return conf.get(f"spark.{name}", conf.get(short))

    moving = str(given("dynamicAllocation.enabled", "dynamic_allocation_enabled")).lower() == "true"
    least = given("dynamicAllocation.minExecutors", "dynamic_allocation_min_executors")
    if not moving or least is None or given("executor.instances", "executor_instances") is not None:
        return conf
    return {**conf, "spark.executor.instances": least}


def _bound(value: Any) -> bool:
    values = value.values() if isinstance(value, dict) else (value,)
    return any(isinstance(each, str) and each.startswith("${{parent.") for each in values)


def _lacks(cursor: Cursor, kind: str, given: Mapping[str, Any]) -> bool:
    """True where a step or component lacks its main key; one that the file leaves out is reported."""
    wanted = (REQUIRED[kind],) if kind in REQUIRED else ()
    return not has_keys(cursor, given, wanted, rule=f"What is of type `{kind}` has a `{{}}`")


def _reference(cursor: Cursor, kind: str, steps: Steps) -> Any:
    path_of = steps.path_of if kind == "pipeline" else command.path_of
    return reference(cursor, partial(read_component, kind=kind, steps=steps), path_of)


def read_component(cursor: Cursor, kind: str, steps: Steps) -> PassthroughComponent | None:
    """Read a component of a kind; None when it is too broken to be one."""
    if not isinstance(cursor.value, dict):
        cursor.bad("not-a-mapping", "This is no mapping", "A component is a mapping of keys")
        return None
    if "promptflow" in str(cursor.value.get("$schema", "")).lower():
        rule = "A prompt flow is turned into a component by azure-ai-ml, at submission; it is not read here"
        cursor.bad("component-kind", "The component is a prompt flow", rule)
        return None
    if (of := str(cursor.value.get("type", "command" if kind == "parallel" else kind)).lower()) != kind:
        cursor.bad("component-kind", f"The component is of type `{of}`", f"A {kind} step runs a {kind} component")
        return None
    table = {**COMPONENT, "type": anything, **SPECS[kind], **({"jobs": steps.read} if kind == "pipeline" else {})}
    given, extra = split_unknown(cursor, table, f"a {kind} component", sent=True)
    if _lacks(cursor, kind, given):
        return None
    for key in ("type", "name", "version"):
        given.pop(key, None)
    if kind == "spark":
        given.setdefault("code", HERE)
    known = {name: given.pop(name) for name in PassthroughComponent.model_fields if name in given}
    known = {name: value for name, value in known.items() if value is not None}
    if "$schema" in given:
        known["schema_uri"] = given.pop("$schema")
    if kind == "parallel":
        given["task"] = task = dict(given["task"])
        known |= {key: task.pop(key) for key in ("code", "environment") if key in task}
    return PassthroughComponent(kind=kind, spec={**given, **extra}, inline=True, **known)
