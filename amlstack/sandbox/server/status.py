"""What the sandbox holds right now: clusters with their nodes, jobs. Read from the store; no server is needed."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.kinds.base import iso
from amlstack.sandbox.parents.parent import is_parent
from amlstack.sandbox.server import daemon
from amlstack.sandbox.store import job_names
from amlstack.sandbox.store.store import Store, cluster_of, folder

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from amlstack.sandbox.store.store import JobRow, ResourceRow


SHOWN = 40
"""Rows of a table that a person is shown, unless all are asked for."""


def gather(home: Path) -> dict[str, Any]:
    """Plain data for ``--json``: ``running``, ``url``, ``pid``, ``held``, ``clusters``, ``jobs``, ``resources``.

    The last one is a count; ``held`` says whether jobs that have not started are held in the queue.
    """
    endpoint = daemon.find(home)
    known = {"url": endpoint.url, "pid": endpoint.pid} if endpoint else {"url": None, "pid": None}
    state: dict[str, Any] = {"running": endpoint is not None, **known, "home": str(folder(home))}
    if not (folder(home) / "state.db").exists():
        return {**state, "held": False, "clusters": [], "jobs": [], "resources": 0}
    with contextlib.closing(Store(home)) as store:
        return {
            **state,
            "held": store.holds_jobs(),
            "clusters": [_cluster(store, cluster) for cluster in store.clusters()],
            "jobs": [_job(store, job) for job in store.jobs.list()],
            "resources": sum(row.type.startswith("Microsoft.") for row in store.resources.all()),
        }


def _cluster(store: Store, cluster: ResourceRow) -> dict[str, Any]:
    properties = cluster.body["properties"]["properties"]
    scale = properties["scaleSettings"]
    nodes = [{"number": node.number, "state": node.state, "job": node.job} for node in store.nodes.of(cluster.key)]
    return {
        "name": cluster.name,
        "id": cluster.id,
        "state": cluster.state,
        "size": properties["vmSize"],
        "priority": properties["vmPriority"],
        "min": scale["minNodeCount"],
        "max": scale["maxNodeCount"],
        "nodes": nodes,
    }


def _job(store: Store, job: JobRow) -> dict[str, Any]:
    error = None if job.error is None else {"code": job.error.code, "message": job.error.message}
    seconds = None if job.started is None else round((job.ended or time.time()) - job.started, 1)
    return {
        "name": job.name,
        "id": job.arm_id,
        "path": job_names.path(store, job),
        "status": job.status,
        "compute": (cluster_of(job) or ("" if is_parent(job) else "serverless")).rsplit("/", 1)[-1],
        "nodes": list(job.nodes),
        "created": iso(job.created),
        "seconds": seconds,
        "exits": [{"node": each.node, "rank": each.rank, "code": each.code, "log": each.log} for each in job.exits],
        "error": error,
    }


def tables(state: dict[str, Any], *, every: bool = False) -> list[Table]:
    """The same for a person: one table of clusters and nodes, one of jobs; those that would be empty are left out.

    Args:
        state: What `gather` gives.
        every: Show every row. Otherwise of more than `SHOWN` those that hold nodes, then the latest; the rest is
            counted.
    """
    from rich.table import Table  # noqa: PLC0415 - only a person needs it

    found = []
    if state["clusters"]:
        shown, rest = _shown(state["clusters"], "state", every=every)
        heads = ("cluster", "size", "nodes", "scale", "held by")
        clusters = Table(*heads, title="Clusters", title_justify="left", caption=rest, caption_justify="left")
        for cluster in shown:
            nodes = [f"{node['number']} {node['state']}" for node in cluster["nodes"]]
            held = sorted({node["job"] for node in cluster["nodes"] if node["job"]})
            scale = f"{cluster['min']} to {cluster['max']}"
            clusters.add_row(cluster["name"], cluster["size"], "\n".join(nodes) or "none", scale, "\n".join(held))
        found.append(clusters)
    if state["jobs"]:
        shown, rest = _shown(state["jobs"], "status", every=every)
        words = ("job", "status", "on", "nodes", "seconds", "error")
        jobs = Table(*words, title="Jobs", title_justify="left", caption=rest, caption_justify="left")
        for job in shown:
            error = job["error"]["message"] if job["error"] else ""
            numbers = ", ".join(map(str, job["nodes"]))
            jobs.add_row(job["path"], job["status"], job["compute"], numbers, str(job["seconds"] or ""), error)
        found.append(jobs)
    return found


def _shown(rows: list[dict[str, Any]], state: str, *, every: bool) -> tuple[list[dict[str, Any]], str | None]:
    """The rows to show, in their order, and the others counted by their state; None when there are no others."""
    if every or len(rows) <= SHOWN:
        return rows, None
    ranked = sorted(range(len(rows)), key=lambda number: (bool(rows[number]["nodes"]), number))
    chosen, left = sorted(ranked[-SHOWN:]), ranked[:-SHOWN]
    counts = Counter(str(rows[number][state]) for number in left)
    counted = ", ".join(f"{count:,} {word}" for word, count in counts.most_common())
    return [rows[number] for number in chosen], f"and {len(left):,} more: {counted} (--all shows them)"
