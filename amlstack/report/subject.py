"""What a report tells: plain values, gathered from a job of the sandbox or from a folder of logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amlstack.diagnose import Diagnosis
    from amlstack.report.excerpts import Excerpt
    from amlstack.report.series import Series


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a job's life: a status, and when it began and ended (seconds since the epoch; None: not yet)."""

    name: str
    began: float
    ended: float | None


@dataclass(frozen=True, slots=True)
class Rank:
    """One training process.

    Attributes:
        rank: Its number.
        node: Its node's number or name; None when unknown.
        local: Its number on the node; None when unknown.
        code: Exit code, negative for a signal; None while it runs, or when unknown.
        began, ended: Seconds since the epoch; None when unknown.
        stopped: It ended by the signal with which a job is told to stop.
    """

    rank: int
    node: str | None
    local: int | None = None
    code: int | None = None
    began: float | None = None
    ended: float | None = None

    @property
    def stopped(self) -> bool:
        """It ended because it was told to."""
        return self.code == -15


@dataclass(frozen=True, slots=True)
class File:
    """An output: its name and its size in bytes, None for what is not on this disk."""

    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Child:
    """A step or a trial: its place in the parent, its job's name and status."""

    place: str
    job: str
    status: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one page shows.

    Attributes:
        title: The job's name, or the folder's.
        status: The job's; empty for a folder.
        active: The job has not ended: all of this is so far.
        made: When this was gathered, seconds since the epoch.
        facts: Names and values of the declaration.
        error: What the service said about the end; empty for nothing.
        verdict: What the logs say about it; None where there is nothing to explain.
        phases: The job's statuses in their order.
        ranks: In the order of their numbers.
        series: Numbers over steps.
        numbers: Last values without steps, by name, as text.
        excerpts: The logs.
        outputs: What the job wrote.
        children: Steps or trials.
        notes: What a reader should know about the report itself.
    """

    title: str
    status: str
    active: bool
    made: float
    facts: tuple[tuple[str, str], ...] = ()
    error: str = ""
    verdict: Diagnosis | None = None
    phases: tuple[Phase, ...] = ()
    ranks: tuple[Rank, ...] = ()
    series: tuple[Series, ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    outputs: tuple[File, ...] = ()
    children: tuple[Child, ...] = ()
    notes: tuple[str, ...] = ()
