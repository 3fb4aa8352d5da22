"""Steps that are passed through, on the wire, and the components that they run: parallel, spark, data transfer, automl.

A step keeps the words of its file, with what azure-ai-ml adds and writes as text.
"""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amlstack.base.text import snake
from jobs.wire.command import IDENTITIES, PREFIX, Refs, dumped, plain, some
from jobs.wire.component import ANONYMOUS, code_reference, environment_reference, ports, version_body

if TYPE_CHECKING:
    from jobs.model.pipeline import PassthroughComponent, PassthroughStep

_SIZE = re.compile(r"(\d+)([kmg]b)?", re.IGNORECASE)
_UNITS = {"kb": 1024, "mb": 1024**2, "gb": 1024**3}
_INHERITED = ("mini_batch_error_threshold", "max_concurrency_per_instance", "retry_settings", "input_data")
"""Keys that a parallel step takes from its component where it says nothing itself."""
_OF_SPARK = ("py_files", "jars", "files", "archives", "conf", "args", "entry")
"""Keys that a Spark step takes from its component, likewise."""
_CONF = (
    "driver.cores",
    "driver.memory",
    "executor.cores",
    "executor.memory",
    "executor.instances",
    "dynamicAllocation.enabled",
    "dynamicAllocation.minExecutors",
    "dynamicAllocation.maxExecutors",
)


def own_keys(step: PassthroughStep, refs: Refs) -> dict[str, Any]:
    """The keys of a step's node beside its name, inputs and outputs."""
    component = None if isinstance(step.component, str) else step.component
    if step.kind == "parallel":
        return _parallel(step, component, refs)
    if step.kind == "spark":
        return _spark(step, component)
    if step.kind == "data_transfer":
        mode = (component.spec if component else {}).get("data_copy_mode") or step.spec.get("data_copy_mode")
        return some(**{**step.spec, "data_copy_mode": mode, "identity": dumped(step.identity)})
    return dict(step.spec)


def builtin(step: PassthroughStep) -> str:
    """Azure ML's own component for a step that moves data and names none."""
    task = str(step.spec["task"])
    end = step.spec["source" if task == "import_data" else "sink"]
    return f"azureml://registries/azureml/components/{task}_{end['type']}/versions/0.0.1"


