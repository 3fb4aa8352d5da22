"""The sandbox as it is now: clusters with their nodes, how many jobs. Read from the store; no server is needed."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.server import daemon
from amlstack.sandbox.store.store import Store, folder

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from amlstack.sandbox.store.store import ResourceRow


def gather(home: Path) -> dict[str, Any]:
    """Plain data for ``--json``: ``running``, ``url``, ``pid``, ``held``, ``clusters``, ``jobs``, ``resources``.

    ``jobs`` counts them by status, ``resources`` is a count, and unstarted jobs wait while ``held`` is true.
    """
    endpoint = daemon.find(home)
    known = {"url": endpoint.url, "pid": endpoint.pid} if endpoint else {"url": None, "pid": None}
    state: dict[str, Any] = {"running": endpoint is not None, **known, "home": str(folder(home))}
    if not (folder(home) / "state.db").exists():
        return {**state, "held": False, "clusters": [], "jobs": {}, "resources": 0}
    with contextlib.closing(Store(home)) as store:
        return {
            **state,
            "held": store.holds_jobs(),
            "clusters": [_cluster(store, cluster) for cluster in store.clusters()],
            "jobs": dict(Counter(job.status for job in store.jobs.list())),
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


def clusters(state: dict[str, Any]) -> Table:
    """The clusters of what `gather` gives, as a table for a person."""
    from rich.table import Table  # noqa: PLC0415 - only a person needs it

    table = Table("cluster", "size", "nodes", "scale", "held by", title="Clusters", title_justify="left")
    for cluster in state["clusters"]:
        nodes = [f"{node['number']} {node['state']}" for node in cluster["nodes"]]
        held = sorted({node["job"] for node in cluster["nodes"] if node["job"]})
        scale = f"{cluster['min']} to {cluster['max']}"
        table.add_row(cluster["name"], cluster["size"], "\n".join(nodes) or "none", scale, "\n".join(held))
    return table
