"""Results of a benchmark, and the measurement of CPU time."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))  # for parts of the tests: providers that take everything, the door to azure-ai-ml


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes:
        what: What was measured.
        value: The figure, in ``unit``.
        unit: Such as ``ms`` or ``s``.
        anchor: What it is compared with, measured in the same run; None for nothing.
        anchor_value: That one's figure, in the same unit.
        goal: What was aimed at, in words; empty for nothing.
        met: Whether the goal is reached; None without a goal.
    """

    what: str
    value: float
    unit: str
    anchor: str | None = None
    anchor_value: float | None = None
    goal: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> str:
        """The figure by its anchor's: below 1 is less than the anchor; empty without an anchor."""
        return f"{self.value / self.anchor_value:.3g}" if self.anchor_value else ""

    @property
    def aim(self) -> str:
        """The goal and whether it is reached, in words; empty for none."""
        return self.goal if self.met is None else f"{self.goal}: {'reached' if self.met else 'missed'}"


def table(rows: Iterable[Row]) -> str:
    """Rows as a Markdown table; the ratio is ours by the anchor's figure."""
    lines = ["| what | measured | against | its figure | ratio | goal |", "| --- | --: | --- | --: | --: | --- |"]
    for row in rows:
        anchor = "" if row.anchor_value is None else f"{row.anchor_value:.3g} {row.unit}"
        cells = row.what, f"{row.value:.3g} {row.unit}", row.anchor or "", anchor, row.ratio, row.aim
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def environ(**more: str) -> dict[str, str]:
    """This process's variables and more, without the one that forbids keeping bytecode: else every start compiles."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more


def spent(*, own: bool = True) -> float:
    """CPU seconds so far of the children that have ended, and of this process if asked."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)[: 1 + own]]
    return sum(one.ru_utime + one.ru_stime for one in usages)


def taken(work: Callable[[], object], *, own: bool = True) -> tuple[float, float]:
    """Seconds by the clock and of CPU that some work takes."""
    start, before = time.perf_counter(), spent(own=own)
    work()
    return time.perf_counter() - start, spent(own=own) - before


def run(words: Sequence[str], env: Mapping[str, str], folder: Path = PROJECT, *, sign: str = "") -> str:
    """Output of a command.

    Args:
        words: Program and arguments.
        env: All its variables.
        folder: Where it runs.
        sign: Words of its output by which it did what was meant, whatever its status.

    Raises:
        RuntimeError: The command failed; its figure would say nothing.
    """
    done = subprocess.run(list(words), cwd=folder, env=dict(env), capture_output=True, text=True, check=False)
    if sign not in done.stdout if sign else done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def cpu_of(command: Sequence[str], *, times: int = 5, warm: bool = True) -> float:
    """CPU seconds of a command and its children: the median of several runs, after one that leaves bytecode behind.

    Args:
        command: Program and arguments.
        times: Runs of which the median is taken.
        warm: Whether one run goes before them; without it a look takes half the time, and may meet a compilation.
    """
    figures = [taken(lambda: run(command, environ()), own=False)[1] for _ in range(warm + times)]
    return statistics.median(figures[warm:])
