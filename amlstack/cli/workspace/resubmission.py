"""A run once more, with some values changed: its body as the workspace keeps it, without what the service wrote."""

from __future__ import annotations

import copy
import os
import re
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.text import did_you_mean
from amlstack.provider.arm import ArmError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.base.findings import Finding
    from amlstack.cli.workspace.job_search import WorkspaceJob
    from amlstack.cli.workspace.workspace_place import WorkspacePlace
    from policies.gate import Gate

_WRITTEN: Final = ("status", "parameters", "properties", "isArchived", "displayName")
"""Properties that the service writes, that say whose run it was, or by which it is known."""
_OF_THE_SERVICE: Final = ("Tracking", "Studio")
_PLAIN: Final = {
    "compute": ("computeId",),
    "display_name": ("displayName",),
    "experiment_name": ("experimentName",),
    "instance_count": ("resources", "instanceCount"),
    "timeout": ("limits", "timeout"),
}
"""Settings by the names of job files, and their keys in the body."""
SETTINGS: Final = (*_PLAIN, "inputs.NAME", "environment_variables.NAME", "tags.NAME")


class NoSettingError(Exception):
    """A ``--set`` that cannot be applied; the message says why."""


def body_of(job: WorkspaceJob, changes: Iterable[str]) -> dict[str, Any]:
    """The body of a run that does the same, but for the changes.

    Args:
        job: The run.
        changes: ``NAME=VALUE`` each; names as in `SETTINGS`.

    Raises:
        NoSettingError: There is no such setting, or it has no such value.
    """
    kept = {name: copy.deepcopy(each) for name, each in job.record.properties.items() if name not in _WRITTEN}
    services = kept.get("services") or {}
    kept["services"] = {name: each for name, each in services.items() if name not in _OF_THE_SERVICE}
    outputs = kept.get("outputs") or {}
    kept["outputs"] = {name: each for name, each in outputs.items() if "/dcid." not in str((each or {}).get("uri"))}
    kept["tags"] = {name: each for name, each in job.record.tags.items() if not name.startswith("amlstack.")}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise NoSettingError(f"`--set {change}` is no NAME=VALUE.")
        _set(kept, name, value)
    return {"properties": kept}


def _set(properties: dict[str, Any], name: str, value: str) -> None:
    group, _, key = name.partition(".")
    if path := _PLAIN.get(name.removeprefix("resources.").removeprefix("limits.")):
        _set_plain(properties, path, name, value)
    elif group == "inputs" and key:
        inputs = properties.get("inputs") or {}
        if not isinstance(given := inputs.get(key), dict):
            raise NoSettingError(f"The job has no input `{key}`. {did_you_mean(key, list(inputs))}".rstrip())
        given["value" if given.get("jobInputType") == "literal" else "uri"] = value
    elif group in ("environment_variables", "tags") and key:
        wire = "environmentVariables" if group == "environment_variables" else group
        properties[wire] = {**(properties.get(wire) or {}), key: value}
    else:
        raise NoSettingError(f"`{name}` cannot be set. {did_you_mean(name, list(SETTINGS))}")


def _set_plain(properties: dict[str, Any], path: tuple[str, ...], name: str, value: str) -> None:
    found: Any = value
    if path[-1] in ("instanceCount", "timeout"):
        if not re.fullmatch(r"[1-9]\d{0,7}", value):
            unit = "seconds" if path[-1] == "timeout" else "nodes"
            raise NoSettingError(f"`{name}` is a whole number of {unit}, got `{value}`.")
        found = int(value) if path[-1] == "instanceCount" else f"PT{value}S"
    if path == ("computeId",):
        old = str(properties.get("computeId") or "")
        found = value if value.startswith("/") else f"{old.rpartition('/')[0]}/{value}"
    holder = properties
    for step in path[:-1]:
        holder[step] = holder = dict(holder.get(step) or {})
    if path[-1] == "timeout":
        holder.setdefault("jobLimitsType", str(properties.get("jobType") or "Command"))
    holder[path[-1]] = found


def judge(place: WorkspacePlace, job: WorkspaceJob, body: dict[str, Any], gate: Gate) -> tuple[Finding, ...]:
    """The findings of the policy pack's rules on the new body; its cluster is read from the workspace."""
    compute = str(body["properties"].get("computeId") or "")
    try:
        answer = place.arm.look(compute) if "/computes/" in compute else None
    except ArmError:
        answer = None
    inner = (((answer.body if answer is not None else None) or {}).get("properties") or {}).get("properties") or {}
    if size := inner.get("vmSize"):
        gate.knows(compute.rpartition("/")[2], str(size))
    given = {"jobBaseProperties": body["properties"], "id": job.name, "workspaceName": job.workspace.rpartition("/")[2]}
    return gate.judge("azure-native:machinelearningservices:Job", job.name, given)


def new_name(job: WorkspaceJob) -> str:
    """A name for the new run: the old one's, and six letters that no other run has."""
    return f"{job.name[:240]}-{os.urandom(3).hex()}"
