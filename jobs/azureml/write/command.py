"""A job as an Azure ML CLI v2 file: the rendered body, spelt as ``az ml job create -f`` takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.model.component import NO_ENVIRONMENT
from jobs.model.values import Environment, Input
from jobs.wire.command import IDENTITIES, INPUT_MODES, OUTPUT_MODES, PRIORITIES, SERVICES, body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.model.job import Job

SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"


def command_file(job: Job) -> dict[str, Any]:
    """The file's content, in the order in which people write it.

    Args:
        job: A job whose launcher is lowered (`Plan.enriched`).
    """
    told = body(job)["properties"]
    file: dict[str, Any] = {"$schema": SCHEMA, "type": "command"}
    file |= _kept(
        name=job.name,
        display_name=told.get("displayName"),
        description=told.get("description"),
        experiment_name=told.get("experimentName"),
        tags=told["tags"] or None,
        properties=told["properties"] or None,
        command=told["command"],
        code=job.code.path if job.code else None,
        environment=_environment(job),
        inputs={name: _input(job.inputs[name], value) for name, value in told["inputs"].items()} or None,
        outputs={name: _output(value) for name, value in told["outputs"].items()} or None,
        environment_variables=told["environmentVariables"] or None,
        compute=job.compute,
        distribution=_distribution(told.get("distribution")),
        resources=_resources(told.get("resources")),
        limits=None if job.limits is None else _kept(timeout=job.limits.timeout),
        queue_settings=_queue(told.get("queueSettings")),
        identity=_identity(told.get("identity")),
        services=None
        if told.get("services") is None
        else {name: _service(value) for name, value in told["services"].items()},
        parent_job_name=told.get("parentJobName"),
    )
    return file


def _kept(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _back(table: Mapping[str, Any], wire: Any) -> Any:
    """The word for a wire value; of several the most telling, which is the last."""
    return None if wire is None else [word for word, value in table.items() if value == wire][-1]


def _environment(job: Job) -> Any:
    if isinstance(job.environment, Environment):
        return job.environment.model_dump(exclude_none=True)
    if job.environment.startswith("azureml:"):
        return None if job.environment == NO_ENVIRONMENT else job.environment
    return body(job)["properties"]["environmentId"]


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


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _distribution(wire: dict[str, Any] | None) -> Any:
    if wire is None:
        return None
    rest = {_snake(key): value for key, value in wire.items() if key != "distributionType"}
    return {"type": wire["distributionType"].lower(), **rest}


def _resources(wire: dict[str, Any] | None) -> Any:
    if wire is None:
        return None
    properties = {key: value for key, value in wire["properties"].items() if key != "IsLocal"}
    names = {"dockerArgsList": "docker_args"}
    rest = {names.get(key, _snake(key)): value for key, value in wire.items() if key != "properties"}
    told = rest | ({"properties": properties} if properties else {})
    return told or (None if "IsLocal" in wire["properties"] else {})


def _queue(wire: dict[str, Any] | None) -> Any:
    if wire is None:
        return None
    tier = wire.get("jobTier")
    return _kept(job_tier=tier.lower() if tier else None, priority=_back(PRIORITIES, wire.get("priority")))


def _identity(wire: dict[str, Any] | None) -> Any:
    if wire is None:
        return None
    return {
        "type": _back(IDENTITIES, wire["identityType"]),
        **{_snake(key): value for key, value in wire.items() if key != "identityType"},
    }


def _service(wire: dict[str, Any]) -> Any:
    return _kept(
        type=_back(SERVICES, wire.get("jobServiceType")) or "Custom",
        nodes="all" if "nodes" in wire else None,
        port=wire.get("port"),
        properties=wire.get("properties"),
    )
