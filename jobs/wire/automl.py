"""Steps of automated training on the wire: the words of their file, with what azure-ai-ml adds and writes as text."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any

from jobs.wire.references import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.model.passthrough import PassthroughStep
    from jobs.wire.references import Refs

_METRICS = {
    "regression": "normalized_root_mean_squared_error",
    "forecasting": "normalized_root_mean_squared_error",
    "image_classification_multilabel": "iou",
    "image_object_detection": "mean_average_precision",
    "image_instance_segmentation": "mean_average_precision",
}
"""What a task is measured by when its file does not say; the others by accuracy."""
_POLICIES: Mapping[str, Mapping[str, Any]] = {
    "bandit": {"evaluation_interval": 0, "delay_evaluation": 0, "slack_factor": 0.0, "slack_amount": 0.0},
    "median_stopping": {"evaluation_interval": 1, "delay_evaluation": 0},
    "truncation_selection": {"evaluation_interval": 0, "delay_evaluation": 0},
}
_LISTED = ("time_series_id_column_names", "features_unknown_at_forecast_time")


def own_keys(step: PassthroughStep, outputs: Mapping[str, Any], refs: Refs) -> dict[str, Any]:
    """The node of a step of kind automl, all but its name.

    Args:
        step: The step.
        outputs: Its outputs, as nodes have them.
        refs: What its references point to.
    """
    spec, identity = dict(step.spec), step.identity
    task = str(spec["task"])
    result: dict[str, Any] = {
        "type": "automl",
        "tags": dict(step.tags),
        "properties": dict(step.properties),
        "display_name": step.display_name,
        "compute": None if step.compute is None else f"{PREFIX}{refs.compute_id(step.compute)}",
        "primary_metric": _METRICS.get(task, "accuracy"),
        **({} if task.startswith("text") else {"log_verbosity": "info"}),
        **_blocks(task),
        **spec,
        "outputs": dict(outputs),
    }
    if identity is not None:
        kind = "managed_identity" if identity.type == "managed" else identity.type
        result["identity"] = {**identity.model_dump(exclude_none=True), "type": kind}
    for key in ("training_data", "validation_data", "test_data"):
        if isinstance(result.get(key), dict):
            result[key] = _data(result[key], refs)
    if "resources" in result:
        result["resources"] = {"properties": {}, **result["resources"]}
    if "forecasting" in result:
        lists = {key: str(each) for key, each in result["forecasting"].items() if key in _LISTED}
        result["forecasting"] = {**result["forecasting"], **lists}
    if task.startswith("text"):
        result["limits"] = {"max_trials": 1, "max_nodes": 1, **result["limits"]}
    elif "search_space" in result:
        result["search_space"] = [{key: _text(each) for key, each in space.items()} for space in result["search_space"]]
    if isinstance(result.get("training", {}).get("stack_ensemble_settings"), dict):
        ensemble = {"stack_meta_learner_train_percentage": 0.2, **result["training"]["stack_ensemble_settings"]}
        result["training"] = {**result["training"], "stack_ensemble_settings": ensemble}
    if "training_parameters" in result:
        result["training_parameters"] = {key: _switch(key, each) for key, each in result["training_parameters"].items()}
    if isinstance(policy := result.get("sweep", {}).get("early_termination"), dict):
        defaults = _POLICIES.get(str(policy.get("type")), {})
        given = {key: each for key, each in {**defaults, **policy}.items() if each is not None}
        result["sweep"] = {**result["sweep"], "early_termination": given}
    return {key: value for key, value in result.items() if value is not None}


def _blocks(task: str) -> dict[str, Any]:
    """Blocks that are sent even when the file leaves them out."""
    return {"limits": {}} if task.startswith(("image", "text")) else {"training": {}}


def _data(result: Mapping[str, Any], refs: Refs) -> str:
    """A described table, which azure-ai-ml sends as the text of a Python dictionary."""
    path = {"path": refs.data_uri(str(result["path"]), "mltable")} if "path" in result else {}
    mode = {"mode": result["mode"]} if "mode" in result else {}
    return str({"type": result.get("type", "uri_folder"), **path, **mode})


def _text(value: Any) -> str:
    """A setting of an image model: a value, or what is tried as ``uniform(0.1,1)``."""
    if not isinstance(value, dict) or "type" not in value:
        return _plain(value)
    if isinstance(value.get("values"), list):
        values = [f"'{each}'" if isinstance(each, str) else _plain(each) for each in value["values"]]
    else:
        values = [_plain(each) for key, each in value.items() if key != "type"]
    return f"{value['type']}({','.join(values)})"


def _switch(key: str, value: Any) -> Any:
    """A setting of a model; of two azure-ai-ml sends the name that its program has for the value."""
    if key not in ("log_training_metrics", "log_validation_loss") or not isinstance(value, str):
        return value
    return f"{''.join(word.capitalize() for word in key.split('_'))}.{value.upper()}"


def _plain(value: Any) -> str:
    """A value as text; numbers without an exponent."""
    return format(decimal.Decimal(repr(value)), "f") if isinstance(value, float) else str(value)
