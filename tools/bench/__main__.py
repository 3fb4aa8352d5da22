"""Benchmarks: ``python tools/bench [NAME …] [--quick | --full] [--out FOLDER] [--write]``; ``make bench``.

A benchmark is a function that yields rows; its docstring is what the page says of them. What it is compared with, the
anchor, is measured in the same run, so that a busy or slow machine moves both. Nothing here is a test: nothing fails
for time.
"""

from __future__ import annotations

import argparse
import inspect
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import bulk
import checks
import scale
import verbs
from measure import PROJECT, Row, table

BENCHMARKS: dict[str, Callable[..., Iterator[Row]]] = {
    "diagnosis": bulk.diagnosis,
    "job_files": checks.job_files,
    "rehearsal": verbs.rehearsal,
    "scale": scale.scale,
    "second_up": verbs.second_up,
    "settings": checks.settings,
    "snapshots": bulk.snapshots,
    "start": checks.start,
}
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
    """The figures of one benchmark: its title, its text with the table, and its rows."""

    title: str
    text: str
    rows: tuple[Row, ...]


def machine() -> str:
    """The machine in a line, as far as it bears on the figures."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    load = f"load {os.getloadavg()[0]:.1f} at the start"
    return f"Measured on {datetime.now(UTC).date()}: {cores} cores, {system}, {load}."


def measured(name: str, *, quick: bool, full: bool) -> Section:
    """The figures of a benchmark, which raises what it likes: without all its figures it says nothing."""
    benchmark = BENCHMARKS[name]
    load, start = os.getloadavg()[0], time.monotonic()
    rows = []
    for row in benchmark(quick=quick, full=full) if name == "scale" else benchmark(quick=quick):
        against = f", {row.ratio} times {row.anchor}" if row.ratio else ""
        print(f"{name}: {row.what}: {row.value:.3g} {row.unit}{against}", file=sys.stderr, flush=True)
        rows.append(replace(row, met=None) if quick else row)  # the goals are about other sizes
    title = name.replace("_", " ").capitalize()
    took = f"Measured in {time.monotonic() - start:.0f} s, from a load of {load:.1f} on."
    return Section(title, f"## {title}\n\n{inspect.getdoc(benchmark)}\n\n{took}\n\n{table(rows)}", tuple(rows))


def goals(sections: Sequence[Section]) -> str:
    """Heading, count and table of what has a goal, the missed ones first."""
    rows = [(section, row) for section in sections for row in section.rows if row.met is not None]
    lines = [f"## Goals\n\n{sum(row.met is True for _, row in rows)} of {len(rows)} reached.\n"]
    lines += ["| what | benchmark | ratio | goal |", "| --- | --- | --: | --- |"]
    for section, row in sorted(rows, key=lambda each: each[1].met is True):
        lines.append(f"| {row.what} | {section.title} | {row.ratio} | {row.aim} |")
    return "\n".join(lines)


def write(text: str, folder: Path) -> None:
    """Writes ``benchmarks.md`` into a folder, which is made when it is not there; a kill leaves the former page."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / "benchmarks.md.new"
    fresh.write_text(text, "utf-8")
    fresh.replace(folder / "benchmarks.md")


def main() -> int:
    """Run the benchmarks that are named, or all; print their tables, and write them after each.

    Returns:
        1 when a benchmark failed; the others are run, printed and written nevertheless.
    """
    words = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    words.add_argument("name", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; unset: all")
    size = words.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller sizes, two minutes: a look, no figure to quote")
    size.add_argument("--full", action="store_true", help="every size of the goals, a quarter of an hour longer")
    words.add_argument(
        "--out", type=Path, metavar="FOLDER", default=PROJECT / "build" / "bench", help="results go here"
    )
    words.add_argument("--write", action="store_true", help="write docs/maintain/benchmarks.md as well")
    given = words.parse_args()
    if unknown := [name for name in given.name if name not in BENCHMARKS]:
        words.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if given.write and (given.quick or given.name):
        words.error("--write writes the whole page at full size: leave --quick and the names out")
    head, text = machine(), ""
    print(head)
    sections: list[Section] = []
    failed = []
    for name in given.name or BENCHMARKS:
        try:
            sections.append(measured(name, quick=given.quick, full=given.full))
        except Exception:  # noqa: BLE001 - one benchmark's failure must not lose the figures of the others
            traceback.print_exc()
            failed.append(name)
            continue
        print(f"\n{sections[-1].text}", flush=True)
        parts = [INTRO + "\n" + head, *([] if given.quick else [goals(sections)]), *(one.text for one in sections)]
        text = "\n\n".join(parts) + "\n"
        write(text, given.out)
    if not given.quick:
        print(f"\n{goals(sections)}\n")
    print(f"results are in {given.out}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    if given.write:
        write(text, PROJECT / "docs/maintain")
        print(f"written to {PROJECT / 'docs/maintain'} as well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
