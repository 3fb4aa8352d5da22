"""Runs side by side: what was asked for, what they logged, how fast they were and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base import text
from amlstack.cli.console import columns
from amlstack.cli.workspace.job_search import when
from amlstack.cli.workspace.status import age, row
from amlstack.provider.arm import ArmError
from amlstack.provider.runs import Runs

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping, Sequence

    from amlstack.cli.workspace.job_search import WorkspaceJob
    from amlstack.cli.workspace.workspace_place import WorkspacePlace


def read_run(place: WorkspacePlace, job: WorkspaceJob, now: dt.datetime) -> dict[str, Any]:
    """One run as plain data.

    Returns:
        ``name``, ``status``, ``compute``, ``nodes``, ``ranks``, ``seconds`` (it ran, until now where it runs still),
        ``usd`` (None on the sandbox, and where no price is known), ``steps_per_second``, ``inputs``, ``params`` and the
        last value of each of the ``metrics``.

    Raises:
        ArmError: Run history or MLflow cannot be asked.
    """
    plane = Runs(place.arm).plane
    shown = row(job, "", now)
    times = plane.details(job.workspace, job.name) or {}
    started, ended = when(times.get("startTimeUtc")), when(times.get("endTimeUtc"))
    seconds = ((ended or now) - started).total_seconds() if started else None
    tracked = plane.tracked(job.workspace, job.name)
    inputs = {
        name: given.get("value", given.get("uri"))
        for name, given in (job.record.properties.get("inputs") or {}).items()
        if isinstance(given, dict)
    }
    return {
        **{key: shown[key] for key in ("name", "status", "compute", "nodes", "ranks")},
        "seconds": seconds,
        "usd": None if place.is_local or seconds is None else _cost(place, job, shown["nodes"], seconds),
        "steps_per_second": _speed(plane.history(job.workspace, job.name, list(tracked["metrics"]))),
        "inputs": inputs,
        **tracked,
    }


def _speed(history: Sequence[tuple[int, int]]) -> float | None:
    """Steps per second between the first and the last logged step: pairs of milliseconds and step, in any order."""
    if len(history) < 2:
        return None
    (began, first), (ended, last) = min(history), max(history)
    return round((last - first) * 1000 / (ended - began), 4) if last > first and ended > began else None


def _cost(place: WorkspacePlace, job: WorkspaceJob, nodes: int | None, seconds: float) -> float | None:
    """US dollars for the nodes of a run's cluster while it ran; None where size or price are not known."""
    from amlstack.catalog import sizes

    compute = str(job.record.properties.get("computeId") or "")
    try:
        body = place.arm.look(compute).body if "/computes/" in compute else {}
    except ArmError:
        return None
    outer = body.get("properties") or {}
    inner = outer.get("properties") or {}
    size = sizes.get(str(inner.get("vmSize") or ""))
    region = str(outer.get("computeLocation") or "").replace(" ", "").lower() or None
    price = size.node_price(region, low_priority=inner.get("vmPriority") == "LowPriority") if size else None
    return None if price is None or nodes is None else round(price.usd * nodes * seconds / 3600, 2)


def rows_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Texts by name, one for each run; what no run has is left out."""
    rows: dict[str, list[str]] = {
        "status": [run["status"] for run in runs],
        "ran": [age(run["seconds"]) for run in runs],
        "compute": [run["compute"] for run in runs],
        "nodes": [_cell(run["nodes"]) for run in runs],
        "ranks": [_cell(run["ranks"]) for run in runs],
        "cost": ["" if run["usd"] is None else f"{run['usd']:.2f} USD" for run in runs],
        "steps/s": [_cell(run["steps_per_second"]) for run in runs],
    }
    for kind in ("inputs", "params", "metrics"):
        for name in dict.fromkeys(name for run in runs for name in run[kind]):
            rows[f"{kind[:-1]} {name}"] = [_cell(run[kind].get(name)) for run in runs]
    return {name: cells for name, cells in rows.items() if any(cells)}


def lines(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table with a column for each run: first what differs between them, then what is the same in all."""
    rows = rows_of(runs)
    differing = {name: cells for name, cells in rows.items() if len(set(cells)) > 1}
    yield from columns([("", *(run["name"] for run in runs)), *((name, *cells) for name, cells in differing.items())])
    same = [f"{name} {cells[0]}" for name, cells in rows.items() if name not in differing]
    if same:
        yield text.line(f"the same: {', '.join(same)}")


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
