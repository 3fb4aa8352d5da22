"""A job as an Azure ML CLI v2 file: the rendered body, spelt as ``az ml job create -f`` takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.spelling import snake
from jobs.model.component import NO_ENVIRONMENT
from jobs.model.values import Environment, Input
from jobs.wire.command import (
    DISTRIBUTIONS,
    IDENTITIES,
    INPUT_MODES,
    OUTPUT_MODES,
    PRIORITIES,
    SERVICES,
    TIERS,
    body,
)
from jobs.wire.keys import BLOCKS, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jobs.model.job import Job

SCHEMAS = "https://azuremlschemas.azureedge.net/latest"


def command_file(job: Job) -> dict[str, Any]:
    """The file's content, in the order in which people write it.

    Args:
        job: A job whose launcher is lowered (`Plan.enriched`).
    """
    sent = body(job)["properties"]
    values = {
        key: _WRITTEN[key](job, sent.get(wire)) if key in _WRITTEN else sent.get(wire) for key, wire in BLOCKS.items()
    }
    return {"$schema": f"{SCHEMAS}/commandJob.schema.json", "type": "command"} | {
        key: value for key, value in values.items() if value is not None and (value != {} or key in _MAY_BE_EMPTY)
    }


def _kept(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _back(table: Mapping[str, Any], wire: Any) -> Any:
    """The word for a wire value; of several the most telling, which is the last."""
    return None if wire is None else [word for word, value in table.items() if value == wire][-1]


def _environment(job: Job, sent: Any) -> Any:
    if isinstance(job.environment, Environment):
        return job.environment.model_dump(exclude_none=True)
    if job.environment.startswith("azureml:"):
        return None if job.environment == NO_ENVIRONMENT else job.environment
    return sent


def _input(declared: Any, wire: dict[str, Any]) -> Any:
    if not isinstance(declared, Input):
        return declared
    return _kept(
        type=declared.type,
        path=declared.path,
        mode=_back(INPUT_MODES, wire.get("mode")),
        datastore=declared.datastore,
        path_on_compute=declared.path_on_compute,
    )


def _output(wire: dict[str, Any]) -> Any:
    return _kept(
        type=wire["jobOutputType"],
        mode=_back(OUTPUT_MODES, wire.get("mode")),
        path=wire.get("uri"),
        name=wire.get("assetName"),
        version=wire.get("assetVersion"),
    )


def _words(wire: dict[str, Any] | None, **back: Mapping[str, Any]) -> Any:
    """A block in the spelling of files, its words exchanged."""
    if wire is None:
        return None
    return {snake(key): _back(back[key], value) if key in back else value for key, value in wire.items()}


def _typed(wire: dict[str, Any] | None, key: str, words: Mapping[str, Any]) -> Any:
    """A block whose type is called otherwise on the wire, with the type first."""
    if wire is None:
        return None
    return {"type": _back(words, wire[key]), **_words({name: value for name, value in wire.items() if name != key})}


def _resources(wire: dict[str, Any] | None) -> Any:
    if wire is None:
        return None
    properties = {key: value for key, value in wire["properties"].items() if key != "IsLocal"}
    names = {key.on_wire: key.in_file for key in RESOURCES} | {"dockerArgsList": "docker_args"}
    rest = {names[key]: value for key, value in wire.items() if key != "properties"}
    result = rest | ({"properties": properties} if properties else {})
    return result or (None if "IsLocal" in wire["properties"] else {})


def _service(wire: dict[str, Any]) -> Any:
    return _kept(
        type=_back(SERVICES, wire.get("jobServiceType")) or "Custom",
        nodes="all" if "nodes" in wire else None,
        port=wire.get("port"),
        properties=wire.get("properties"),
    )


_WRITTEN: Mapping[str, Callable[[Job, Any], Any]] = {
    "name": lambda job, _: job.name,
    "code": lambda job, _: job.code and job.code.path,
    "environment": _environment,
    "inputs": lambda job, sent: {name: _input(job.inputs[name], value) for name, value in sent.items()},
    "outputs": lambda _, sent: {name: _output(value) for name, value in sent.items()},
    "compute": lambda job, _: job.compute,
    "distribution": lambda _, sent: _typed(sent, "distributionType", DISTRIBUTIONS),
    "resources": lambda _, sent: _resources(sent),
    "limits": lambda job, _: None if job.limits is None else _kept(timeout=job.limits.timeout),
    "queue_settings": lambda _, sent: _words(sent, jobTier=TIERS, priority=PRIORITIES),
    "identity": lambda _, sent: _typed(sent, "identityType", IDENTITIES),
    "services": lambda _, sent: sent and {name: _service(value) for name, value in sent.items()},
}
"""Key to what a file has for it; what is written as it is sent needs no entry."""
_MAY_BE_EMPTY = ("resources", "limits", "queue_settings", "services")
