"""The service's scheduler: jobs to nodes, first come first served per cluster; a detached runner process per job.

Sweeps and pipelines hold no nodes and have no runner: they advance here, by looking at their children. Jobs of a site
wait in Slurm's queue.

It runs in the server but owns nothing: all state is in the store and in the runner processes, so a restarted server
takes over where the last one was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.base import text
from amlstack.sandbox import processes, slurm
from amlstack.sandbox.orchestration import progress
from amlstack.sandbox.orchestration.parent import PARENTS
from amlstack.sandbox.scheduling import allocate, never, scale, wanted
from amlstack.sandbox.slurm_queue import SlurmQueue, WantedNodes
from amlstack.sandbox.store import folders
from amlstack.sandbox.store.store import JobError, JobRow, Store, cluster_of, job_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from amlstack.sandbox.slurm_queue import SlurmAnswer
    from amlstack.sandbox.store.jobs import ActiveJob


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
        if refused := never(self.store, job):
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
            words = f"Slurm's job {given.number} waits: {given.reason}"
            self.store.history.record("job", key, "Queued", words)
            self._note(key, words)
        elif (ended := slurm.end_of(given)) is not None:
            reason, words = ended
            self._end(key, "Canceled" if reason == "canceled" else "Failed", JobError("SlurmEnded", words))
        elif given.state == "RUNNING":
            profile = slurm.SlurmProfile.read(self.store.sites.of(key) or "{}")
            try:
                count = slurm.keep(self.home, key, given, profile)
            except slurm.SlurmError:  # a controller that restarts
                self.slurm.ask_again(key)
                return
            self.slurm.granted(key)
            self._note(key, f"Slurm's job {given.number} has {given.nodes}")
            with self.store.transaction():
                self.store.jobs.move(key, "Provisioning", detail=f"Slurm's job {given.number} has {given.nodes}")
                self.store.jobs.set_nodes(key, range(count))

    def _note(self, key: str, words: str) -> None:
        """Adds a line to the log that whoever follows the job sees."""
        with (job_folder(self.home, key) / "runner.log").open("a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {words}\n")

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
        if self.store.sites.of(key) is not None:  # it waits, or has nodes that no runner gives back
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
