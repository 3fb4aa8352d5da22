"""Allocation of nodes to jobs, and the nodes that a cluster keeps: min, max and idle time as in Azure ML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base import text
from amlstack.sandbox.scheduling import quota
from amlstack.sandbox.store.store import JobError, JobRow, ResourceRow, Store, cluster_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.sandbox.store.tables import NodeRow

IDLE_DEFAULT = 120.0
"""Seconds that a node stays idle when the cluster does not say."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A cluster's scale settings: node counts, and seconds before an idle node leaves."""

    smallest: int
    largest: int
    idle: float


@dataclass(frozen=True, slots=True)
class Grant:
    """Nodes given to a job: their numbers in rank order, and how many of them had to be made."""

    nodes: tuple[int, ...]
    new: int


def scale_of(cluster: ResourceRow) -> Scale:
    """Reads ``properties.properties.scaleSettings`` of a compute."""
    inner: Mapping[str, Any] = (cluster.body.get("properties") or {}).get("properties") or {}
    return _limits(inner.get("scaleSettings") or {})


def _limits(settings: Mapping[str, Any]) -> Scale:
    idle = text.seconds(str(settings.get("nodeIdleTimeBeforeScaleDown")))
    idle = IDLE_DEFAULT if idle is None else idle
    return Scale(int(settings.get("minNodeCount") or 0), int(settings.get("maxNodeCount") or 0), idle)


def wanted(store: Store, job: JobRow) -> int:
    """Nodes that a job gets: those that it asks for, or fewer in a rehearsal that is scaled down."""
    declared = int((job.properties.get("resources") or {}).get("instanceCount") or 1)
    scale = store.scales.of(job.id)
    return declared if scale is None else min(declared, scale.nodes)


def serverless(job: JobRow) -> str:
    """What stands for a cluster in the nodes table while a serverless job runs."""
    return f"{job.workspace}/serverless/{job.id}"


def allocate(store: Store, job: JobRow) -> Grant | JobError | None:
    """Gives a job its nodes, idle ones first; None while it has to wait, an error when it can never run."""
    count = wanted(store, job)
    compute = cluster_of(job)
    if compute is None:
        size = quota.size_of_job(job)
        if refused := quota.refusal(size, count):
            return refused
        return (
            _take(store, job, serverless(job), tuple(range(count)), count) if quota.holds(store, size, count) else None
        )
    cluster = store.resources.get(compute)
    if cluster is None:
        return JobError("ComputeNotFound", f"The compute {compute.rsplit('/', 1)[-1]} was deleted before the job ran.")
    limits = scale_of(cluster)
    if count > limits.largest:
        message = (
            f"The job asks for {count} nodes, but the maximum node count of the cluster {cluster.name} is "
            f"{limits.largest}. Ask for fewer nodes or raise the cluster's maximum."
        )
        return JobError("JobNodeCountExceedsCoreQuota", message)
    size = quota.size_of_cluster(cluster.body)
    if refused := quota.refusal(size, count):
        return refused
    if cluster.state == "Deleting":
        return None
    there = store.nodes.of(compute)
    free = [node.number for node in there if node.state == "idle"]
    taken = {node.number for node in there}
    fresh = [number for number in range(limits.largest) if number not in taken][: max(0, limits.largest - len(there))]
    chosen = (free + fresh)[:count]
    new = len(set(chosen) - set(free))
    if len(chosen) < count or not quota.holds(store, size, new):
        return None
    return _take(store, job, compute, tuple(sorted(chosen)), new)


def scale(store: Store, now: float) -> float | None:
    """Makes the nodes that every cluster keeps, and lets go of those that were idle for too long.

    Returns:
        When the next one is due to leave, in seconds since the epoch.
    """
    due: list[float] = []
    there: dict[str, list[NodeRow]] = {}
    for node in store.nodes.all():
        there.setdefault(node.cluster, []).append(node)
    clusters = store.scaled_clusters()
    for cluster in clusters:
        nodes = there.get(cluster.key, [])
        if cluster.state == "Succeeded" and (nodes or cluster.settings.get("minNodeCount")):
            due += _scale_one(store, cluster.key, _limits(cluster.settings), nodes, now)
    known = {cluster.key for cluster in clusters}
    for node in (each for nodes in there.values() for each in nodes):
        if node.cluster not in known and node.state == "idle":  # a serverless job's, or of a deleted cluster
            store.nodes.drop(node.cluster, node.number)
    return min(due, default=None)


def _scale_one(store: Store, cluster: str, limits: Scale, nodes: Iterable[NodeRow], now: float) -> list[float]:
    there = list(nodes)
    for number in range(limits.largest):
        if len(there) >= limits.smallest:
            break
        if all(node.number != number for node in there):
            store.nodes.put(cluster, number, "idle")
            there = list(store.nodes.of(cluster))
    due = []
    for node in sorted(there, key=lambda node: -node.number):
        if node.state != "idle" or len(there) <= limits.smallest:
            continue
        leaves = 0.0 if len(there) > limits.largest else node.since + limits.idle
        if leaves <= now:
            store.nodes.drop(cluster, node.number)
            there.remove(node)
            if quota.set_at_all():  # a job of another cluster may have waited for these cores: look again at once
                due.append(now)
        else:
            due.append(leaves)
    return due


def _take(store: Store, job: JobRow, cluster: str, numbers: tuple[int, ...], new: int) -> Grant:
    existing = {node.number for node in store.nodes.of(cluster)}
    for number in numbers:
        if number not in existing:
            store.nodes.put(cluster, number, "provisioning", job.id)
        store.nodes.put(cluster, number, "busy", job.id)
    store.jobs.set_nodes(job.id, numbers)
    return Grant(numbers, new)
