"""Results of a benchmark, and the measurement of CPU time."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


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
    def ratio(self) -> float | None:
        """The figure by its anchor's: below 1 is less than the anchor; None without an anchor."""
        return self.value / self.anchor_value if self.anchor_value else None

    @property
    def aim(self) -> str:
        """The goal and whether it is reached, in words; empty for none."""
        return self.goal if self.met is None else f"{self.goal}: {'reached' if self.met else 'missed'}"


def table(rows: Iterable[Row]) -> str:
    """Rows as a Markdown table; the ratio is ours by the anchor's figure."""
    lines = ["| what | measured | against | its figure | ratio | goal |", "| --- | --: | --- | --: | --: | --- |"]
    for row in rows:
        anchor = "" if row.anchor_value is None else f"{row.anchor_value:.3g} {row.unit}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        cells = row.what, f"{row.value:.3g} {row.unit}", row.anchor or "", anchor, ratio, row.aim
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds that this process spends on some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def cpu_of(command: Sequence[str], *, times: int = 5, warm: bool = True, env: Mapping[str, str] | None = None) -> float:
    """CPU seconds of a command and its children: the median of several runs, after one that leaves bytecode behind.

    Only the very first run of a program compiles it; a shell that forbids keeping bytecode would have every run do so.

    Args:
        command: Program and arguments.
        times: Runs of which the median is taken.
        warm: Whether one run goes before them; without it a look takes half the time, and may meet a compilation.
        env: Variables beside this process's own.

    Raises:
        RuntimeError: The command failed; its figure would say nothing.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    taken = []
    for _ in range(warm + times):
        process = subprocess.Popen(
            list(command),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**kept, **(env or {})},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            message = f"{' '.join(command)} ended with {process.returncode}"
            raise RuntimeError(message)
        taken.append(usage.ru_utime + usage.ru_stime)
    return statistics.median(taken[warm:])
