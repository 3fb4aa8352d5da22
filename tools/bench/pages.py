"""The figures of one run, as the page of the docs and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from measure import table

if TYPE_CHECKING:
    from measure import Row

INTRO = """\
# Benchmarks

<!-- Written by `python tools/bench --write`. -->

`make bench` prints these tables for your machine, `make bench QUICK=1` smaller ones. What each figure is
compared with is measured in the same run; times are CPU seconds of this process and its children unless a row says
otherwise. They are measurements, not tests. The same figures as data: [benchmarks.json](benchmarks.json).

![Each figure beside its anchor](benchmarks.svg)
"""


@dataclass(frozen=True, slots=True)
class Section:
    """The figures of one benchmark.

    Attributes:
        name: Of its module.
        about: What is measured, and how.
        rows: In the order of the module.
        seconds: How long the benchmark took, by the clock.
    """

    name: str
    about: str
    rows: tuple[Row, ...]
    seconds: float

    @property
    def title(self) -> str:
        """Its name as a heading."""
        return self.name.replace("_", " ").capitalize()

    def markdown(self) -> str:
        """Heading, description and table."""
        return f"## {self.title}\n\n{self.about}\n\n{table(self.rows)}"


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of one run.

    Attributes:
        machine: The machine in a line.
        quick: Whether sizes were reduced.
        sections: One for each benchmark.
    """

    machine: str
    quick: bool
    sections: tuple[Section, ...]


def as_markdown(report: Report) -> str:
    """The page of the docs."""
    return "\n".join([INTRO, report.machine, *(f"\n{section.markdown()}" for section in report.sections)]) + "\n"


def as_json(report: Report) -> str:
    """The figures as data; `seconds` is how long a benchmark took, `ratio` the figure by its anchor's."""
    sections = [
        {
            "name": section.name,
            "seconds": round(section.seconds, 1),
            "rows": [{**asdict(row), "ratio": row.ratio} for row in section.rows],
        }
        for section in report.sections
    ]
    return json.dumps({"machine": report.machine, "quick": report.quick, "sections": sections}, indent=2) + "\n"
