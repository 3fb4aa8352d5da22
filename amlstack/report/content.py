"""The content of a report as plain values, and its words for numbers, times and signals."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.diagnose import Diagnosis


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a job's life: a status, and when it began and ended (seconds since the epoch; None: not yet)."""

    name: str
    began: float
    ended: float | None


@dataclass(frozen=True, slots=True)
class RankOutcome:
    """One training process.

    Attributes:
        rank: Its number.
        node: Its node's number or name; None when unknown.
        local: Its number on the node; None when unknown.
        code: Exit code, negative for a signal; None while it runs, or when unknown.
        began, ended: Seconds since the epoch; None when unknown.
        stopped: It ended by SIGTERM, with which a job is stopped.
    """

    rank: int
    node: str | None
    local: int | None = None
    code: int | None = None
    began: float | None = None
    ended: float | None = None

    @property
    def stopped(self) -> bool:
        """It ended by SIGTERM."""
        return self.code == -15


@dataclass(frozen=True, slots=True)
class OutputFile:
    """An output: its name and its size in bytes, None for what is not on this disk."""

    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ChildJob:
    """A step or a trial.

    Attributes:
        place: In the parent: the step's name, the trial's number.
        job: Its job's name.
        status: The job's.
        values: Of a trial the hyperparameters that were drawn.
        metric: Of a trial the last value of the sweep's primary metric; empty where it logged and printed none.
        best: It is the best trial, as the service has it.
    """

    place: str
    job: str
    status: str
    values: Mapping[str, str] = field(default_factory=dict)
    metric: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One curve.

    Attributes:
        name: As it was printed.
        points: Pairs of x and y; y is NaN where the script printed one.
        axis: What x counts: ``step``, ``epoch``, …, or ``print`` when lines name no step.
        source: Where the numbers come from, for the reader.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    axis: str
    source: str

    @property
    def loss(self) -> bool:
        """True where it is a loss."""
        return "loss" in self.name.lower()


@dataclass(frozen=True, slots=True)
class LogPart:
    """Lines that stand together: the 1-based number of the first, their texts."""

    first: int
    lines: tuple[str, ...]

    @property
    def after(self) -> int:
        """The number of the line after the last."""
        return self.first + len(self.lines)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of one log that is shown.

    Attributes:
        name: The log.
        rank, node: Whose it is; None when unknown.
        size: Bytes in all.
        lines: Lines in all.
        parts: What is shown, in order.
        marks: Line number → ``cause`` or ``victim``.
    """

    name: str
    rank: int | None
    node: str | None
    size: int
    lines: int
    parts: tuple[LogPart, ...]
    marks: Mapping[int, str] = field(default_factory=dict)

    @property
    def hidden(self) -> int:
        """The number of lines that are left out."""
        return self.lines - sum(len(part.lines) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one page shows.

    Attributes:
        title: The job's name, or the folder's.
        status: The job's; empty for a folder.
        active: The job has not ended: all of this is so far.
        made: When this was gathered, seconds since the epoch.
        facts: Names and values of the declaration.
        error: The service's message about the end; empty for none.
        verdict: The diagnosis of the logs; None where there is nothing to explain.
        phases: The job's statuses in their order.
        ranks: In the order of their numbers.
        series: Numbers over steps.
        numbers: Last values without steps, by name, as text.
        excerpts: The logs.
        outputs: What the job wrote.
        children: Steps or trials.
        metric: Name of a sweep's primary metric; empty for other jobs.
        notes: What a reader should know about the report itself.
        compared: Runs side by side: a row with their names, then a name and a text of each run.
    """

    title: str
    status: str
    active: bool
    made: float
    facts: tuple[tuple[str, str], ...] = ()
    error: str = ""
    verdict: Diagnosis | None = None
    phases: tuple[Phase, ...] = ()
    ranks: tuple[RankOutcome, ...] = ()
    series: tuple[Series, ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    outputs: tuple[OutputFile, ...] = ()
    children: tuple[ChildJob, ...] = ()
    metric: str = ""
    notes: tuple[str, ...] = ()
    compared: tuple[tuple[str, ...], ...] = ()


def moment(seconds: float) -> str:
    """``2026-11-21 14:02:07 UTC``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: float) -> str:
    """``0.02 s``, ``47 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 9.95:
        return f"{seconds:.2g} s" if seconds >= 0.005 else "0 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(count: int) -> str:
    """Bytes with a unit: ``512 B``, ``3.4 KiB``."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def number(value: float) -> str:
    """Five digits at most."""
    return f"{value:.5g}" if math.isfinite(value) else str(value)


def ended(code: int | None, *, running: bool) -> str:
    """The end of a process."""
    if code is None:
        return "running" if running else "end unknown"
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def count(amount: int, what: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{amount:,} {what}{'' if amount == 1 else 's'}"
