"""The service's scheduler: nodes to jobs, first come first served per cluster; a detached runner process per job.

Nodes are allocated by quota, evictions, and what a cluster keeps by min, max and idle time. Sweeps and pipelines hold
no nodes and have no runner: they advance here, by looking at their children.

It runs in the server but owns nothing: all state is in the store and in the runner processes, so a restarted server
takes over where the last one was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.base import text
from amlstack.catalog import sizes
from amlstack.sandbox import processes, slurm
from amlstack.sandbox.orchestration import progress
from amlstack.sandbox.orchestration.parent import PARENTS
from amlstack.sandbox.slurm_queue import SlurmAnswer, SlurmQueue, WantedNodes
from amlstack.sandbox.store import folders
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
    from amlstack.sandbox.store.jobs import ActiveJob
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
    """Why a job can never have its nodes; None where it can, now or later."""
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


REST = 4
"""Rest after a look at the jobs, as a multiple of what the look took: requests have the most of the server's time."""


async def run(store: Store, home: Path, wake: asyncio.Event) -> None:
    """Schedules until it is cancelled; the runners live on.

    Args:
        store: The sandbox's tables.
        home: The sandbox's home; handed to the runners.
        wake: Set by the server whenever a job or a cluster came, changed or went.
    """
    scheduler = Scheduler(store, home, wake)
    try:
        while True:
            wake.clear()
            began = time.monotonic()
            due = scheduler.step(time.time())
            took = time.monotonic() - began
            wait = None if due is None else max(0.0, due - time.time())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), wait)
            await asyncio.sleep(took * REST)
    finally:
        scheduler.close()


@dataclass(slots=True)
class Runner:
    """A runner process that is watched: its pid, a handle that is readable at its end, whether it was asked to end."""

    pid: int
    handle: int
    asked: bool = False
    child: subprocess.Popen[bytes] | None = None


