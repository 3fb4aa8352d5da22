"""A job, or what it needs, out of the body of a REST request or answer, and back to that very body."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from amlstack.findings import Finding, Level
from jobs.body import IDENTITIES, INPUT_MODES, OUTPUT_MODES, PRIORITIES, SERVICES, body
from jobs.faults import findings_of
from jobs.rest_more import Other, body_of, read
from jobs.spec import Job

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jobs.refs import Refs

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_ABSENT: Final = object()
Patch = tuple[tuple[str, ...], Any]


@dataclass(frozen=True, slots=True)
class RestJob:
    """A REST body.

    Attributes:
        job: What the fields of a command job hold of it; None where it is none, or could not be read.
        carried: The rest, by its place in the body; it is sent as it came.
        findings: What is wrong with it, and what is carried as it came.
    """

    job: Job | None
    carried: tuple[Patch, ...]
    findings: tuple[Finding, ...]
    other: Other | None = None
    """Of a body that is no command job: a sweep, a pipeline without its steps, an environment, code, a cluster."""

    def body(self, refs: Refs | None = None) -> dict[str, Any]:
        """The body; with an unchanged job the one that it came from.

        Raises:
            ValueError: Nothing was read; the findings say why.
        """
        if self.job is None and self.other is None:
            message = "no command job was read, nor anything else"
            raise ValueError(message)
        told = body(self.job, refs) if self.job is not None else body_of(self.other, refs)  # type: ignore[arg-type]
        for path, value in self.carried:
            _put(told, path, value if value is _ABSENT else copy.deepcopy(value))
        return told

    def with_job(self, job: Job) -> RestJob:
        """The same with another job, for an edit of what was read."""
        return replace(self, job=job)


def from_rest(given: Mapping[str, Any]) -> RestJob:
    """Read the body of a job, of whichever type, of an environment or code version, or of a cluster.

    Args:
        given: ``{"properties": …}``, as sent or as answered (id, systemData and the like are carried).
    """
    properties = given.get("properties")
    kind = properties.get("jobType") if isinstance(properties, dict) else None
    job = other = None
    try:
        if kind == "Command" and isinstance(properties, dict):
            job = Job.model_validate(_job(properties))
        elif isinstance(properties, dict):
            other = read(given, _job)
    except ValidationError as error:
        return RestJob(None, (), findings_of(error))
    except (AttributeError, TypeError, ValueError, KeyError, IndexError) as error:
        finding = Finding("body-form", "properties", str(error), "The body has the form of its kind")
        return RestJob(None, (), (finding,))
    if job is None and other is None:
        finding = Finding(
            "body-kind",
            "properties.jobType",
            f"The body's jobType is `{kind}`",
            "Bodies of jobs of type Command, Sweep and Pipeline are read, of environments, code and AmlCompute",
        )
        return RestJob(None, (), (finding,))
    ours = body(job) if job is not None else body_of(other)  # type: ignore[arg-type]
    carried = tuple(_difference(ours, dict(given), ()))
    notes = tuple(
        Finding(
            "body-carried",
            ".".join(path),
            f"`{path[-1]}` has no field in a job",
            "It is sent as it came",
            level=Level.INFO,
        )
        for path, value in carried
        if value is not _ABSENT
    )
    return RestJob(job, carried, notes, other)


def _job(told: Mapping[str, Any]) -> dict[str, Any]:
    resources = told.get("resources") or {}
    limits, identity = told.get("limits"), told.get("identity")
    arguments = resources.get("dockerArgsList") or resources.get("dockerArgs")
    queue = told.get("queueSettings")
    fields = {
        "command": told.get("command"),
        "environment": told.get("environmentId"),
        "code": told.get("codeId"),
        "compute": told.get("computeId"),
        "display_name": told.get("displayName"),
        "description": told.get("description"),
        "experiment_name": told.get("experimentName"),
        "parent_job_name": told.get("parentJobName"),
        "inputs": {name: _input(value) for name, value in (told.get("inputs") or {}).items()},
        "outputs": {name: _output(value) for name, value in (told.get("outputs") or {}).items()},
        "environment_variables": told.get("environmentVariables") or {},
        "launcher": {"type": "custom", "distribution": _distribution(told.get("distribution"))},
        "nodes": resources.get("instanceCount"),
        "instance_type": resources.get("instanceType"),
        "locations": resources.get("locations"),
        "max_instance_count": resources.get("maxInstanceCount"),
        "shm_size": resources.get("shmSize"),
        "docker_args": tuple(arguments) if isinstance(arguments, list) else arguments,
        "resource_properties": resources.get("properties"),
        "limits": None if limits is None else {"timeout": _seconds(limits.get("timeout"))},
        "queue_settings": None if queue is None else _queue(queue),
        "identity": None if identity is None else _identity(identity),
        "services": None
        if told.get("services") is None
        else {name: _service(value) for name, value in told["services"].items()},
        "tags": told.get("tags") or {},
        "properties": told.get("properties") or {},
    }
    return {key: value for key, value in fields.items() if value is not None}


def _input(wire: dict[str, Any]) -> Any:
    if wire.get("jobInputType") == "literal":
        return wire.get("value", "")
    told = {"type": wire["jobInputType"], "path": wire.get("uri"), "mode": _word(INPUT_MODES, wire.get("mode"))}
    return {key: value for key, value in told.items() if value is not None}


def _output(wire: dict[str, Any]) -> dict[str, Any]:
    told = {
        "type": wire.get("jobOutputType"),
        "path": wire.get("uri"),
        "mode": _word(OUTPUT_MODES, wire.get("mode")),
        "name": wire.get("assetName"),
        "version": wire.get("assetVersion"),
        "description": wire.get("description"),
    }
    return {key: value for key, value in told.items() if value is not None}


def _distribution(wire: dict[str, Any] | None) -> dict[str, Any] | None:
    if wire is None:
        return None
    rest = {_snake(key): value for key, value in wire.items() if key != "distributionType"}
    return {"type": str(wire.get("distributionType")).lower(), **rest}


def _identity(wire: dict[str, Any]) -> dict[str, Any]:
    told = {_snake(key): value for key, value in wire.items() if key != "identityType"}
    return {"type": _word(IDENTITIES, wire.get("identityType")), **told}


def _queue(wire: dict[str, Any]) -> dict[str, Any]:
    tier = wire.get("jobTier")
    return {"job_tier": tier.lower() if tier else None, "priority": _word(PRIORITIES, wire.get("priority"))}


def _service(wire: dict[str, Any]) -> dict[str, Any]:
    told = {
        "type": _word(SERVICES, wire.get("jobServiceType")),
        "nodes": "all" if wire.get("nodes") else None,
        **{key: wire.get(key) for key in ("port", "endpoint", "properties")},
    }
    return {key: value for key, value in told.items() if value is not None}


def _word(table: Mapping[str, Any], wire: Any) -> str | None:
    """The word for a wire value, of several the most telling; None for one that no field has a word for."""
    return next((word for word, value in reversed(list(table.items())) if value == wire), None)


def _seconds(duration: str | None) -> int | None:
    match = _DURATION.fullmatch(duration or "")
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _difference(ours: Any, given: Any, path: tuple[str, ...]) -> Iterator[Patch]:
    """What must be put into, or taken out of, our rendering to get the given body."""
    if isinstance(ours, dict) and isinstance(given, dict):
        for key in ours.keys() - given.keys():
            yield (*path, key), _ABSENT
        for key, value in given.items():
            if key in ours:
                yield from _difference(ours[key], value, (*path, key))
            else:
                yield (*path, key), value
    elif ours != given or type(ours) is not type(given):
        yield path, given


def _put(told: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *parents, last = path
    for step in parents:
        inner = told.get(step)
        if not isinstance(inner, dict):
            if value is _ABSENT:
                return
            inner = told[step] = {}
        told = inner
    if value is _ABSENT:
        told.pop(last, None)
    else:
        told[last] = value
