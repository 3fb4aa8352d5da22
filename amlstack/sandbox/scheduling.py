"""The nodes of jobs: quota, what a cluster keeps by min, max and idle time, and evictions."""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base import text
from amlstack.catalog import sizes
from amlstack.sandbox import processes
from amlstack.sandbox.store.store import (
    JobError,
    JobRow,
    ResourceRow,
    Store,
    UnknownJobError,
    cluster_of,
    find_job,
    job_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from amlstack.catalog.sizes import Size
    from amlstack.sandbox.store.tables import NodeRow

VARIABLE = "AMLSTACK_SANDBOX_QUOTA"
_HELP = "https://docs.microsoft.com/azure/machine-learning/how-to-manage-quotas#request-quota-increases"


def limit(size: Size | None, environ: Mapping[str, str] = os.environ) -> int | None:
    """The quota of a size's family in vCPUs; None for no limit.

    Raises:
        ValueError: The variable is no list of ``family=number``, or names a family of no size.
    """
    if size is None or size.family is None:
        return None
    for part in filter(None, map(str.strip, environ.get(VARIABLE, "").split(","))):
        family, _, number = part.rpartition("=")
        known = _plain(family) in {_plain(one.family) for one in sizes.all_sizes() if one.family}
        if not (known and number.strip().isdigit()):
            message = f"{VARIABLE} is `{part}` in part; write `Standard NDASv4_A100 Family=192`, several with commas"
            raise ValueError(message)
        if _plain(family) == _plain(size.family):
            return int(number)
    return None


def refusal(size: Size | None, count: int) -> JobError | None:
    """The message of the service on a job that the whole quota could not hold; None when it could."""
    quota = limit(size)
    if size is None or quota is None or count * _cores(size) <= quota:
        return None
    return JobError(
        "JobNodeCountExceedsCoreQuota",
        f"The specified subscription has a {size.family} vCPU quota of {quota} and is less than the requested job node "
        f"count of {count} which maps to {count * _cores(size)} vCPUs. Talk to your Subscription Admin or refer to "
        f"{_HELP} to increase the {size.family} vCPU quota.",
    )


def holds(store: Store, size: Size | None, new: int) -> bool:
    """True where so many further nodes of a size fit beside those that are there now."""
    quota = limit(size)
    if size is None or quota is None or not new:
        return True
    by_cluster = {cluster.key: size_of_cluster(cluster.body) for cluster in store.clusters()}
    jobs = {job.id: job for job in store.jobs.list(active=True)}
    used = 0
    for node in store.nodes.all():
        there = by_cluster.get(node.cluster) or size_of_job(jobs.get(node.job or ""))
        if there is not None and there.family == size.family:
            used += _cores(there)
    return used + new * _cores(size) <= quota


def size_of_cluster(body: Mapping[str, object]) -> Size | None:
    """The size of a compute's nodes; None where it says none, or one that the catalogue lacks."""
    outer = body.get("properties")
    inner = outer.get("properties") if isinstance(outer, dict) else None
    return sizes.get(str(inner.get("vmSize") or "")) if isinstance(inner, dict) else None


def size_of_job(job: JobRow | None) -> Size | None:
    """The size that a serverless job names."""
    resources = job.properties.get("resources") if job is not None else None
    return sizes.get(str(resources.get("instanceType") or "")) if isinstance(resources, dict) else None


def _cores(size: Size) -> int:
    """The vCPUs that a node counts; a size of unknown vCPUs counts nothing."""
    return size.vcpus or 0


def _plain(family: str) -> str:
    """A family's name as both its spellings have it: `standardNDASv4_A100Family`, `Standard NDASv4_A100 Family`."""
    return re.sub(r"^standard|family$|[\s_]", "", family.strip().casefold()).removesuffix("family")


AGENT = "agent.json"
"""In a node's folder: its agent's pid and start time."""

EVICTED = "evicted"
"""In a node's folder: the node was taken away, it did not break."""


class EvictError(Exception):
    """There is no such job or node to take away; the message names what there is."""


def evict(store: Store, wanted: str, node: int) -> JobRow:
    """Takes one node of a running job away, with all its processes and its disk.

    The job's runner sees it as it sees a node that breaks, and ends the job.

    Args:
        store: The sandbox's tables.
        wanted: The job's name, or its beginning up to a hyphen, as in the job's file; of a step or trial the same of
            its parent, a slash, and the step's name or the trial's number.
        node: The node's number in the job, from 0.

    Returns:
        The job.

    Raises:
        EvictError: No such job runs, or it has no such node.
    """
    job = _running(store, wanted)
    place = job_folder(store.home, job.id) / "nodes" / str(node)
    if not 0 <= node < len(job.nodes):
        message = f"{job.name} runs on {len(job.nodes)} node(s): 0 to {len(job.nodes) - 1}. There is no node {node}."
        raise EvictError(message)
    try:
        agent = json.loads((place / AGENT).read_text())
    except FileNotFoundError:
        agent = {"pid": None, "started": None}
    if not processes.alive(agent["pid"], agent["started"]):
        raise EvictError(f"Node {node} of {job.name} has no process left: the job is ending.")
    (place / EVICTED).touch()
    processes.send(agent["pid"], signal.SIGKILL)
    return job


def evicted(folder: Path, nodes: int) -> int | None:
    """The first node of a job that was taken away.

    Args:
        folder: The job's folder.
        nodes: How many it has.
    """
    return next((node for node in range(nodes) if (folder / "nodes" / str(node) / EVICTED).exists()), None)


def note_agent(place: Path, pid: int) -> None:
    """Keeps who a node's agent is, for `evict`."""
    fresh = place / f"{AGENT}.new"
    fresh.write_text(json.dumps({"pid": pid, "started": processes.started(pid)}))
    fresh.replace(place / AGENT)  # a reader sees none or all of it


def _running(store: Store, wanted: str) -> JobRow:
    running = [job for job in store.jobs.list(active=True) if job.status == "Running" and job.nodes]
    try:
        return find_job(store, wanted, running, what="running")
    except UnknownJobError as error:
        raise EvictError(str(error)) from None


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
    """The name that stands for a cluster in the nodes table while a serverless job runs."""
    return f"{job.workspace}/serverless/{job.id}"


def never(store: Store, job: JobRow) -> JobError | None:
    """The reason that a job can never have its nodes; None where it can, now or later."""
    count, compute = wanted(store, job), cluster_of(job)
    if compute is None:
        return refusal(size_of_job(job), count)
    cluster = store.resources.get(compute)
    if cluster is None:
        return JobError("ComputeNotFound", f"The compute {compute.rsplit('/', 1)[-1]} was deleted before the job ran.")
    largest = scale_of(cluster).largest
    if count > largest:
        message = (
            f"The job asks for {count} nodes, but the maximum node count of the cluster {cluster.name} is {largest}. "
            "Ask for fewer nodes or raise the cluster's maximum."
        )
        return JobError("JobNodeCountExceedsCoreQuota", message)
    return refusal(size_of_cluster(cluster.body), count)


def allocate(store: Store, job: JobRow) -> Grant | JobError | None:
    """Gives a job its nodes, idle ones first; None while it has to wait, an error when it can never run."""
    count = wanted(store, job)
    compute = cluster_of(job)
    if refused := never(store, job):
        return refused
    cluster = store.resources.get(compute) if compute is not None else None
    if compute is None or cluster is None:
        fits = holds(store, size_of_job(job), count)
        return _take(store, job, serverless(job), tuple(range(count)), count) if fits else None
    limits, size = scale_of(cluster), size_of_cluster(cluster.body)
    if cluster.state == "Deleting":
        return None
    there = store.nodes.of(compute)
    free = [node.number for node in there if node.state == "idle"]
    taken = {node.number for node in there}
    fresh = [number for number in range(limits.largest) if number not in taken][: max(0, limits.largest - len(there))]
    chosen = (free + fresh)[:count]
    new = len(set(chosen) - set(free))
    if len(chosen) < count or not holds(store, size, new):
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
            if os.environ.get(VARIABLE):  # a job of another cluster may have waited for these cores: look again at once
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
