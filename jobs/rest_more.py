"""What stands in a REST body that is no command job: a sweep, a pipeline, an environment, code, a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.component import RUNTIME
from jobs.environments import environment_properties
from jobs.pipeline import Pipeline
from jobs.pipeline_body import pipeline_body
from jobs.search_space import DISTRIBUTIONS
from jobs.sweep import Sweep
from jobs.sweep_body import sweep_body
from jobs.target import Target
from jobs.values import Code, Environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jobs.refs import Refs

Other = Sweep | Pipeline | Environment | Code | Target
"""What such a body is read into."""
_OF_THE_RUN = {
    "display_name": "displayName",
    "description": "description",
    "experiment_name": "experimentName",
    "tags": "tags",
    "properties": "properties",
}
_FROM_THE_SWEEP = ("inputs", "outputs", "computeId", "identity", "queueSettings", "parentJobName")
_BY_TYPE = {str(model.model_fields["type"].default): model for model in DISTRIBUTIONS}


def read(given: Mapping[str, Any], job: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Other | None:
    """What a body holds; None for a kind that is not read.

    Args:
        given: ``{"properties": …}``.
        job: From a command job's properties to its fields.

    Raises:
        ValidationError: A value is of another kind.
        AttributeError: The body has another form; so have TypeError, KeyError, ValueError.
    """
    told = given["properties"]
    match told.get("jobType"):
        case "Sweep":
            return _sweep(told, job)
        case "Pipeline":
            return Pipeline.model_validate(_pipeline(told, job))
        case None if "codeUri" in told:
            return Code(path=told["codeUri"])
        case None if told.get("computeType") == "AmlCompute":
            inner = told.get("properties") or {}
            most = (inner.get("scaleSettings") or {}).get("maxNodeCount")
            return Target(size=inner.get("vmSize"), cluster=given.get("name"), max_nodes=most)
        case None if {"image", "build", "condaFile"} & told.keys():
            return Environment.model_validate(_environment(told))
        case _:
            return None


def body_of(other: Other, refs: Refs | None = None) -> dict[str, Any]:
    """The body of what was read, without what is carried."""
    match other:
        case Sweep():
            return sweep_body(other, refs)
        case Pipeline():
            return pipeline_body(other, refs)
        case Environment():
            return {"properties": environment_properties(other, Path())}
        case Code():
            return {"properties": {"codeUri": other.path}}
        case Target():
            scale = {} if other.max_nodes is None else {"scaleSettings": {"maxNodeCount": other.max_nodes}}
            inner = {**({} if other.size is None else {"vmSize": other.size}), **scale}
            return {"properties": {"computeType": "AmlCompute", **({"properties": inner} if inner else {})}}


def _run(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: told[key] for name, key in _OF_THE_RUN.items() if told.get(key) is not None}


def _sweep(told: Mapping[str, Any], job: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Sweep:
    trial = job({**(told.get("trial") or {}), **{key: told[key] for key in _FROM_THE_SWEEP if key in told}})
    fields: dict[str, Any] = {
        **_run(told),
        "trial": trial,
        "search_space": {name: _distribution(each) for name, each in (told.get("searchSpace") or {}).items()},
        "objective": _snaked(told.get("objective") or {}),
        "limits": _limits(told.get("limits") or {}, job),
    }
    fields["objective"]["goal"] = str(fields["objective"].get("goal")).lower()
    for name, key, kind in (
        ("sampling_algorithm", "samplingAlgorithm", "samplingAlgorithmType"),
        ("early_termination", "earlyTermination", "policyType"),
    ):
        if told.get(key) is not None:
            inner = _snaked({each: value for each, value in told[key].items() if each != kind})
            fields[name] = {**inner, "type": _snake(told[key][kind]).lstrip("_")}
    if told.get("resources") is not None and told["resources"] != (told.get("trial") or {}).get("resources"):
        own = job({"resources": told["resources"]})
        fields["resources"] = {name: own[name] for name in RUNTIME if name in own}
    return Sweep.model_validate(fields)


def _limits(told: Mapping[str, Any], job: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    counts = {_snake(key): told[key] for key in ("maxTotalTrials", "maxConcurrentTrials") if key in told}
    for key in ("timeout", "trialTimeout"):
        if key in told:
            counts[_snake(key)] = job({"limits": {"timeout": told[key]}})["limits"]["timeout"]
    return counts


def _distribution(wire: Any) -> dict[str, Any]:
    """``["uniform", [0.1, 1]]`` as its model's fields."""
    kind, arguments = wire
    names = [name for name in _BY_TYPE[kind].model_fields if name != "type"]
    if kind == "choice":
        return {"type": kind, "values": tuple(_chosen(each) for each in arguments[0])}
    return {"type": kind, **dict(zip(names, arguments, strict=True))}


def _chosen(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: _BY_TYPE[each[0]].model_validate(_distribution(each)) if isinstance(each, list) else each
        for name, each in value.items()
    }


def _pipeline(told: Mapping[str, Any], job: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """A pipeline without its steps, whose nodes are sent as they came."""
    inner = job({key: told[key] for key in ("inputs", "outputs", "computeId", "identity", "services") if key in told})
    kept = ("inputs", "outputs", "compute", "identity", "services")
    fields = {**_run(told), **{name: inner[name] for name in kept if name in inner}}
    return {**fields, "component": told.get("componentId")}


def _environment(told: Mapping[str, Any]) -> dict[str, Any]:
    build = told.get("build")
    fields = {
        "image": told.get("image"),
        "build": None
        if build is None
        else {"path": build.get("contextUri"), "dockerfile_path": build.get("dockerfilePath")},
        "os_type": None if told.get("osType") is None else str(told["osType"]).lower(),
        **{key: told.get(key) for key in ("description", "tags", "properties")},
    }
    return {key: value for key, value in fields.items() if value is not None}


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _snaked(told: Mapping[str, Any]) -> dict[str, Any]:
    return {_snake(key): value for key, value in told.items()}
