"""The jobs that wait for nodes of Slurm: it keeps the queue, and is asked for all of them at once.

Commands of Slurm take their time, so a thread of its own runs them; the scheduler reads what was found out.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.sandbox import slurm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amlstack.sandbox.slurm import Allocation, SlurmProfile

EVERY = 1.0
"""Seconds between two looks at the queue, at least: a look's own time, four times, is waited for too."""


@dataclass(frozen=True, slots=True)
class WantedNodes:
    """The nodes that a job wants, as `slurm.submit` takes them."""

    profile: SlurmProfile
    nodes: int
    timeout: float | None


@dataclass(frozen=True, slots=True)
class SlurmAnswer:
    """The answer to a job's wish for nodes: an allocation that waits or runs, or the words of a refusal."""

    allocation: Allocation | None = None
    refusal: str = ""


@dataclass(slots=True)
class SlurmQueue:
    """The jobs of a sandbox that wait.

    Attributes:
        home: The sandbox's.
        heard: Is called from the thread when there is an answer.
    """

    home: Path
    heard: Callable[[], None]
    _wanted: dict[str, WantedNodes] = field(default_factory=dict)
    _submitted: set[str] = field(default_factory=set)
    _dropped: set[str] = field(default_factory=set)
    _told: dict[str, SlurmAnswer] = field(default_factory=dict)
    _answers: dict[str, SlurmAnswer] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None
    _over: bool = False

    def __contains__(self, job: str) -> bool:
        """True where a job waits here."""
        return job in self._wanted

    def want(self, job: str, nodes: WantedNodes) -> None:
        """Has a job wait; one that an earlier server had submitted is found by its name."""
        with self._changed:
            self._wanted[job] = nodes
            self._begin()

    def drop(self, *jobs: str) -> None:
        """Gives up the nodes of jobs, and their places in the queue."""
        with self._changed:
            for job in jobs:
                self._wanted.pop(job, None)
                self._dropped.add(job)
            if jobs:
                self._begin()

    def granted(self, job: str) -> None:
        """Takes a job that has its nodes out of the queue; it keeps them."""
        with self._changed:
            self._wanted.pop(job, None)

    def ask_again(self, job: str) -> None:
        """Has the next look answer for a job, also where nothing changed."""
        with self._changed:
            self._told.pop(job, None)

    def answers(self) -> dict[str, SlurmAnswer]:
        """The answers that are new since the last time, by job."""
        with self._changed:
            found, self._answers = self._answers, {}
        return {job: answer for job, answer in found.items() if job in self._wanted}

    def close(self) -> None:
        """Ends the thread once what was given up is cancelled; what waits in Slurm's queue stays there."""
        with self._changed:
            self._over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="slurm", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _run(self) -> None:
        while True:
            began = time.monotonic()
            self._look()
            took = time.monotonic() - began
            with self._changed:
                if not self._over:
                    waits = max(EVERY, 4 * took) if self._wanted or self._dropped else None
                    new = self._wanted.keys() - self._submitted or self._dropped
                    if not new or waits is None or took > EVERY:
                        self._changed.wait(waits)
                if self._over and (not self._dropped or took > EVERY):
                    return

    def _look(self) -> None:
        """Asks once for all jobs, submits those that Slurm does not know, and cancels those that were given up."""
        with self._changed:
            wanted, dropped = dict(self._wanted), set(self._dropped)
        if not wanted and not dropped:
            return
        try:
            there = slurm.allocations(self.home)
        except slurm.SlurmError as error:  # a controller that restarts: the jobs wait on
            new = {job: str(error) for job in wanted.keys() - self._submitted if not slurm.is_here()}
            for job, words in new.items():
                self._tell(job, SlurmAnswer(refusal=words))
            return
        slurm.cancel(*(there[job].number for job in dropped & there.keys()))
        with self._changed:
            self._dropped -= dropped
        for job, nodes in wanted.items():
            if job in there:
                self._submitted.add(job)
                self._tell(job, SlurmAnswer(there[job]))
            elif job in self._submitted:
                self._tell(job, SlurmAnswer(refusal="Slurm no longer knows the job's allocation."))
            elif self._over or job not in self._wanted:
                continue
            else:
                self._submit(job, nodes)

    def _submit(self, job: str, nodes: WantedNodes) -> None:
        try:
            slurm.submit(self.home, job, nodes.profile, nodes.nodes, nodes.timeout)
        except (slurm.SlurmError, OSError) as error:  # a file system without pipes, or a full one
            self._tell(job, SlurmAnswer(refusal=f"Slurm refused the job: {error}"))
            return
        self._submitted.add(job)

    def _tell(self, job: str, answer: SlurmAnswer) -> None:
        with self._changed:
            if self._told.get(job) == answer:
                return
            self._told[job] = self._answers[job] = answer
        self.heard()
