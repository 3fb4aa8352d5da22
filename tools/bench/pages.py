"""The figures of one run, as the page of the docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from measure import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from measure import Row

INTRO = """\
# Benchmarks

<!-- Written by `python tools/bench --write`. -->

`make bench` measures your machine in a quarter of an hour on two cores. It prints these tables, and writes them to
`build/bench/benchmarks.md` after each benchmark. `make bench QUICK=1` takes two minutes, with smaller sizes.
`make bench FULL=1` takes half an hour, with every size of the goals. Each figure and its anchor are measured in the
same run. Times are CPU seconds of the process and its children unless a row says otherwise. No test depends on them.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """The figures of one benchmark.

    Attributes:
        name: Of its module.
        about: What is measured, and how.
        rows: In the order of the module.
        seconds: How long the benchmark took, by the clock.
        load: The machine's when it began: processes that wanted a core, over the last minute.
    """

    name: str
    about: str
    rows: tuple[Row, ...]
    seconds: float
    load: float

    @property
    def title(self) -> str:
        """Its name as a heading."""
        return self.name.replace("_", " ").capitalize()

    def markdown(self) -> str:
        """Heading, description and table."""
        took = f"Measured in {self.seconds:.0f} s, from a load of {self.load:.1f} on."
        return f"## {self.title}\n\n{self.about}\n\n{took}\n\n{table(self.rows)}"


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of one run.

    Attributes:
        machine: The machine in a line.
        size: ``usual``, ``quick`` (smaller sizes) or ``full`` (each size of the goals).
        sections: One for each benchmark.
    """

    machine: str
    size: str
    sections: tuple[Section, ...]


def as_markdown(report: Report) -> str:
    """The page of the docs."""
    parts = [INTRO, report.machine]
    if report.size != "quick":
        parts.append(f"\n{goals(report.sections)}")
    return "\n".join([*parts, *(f"\n{section.markdown()}" for section in report.sections)]) + "\n"


def goals(sections: Iterable[Section]) -> str:
    """Heading, count and table of what has a goal, the missed ones first."""
    rows = [(section, row) for section in sections for row in section.rows if row.met is not None]
    lines = [f"## Goals\n\n{sum(row.met is True for _, row in rows)} of {len(rows)} reached.\n"]
    lines += ["| what | benchmark | ratio | goal |", "| --- | --- | --: | --- |"]
    for section, row in sorted(rows, key=lambda each: each[1].met is True):
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        lines.append(f"| {row.what} | {section.title} | {ratio} | {row.aim} |")
    return "\n".join(lines)