@dataclass(slots=True)
class Scheduler:
    """One server's view of the runners; `step` does all there is to do at a moment."""

    store: Store
    home: Path
    wake: asyncio.Event
    runners: dict[str, Runner] = field(default_factory=dict)
    slurm: SlurmQueue = field(init=False)

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()

        def heard() -> None:
            loop.call_soon_threadsafe(self.wake.set)

        self.slurm = SlurmQueue(self.home, heard)
        self.slurm.drop(*self.store.sites.ended())  # an earlier server may have ended before it could

    def step(self, now: float) -> float | None:
        """Takes every job and every cluster as far as they can go now.

        Returns:
            When the next idle node is due to leave or the next time limit is reached (seconds since the epoch); None
            when none is.
        """
        for key in [key for key, runner in self.runners.items() if _ended(runner)]:
            self._forget(key)
        for key, answer in self.slurm.answers().items():
            self._hear(key, answer)
        limits: list[float] = []
        held = self.store.holds_jobs()
        while True:
            jobs = self.store.jobs.active(queued=not held)  # held ones stay queued, however many
            self._look_at_jobs(jobs, held=held)
            moved, limits = self._look_at_parents(jobs, now, held=held)
            if not moved:
                break
        self._tidy()
        return min([*limits, *_known(scale(self.store, now))], default=None)

    def _look_at_jobs(self, jobs: Iterable[ActiveJob], *, held: bool) -> None:
        full: set[str] = set()
        for job in jobs:
            if job.type in PARENTS:
                continue
            if job.id in self.runners:
                self._cancel(job)
            elif job.runner_pid is not None:
                self._take_over(job)
            elif job.cancel_requested:
                self._end(job.id, "Canceled")
            elif job.site is not None and not job.placed:
                if not held:
                    self._want(job.id, job.site)
            elif job.placed or not (held or job.cluster in full):
                self._try_place(job, full)
            elif job.status == "NotStarted":
                self.store.jobs.move(job.id, "Queued", expect=("NotStarted",))

    def _want(self, key: str, site: str) -> None:
        """Has a job wait for nodes of Slurm, which keeps the queue."""
        if key in self.slurm or (job := self.store.jobs.get(key)) is None:
            return
        if isinstance(refused := never(self.store, job), JobError):
            self._end(key, "Failed", refused)
            return
        limit = (job.properties.get("limits") or {}).get("timeout")
        timeout = text.seconds(str(limit).upper()) if limit else None
        self.slurm.want(key, WantedNodes(slurm.SlurmProfile.read(site), wanted(self.store, job), timeout))
        self.store.jobs.move(key, "Queued", expect=("NotStarted",))

    def _hear(self, key: str, answer: SlurmAnswer) -> None:
        """Slurm's answer on a waiting job: a refusal, a reason to wait, an end, or its nodes."""
        job, given = self.store.jobs.get(key), answer.allocation
        if job is None or not job.active:
            self.slurm.drop(key)
        elif given is None:
            self._end(key, "Failed", JobError("SlurmRefused", answer.refusal))
        elif given.waits:
            self.store.history.record("job", key, "Queued", f"Slurm's job {given.number} waits: {given.reason}")
        elif (ended := slurm.end_of(given)) is not None:
            reason, words = ended
            self._end(key, "Canceled" if reason == "canceled" else "Failed", JobError("SlurmEnded", words))
        elif given.state == "RUNNING":
            count = slurm.keep(self.home, key, given, slurm.SlurmProfile.read(self.store.sites.of(key) or "{}"))
            self.slurm.granted(key)
            with self.store.transaction():
                self.store.jobs.move(key, "Provisioning", detail=f"Slurm's job {given.number} has {given.nodes}")
                self.store.jobs.set_nodes(key, range(count))

    def _look_at_parents(self, jobs: Iterable[ActiveJob], now: float, *, held: bool) -> tuple[bool, list[float]]:
        """Takes every sweep and pipeline as far as it can go; whether one moved, and when time limits are reached."""
        rows = [
            self.store.jobs.get(job.id)
            for job in jobs
            if job.type in PARENTS and not (held and job.status == "NotStarted")
        ]
        steps = [progress.advance(self.store, row, now) for row in rows if row is not None and row.active]
        return any(moved for moved, _ in steps), [due for _, due in steps if due is not None]

    def close(self) -> None:
        """Stops watching; the runners go on, and what waits for Slurm waits there."""
        self.slurm.close()
        for key in tuple(self.runners):
            self._unwatch(key)

    def _try_place(self, job: ActiveJob, full: set[str]) -> None:
        """One job that cannot be started must not keep all others from starting."""
        try:
            if (row := self.store.jobs.get(job.id)) is not None:
                self._place(row, full)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this job
            traceback.print_exc()
            self._end(job.id, "Failed", JobError("SandboxError", f"The sandbox could not start the job: {error}"))

    def _place(self, job: JobRow, full: set[str]) -> None:
        """Gives a waiting job its nodes and starts it, or lets it wait behind the first that does not fit."""
        if job.nodes:  # the last server had placed it and ended before its runner had claimed the job
            self._start(job)
            return
        with self.store.transaction():
            granted = allocate(self.store, job)
            if isinstance(granted, JobError):
                self.store.jobs.move(job.id, "Failed", error=granted)
                return
            self.store.jobs.move(job.id, "Queued", expect=("NotStarted",))
            if granted is None:
                full.add(cluster_of(job) or "")
                return
            if granted.new:
                self.store.jobs.move(job.id, "Provisioning", detail=f"{granted.new} node(s)")
        self._start(job)

    def _start(self, job: JobRow) -> None:
        folder = job_folder(self.home, job.id)
        folder.mkdir(parents=True, exist_ok=True)
        environ = os.environ | {processes.MARK: processes.mark(self.home, job.id)}
        with (folder / "runner.log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "amlstack.sandbox.runner", str(self.home), job.id],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environ,
                start_new_session=True,
            )
        self._watch(job.id, Runner(child.pid, os.pidfd_open(child.pid), child=child))

    def _take_over(self, job: ActiveJob | JobRow) -> None:
        """Watches the runner that an earlier server started; one that is gone has left its job behind."""
        if job.runner_pid is not None and processes.alive(job.runner_pid, job.runner_started):
            with contextlib.suppress(ProcessLookupError):
                self._watch(job.id, Runner(job.runner_pid, os.pidfd_open(job.runner_pid)))
                self._cancel(job)
                return
        self._lost(job)

    def _cancel(self, job: ActiveJob | JobRow) -> None:
        runner = self.runners[job.id]
        # Before it has claimed its job a runner may not yet listen; it looks at the request when it does.
        if job.cancel_requested and not runner.asked and job.runner_pid == runner.pid:
            runner.asked = True
            processes.send(runner.pid, signal.SIGTERM)

    def _forget(self, key: str) -> None:
        """A runner has ended: normally with its job; else the job is ended here."""
        self._unwatch(key)
        job = self.store.jobs.get(key)
        if job is None or not job.active:
            return
        if processes.alive(job.runner_pid, job.runner_started):  # ours was one too many
            self._take_over(job)
        else:
            self._lost(job)

    def _lost(self, job: ActiveJob | JobRow) -> None:
        processes.end_marked(self.home, job.id)
        folders.remove_temporary(self.home, job.id)
        if self.store.sites.of(job.id) is not None:
            self.slurm.drop(job.id)
        if job.cancel_requested:
            self._end(job.id, "Canceled")
            return
        log = job_folder(self.home, job.id) / "runner.log"
        message = f"The sandbox's runner of this job ended before the job did; its processes were ended. Its log: {log}"
        self._end(job.id, "Failed", JobError("RunnerLost", message))

    def _end(self, key: str, status: str, error: JobError | None = None) -> None:
        with self.store.transaction():
            self.store.jobs.move(key, status, error=error)
            self.store.jobs.set_runner(key, None, None)
            self.store.nodes.release(key)
        if key in self.slurm:
            self.slurm.drop(key)

    def _tidy(self) -> None:
        """Nodes held by a job that ended or was deleted become free."""
        for key in {node.job for node in self.store.nodes.all() if node.job is not None}:
            job = self.store.jobs.get(key)
            if job is None or not job.active:
                self.store.nodes.release(key)

    def _watch(self, key: str, runner: Runner) -> None:
        self.runners[key] = runner
        asyncio.get_running_loop().add_reader(runner.handle, self.wake.set)

    def _unwatch(self, key: str) -> None:
        runner = self.runners.pop(key)
        asyncio.get_running_loop().remove_reader(runner.handle)
        os.close(runner.handle)
        if runner.child is not None:
            runner.child.poll()
            runner.child.returncode = runner.child.returncode or 0  # it may outlive this server and is not waited for


def _ended(runner: Runner) -> bool:
    poll = select.poll()
    poll.register(runner.handle, select.POLLIN)
    return bool(poll.poll(0))


def _known(due: float | None) -> tuple[float, ...]:
    return () if due is None else (due,)
