"""Steps of automated training in an Azure ML pipeline file, passed through; Azure ML judges their blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.spelling import snake
from jobs.azureml.containers import keys, listed
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import by_text, mapping, same, word
from jobs.azureml.read.command import READ_ONLY
from jobs.model.passthrough import PassthroughStep
from jobs.model.values import EXPRESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


def read_step(cursor: Cursor, node: Mapping[str, Callable[[Cursor], Any]]) -> Any:
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
    read = dict(keys(Cursor(known, cursor.path, cursor.findings, cursor.base), table, what="an automl step"))
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
