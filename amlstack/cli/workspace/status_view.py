"""Jobs of a workspace as plain data for a program, and as lines for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amlstack.base import text
from amlstack.base.credentials import scrub
from amlstack.cli.console import columns
from amlstack.cli.logs.follower import label
from amlstack.cli.workspace import job_search, queue
from amlstack.cli.workspace.job_search import children, when
from amlstack.provider.arm import ArmError
from amlstack.provider.runs import Runs

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping, Sequence

    from amlstack.cli.workspace.job_search import WorkspaceJob
    from amlstack.cli.workspace.workspace_place import WorkspacePlace

HEADINGS: Final = ("JOB", "TYPE", "STATUS", "COMPUTE", "NODES", "RANKS", "AGE", "")


def row(job: WorkspaceJob, why: str, now: dt.datetime) -> dict[str, Any]:
    """One job: ``name``, ``type``, ``status``, ``compute``, ``nodes``, ``ranks``, ``age_seconds``, ``why`` and more.

    ``nodes`` and ``ranks`` are what the job asks for; None where its body does not say.
    """
    properties = job.record.properties
    is_parent = job.kind in {"Sweep", "Pipeline"}
    compute = str(properties.get("computeId") or "")
    return {
        "name": job.name,
        "id": job.arm_id,
        "type": job.kind,
        "status": job.record.status,
        "display_name": properties.get("displayName"),
        "experiment": job.record.experiment,
        "compute": compute.rpartition("/")[2] or ("" if is_parent else "serverless"),
        "nodes": None if is_parent else queue.nodes_of(properties),
        "ranks": None if is_parent else queue.ranks_of(properties),
        "created": job.created.isoformat() if job.created else None,
        "age_seconds": None if job.created is None else round((now - job.created).total_seconds()),
        "why": why,
    }


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows as lines, headings first; a reason for waiting stands at the end of its line."""
    cells = [
        (
            str(each["name"]), str(each["type"]), str(each["status"]), str(each["compute"]), _some(each["nodes"]),
            _some(each["ranks"]), age(each["age_seconds"]), str(each["why"]),
        )
        for each in rows
    ]  # fmt: skip
    yield from columns([HEADINGS, *cells])


def details(place: WorkspacePlace, job: WorkspaceJob, why: str, now: dt.datetime) -> dict[str, Any]:
    """All of one job: its row, times, error, children, nodes, services and outputs.

    Raises:
        ArmError: Run history cannot be asked.
    """
    runs = Runs(place.arm)
    known = runs.plane.details(job.workspace, job.name) or {}
    error = ((known.get("error") or {}).get("error") or {}).get("message")
    below = [_child(job, one) for one in children(place, job)]
    return {
        **row(job, why, now),
        "started": known.get("startTimeUtc"),
        "ended": known.get("endTimeUtc"),
        "error": scrub(str(error)) if error else None,
        "logs": sorted(known.get("logFiles") or ()),
        "on_nodes": list(_on_nodes(place, job)),
        "children": below,
        "services": job.record.services,
        "outputs": {
            name: (port or {}).get("uri") for name, port in (job.record.properties.get("outputs") or {}).items()
        },
        "tags": job.record.tags,
        "studio": job_search.studio_of_job(place.arm, job),
    }


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """One job's details for a person, each in a line of its own; what is not known is left out."""
    yield from map(text.line, _lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    size = " × ".join(
        f"{found[name]} {name if found[name] != 1 else name[:-1]}" for name in ("nodes", "ranks") if found[name]
    ).replace(" × ", ", ")
    yield f"{found['name']}: {found['type']}, {found['status']}" + (f": {found['why']}" if found["why"] else "")
    pairs = [
        ("on", ", ".join(part for part in (found["compute"], size) if part)),
        ("display name", found["display_name"] if found["display_name"] != found["name"] else ""),
        ("experiment", found["experiment"]),
        ("submitted", f"{found['created']} ({age(found['age_seconds'])} ago)" if found["created"] else ""),
        ("started", found["started"]),
        ("ended", found["ended"]),
        ("ran", _ran(found)),
        ("error", found["error"]),
        ("tags", ", ".join(f"{name}={value}" for name, value in found["tags"].items())),
        ("logs", ", ".join(found["logs"])),
        ("studio", found["studio"]),
    ]
    yield from (f"  {name + ':':14}{value}" for name, value in pairs if value)
    for node in found["on_nodes"]:
        yield f"  {'node:':14}{node['id']} is {node['state']}"
    for name, uri in found["outputs"].items():
        yield f"  {'output:':14}{name}{f' → {uri}' if uri else ''}"
    for child in found["children"]:
        given = f" {child['values']}" if child["values"] else ""
        yield f"  {child['label']}: {child['status']}{given} ({child['name']})"


def age(seconds: float | None) -> str:
    """``45s``, ``12m``, ``3h``, ``2d``; empty for None."""
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def _child(job: WorkspaceJob, one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": str(one["runId"]),
        "label": label(job.kind, dict(one)),
        "status": str(one.get("status") or "Unknown"),
        "values": (one.get("tags") or {}).get("hyperparameters"),
    }


def _on_nodes(place: WorkspacePlace, job: WorkspaceJob) -> Iterator[dict[str, str]]:
    """The nodes of its cluster that run the job now; none where they cannot be asked for."""
    compute = str(job.record.properties.get("computeId") or "")
    if job.record.status != "Running" or "/computes/" not in compute:
        return
    try:
        answer = place.arm.post(f"{compute}/listNodes", allow=(400, 403, 404))
    except ArmError:
        return
    for node in answer.body.get("nodes") or () if answer.status < 400 else ():
        if str(node.get("runId")) == job.name:
            yield {"id": str(node.get("nodeId")), "state": str(node.get("nodeState"))}


def _ran(found: Mapping[str, Any]) -> str:
    started, ended = when(found["started"]), when(found["ended"])
    return "" if started is None or ended is None else age((ended - started).total_seconds())


def _some(value: Any) -> str:
    return "" if value is None else str(value)