def passthrough_component_body(
    component: PassthroughComponent, refs: Refs, jobs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A component as the body of an anonymous component version.

    Args:
        component: The component.
        refs: Where its code and environment are.
        jobs: Of a pipeline, the nodes of its steps.
    """
    spec = dict(component.spec)
    result = some(
        name=ANONYMOUS,
        version="1",
        type=component.kind,
        display_name=component.display_name,
        description=component.description,
        inputs=ports(component.inputs) or None,
        outputs=ports(component.outputs) or None,
        tags=dict(component.tags) or None,
        is_deterministic=True if component.is_deterministic is None else component.is_deterministic,
    )
    if component.kind == "parallel":
        spec["mini_batch_size"] = str(_bytes(spec.get("mini_batch_size")) or 0)
        if spec.get("partition_keys"):
            spec["partition_keys"] = json.dumps(spec["partition_keys"])
        spec["task"] = _task(component, refs)
    elif component.kind == "spark":
        result |= some(
            code=None if component.code is None else code_reference(refs.code_id(component.code.path)),
            environment=environment_reference(component.environment, refs),
        )
        if "class_name" in spec.get("entry", {}):
            spec["entry"] = {"file": spec["entry"]["class_name"]}  # of a component azure-ai-ml sends it as a file
        spec["conf"] = _without_unset(_conf(spec["conf"])) if spec.get("conf") else None
    elif component.kind == "pipeline":
        if component.is_deterministic is None:
            del result["is_deterministic"]
        result |= {"jobs": dict(jobs or {}), "sourceJobId": None}
    result |= some(**plain(spec))
    return version_body(component, result, archived=None if component.kind == "pipeline" else False)


def _task(component: PassthroughComponent, refs: Refs) -> dict[str, Any]:
    code = None if component.code is None else code_reference(refs.code_id(component.code.path))
    return some(
        **component.spec.get("task", {}), code=code, environment=environment_reference(component.environment, refs)
    )


def _parallel(step: PassthroughStep, component: PassthroughComponent | None, refs: Refs) -> dict[str, Any]:
    of_it = component.spec if component else {}
    result = dict(step.spec)
    for key in _INHERITED:
        result[key] = result.get(key) or of_it.get(key)
    size = result.get("mini_batch_size")
    if component is not None and not size:
        result["mini_batch_size"] = _bytes(of_it.get("mini_batch_size")) or 0
    elif size is not None:
        result["mini_batch_size"] = _bytes(size)
    result["resources"] = result.get("resources") or of_it.get("resources")
    partition = result.get("partition_keys") or of_it.get("partition_keys")
    result["partition_keys"] = None if partition is None else json.dumps(partition)
    if component is not None:
        result["task"] = _task(component, refs)
    result["identity"] = dumped(step.identity)
    return some(**result)


def _bytes(size: Any) -> Any:
    """``10kb`` as 10240; an expression stays."""
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    return size if match is None else int(match[1]) * _UNITS.get((match[2] or "").lower(), 1)


def _spark(step: PassthroughStep, component: PassthroughComponent | None) -> dict[str, Any]:
    of_it = component.spec if component else {}
    result: dict[str, Any] = {key: of_it[key] for key in _OF_SPARK if key in of_it}
    result |= step.spec
    if result.get("conf"):
        conf = _conf(result["conf"])
        result["conf"] = _scaled(_without_unset(conf) if component else conf)
    entry = result.get("entry")
    if entry:
        kind = "SparkJobPythonEntry" if "file" in entry else "SparkJobScalaEntry"
        result["entry"] = {**entry, "spark_job_entry_type": kind}
    result["identity"] = _spark_identity(step)
    return some(**result)


def _spark_identity(step: PassthroughStep) -> dict[str, Any] | None:
    """As whom it reads its data; unset, a cluster's own identity, and on serverless Spark the person's."""
    value = step.identity
    if value is None:
        if step.compute is not None:
            return {"identity_type": "Managed"}
        return {"identity_type": "UserIdentity"} if step.spec.get("resources") else None
    return some(identity_type=IDENTITIES[value.type], client_id=value.client_id, object_id=value.object_id)


def _conf(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of spark in its own words, text of digits as numbers."""
    long = {snake(name.replace(".", "_")): f"spark.{name}" for name in _CONF}
    return {
        long.get(key, key): int(value) if isinstance(value, str) and value.isdigit() else value
        for key, value in conf.items()
    }


def _without_unset(conf: dict[str, Any]) -> dict[str, Any]:
    """The same without settings of its own that say no, or nothing: azure-ai-ml drops them from a component."""
    own = {f"spark.{name}" for name in _CONF}
    return {key: value for key, value in conf.items() if value or key not in own}


def _scaled(conf: dict[str, Any]) -> dict[str, Any]:
    """The same; of a number of executors that goes up and down azure-ai-ml says the least as the first."""
    least = conf.get("spark.dynamicAllocation.minExecutors")
    moving = str(conf.get("spark.dynamicAllocation.enabled")).lower() == "true"
    return {"spark.executor.instances": least, **conf} if moving and least is not None else conf


_METRICS = {
    "regression": "normalized_root_mean_squared_error",
    "forecasting": "normalized_root_mean_squared_error",
    "image_classification_multilabel": "iou",
    "image_object_detection": "mean_average_precision",
    "image_instance_segmentation": "mean_average_precision",
}
"""The primary metric of a task whose file does not say; the others have accuracy."""
_POLICIES: Mapping[str, Mapping[str, Any]] = {
    "bandit": {"evaluation_interval": 0, "delay_evaluation": 0, "slack_factor": 0.0, "slack_amount": 0.0},
    "median_stopping": {"evaluation_interval": 1, "delay_evaluation": 0},
    "truncation_selection": {"evaluation_interval": 0, "delay_evaluation": 0},
}
_LISTED = ("time_series_id_column_names", "features_unknown_at_forecast_time")


def automl_node(step: PassthroughStep, outputs: Mapping[str, Any], refs: Refs) -> dict[str, Any]:
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
        **({"limits": {}} if task.startswith(("image", "text")) else {"training": {}}),
        **spec,
        "outputs": dict(outputs),
    }
    if identity is not None:
        kind = "managed_identity" if identity.type == "managed" else identity.type
        result["identity"] = {**identity.model_dump(exclude_none=True), "type": kind}
    for key in ("training_data", "validation_data", "test_data"):
        if isinstance(result.get(key), dict):
            result[key] = _table_text(result[key], refs)
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


def _table_text(result: Mapping[str, Any], refs: Refs) -> str:
    """A described table, which azure-ai-ml sends as the text of a Python dictionary."""
    path = {"path": refs.data_uri(str(result["path"]), "mltable")} if "path" in result else {}
    mode = {"mode": result["mode"]} if "mode" in result else {}
    return str({"type": result.get("type", "uri_folder"), **path, **mode})


def _text(value: Any) -> str:
    """A setting of an image model: a value, or what is tried as ``uniform(0.1,1)``."""
    if not isinstance(value, dict) or "type" not in value:
        return _number_text(value)
    if isinstance(value.get("values"), list):
        values = [f"'{each}'" if isinstance(each, str) else _number_text(each) for each in value["values"]]
    else:
        values = [_number_text(each) for key, each in value.items() if key != "type"]
    return f"{value['type']}({','.join(values)})"


def _switch(key: str, value: Any) -> Any:
    """A setting of a model; of two azure-ai-ml sends the name that its program has for the value."""
    if key not in ("log_training_metrics", "log_validation_loss") or not isinstance(value, str):
        return value
    return f"{''.join(word.capitalize() for word in key.split('_'))}.{value.upper()}"


def _number_text(value: Any) -> str:
    """A value as text; numbers without an exponent."""
    return format(decimal.Decimal(repr(value)), "f") if isinstance(value, float) else str(value)
