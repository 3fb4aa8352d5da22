"""Benchmarks: ``python tools/bench [NAME …] [--quick | --full] [--out FOLDER] [--write]``; ``make bench``.

A benchmark is a module in ``benches/`` with ``run(*, quick: bool) -> Iterable[Row]``. What it is compared with, the
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
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from pages import Report, Section, as_markdown, goals

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent


def names() -> list[str]:
    """Every benchmark there is."""
    return sorted(path.stem for path in (HERE / "benches").glob("*.py") if not path.stem.startswith("_"))


def machine() -> str:
    """The machine in a line, as far as it bears on the figures."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    day = datetime.now(UTC).date()
    busy = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    system = f"{platform.system()} {platform.machine()}"
    return f"Measured on {day}: {cores} cores, {system}, Python {platform.python_version()}{busy}."


def measured(name: str, *, quick: bool, full: bool) -> Section:
    """Run one benchmark.

    Raises:
        Exception: Whatever it raises; a benchmark without all its figures says nothing.
    """
    module = import_module(f"benches.{name}")
    more = {"full": full} if "full" in inspect.signature(module.run).parameters else {}
    load, start = os.getloadavg()[0], time.monotonic()
    rows = []
    for row in module.run(quick=quick, **more):
        ratio = "" if row.ratio is None else f", {row.ratio:.3g} times {row.anchor}"
        print(f"{name}: {row.what}: {row.value:.3g} {row.unit}{ratio}", file=sys.stderr, flush=True)
        rows.append(replace(row, met=None) if quick else row)  # the goals are about other sizes
    seconds = time.monotonic() - start
    print(f"{name}: {seconds:.0f} s, load {load:.1f} before and {os.getloadavg()[0]:.1f} behind", file=sys.stderr)
    return Section(name, (module.__doc__ or "").strip(), tuple(rows), seconds, load)


def write(report: Report, folder: Path) -> None:
    """Writes ``benchmarks.md`` into a folder, which is made when it is not there; a kill leaves the former page."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / "benchmarks.md.new"
    fresh.write_text(as_markdown(report), "utf-8")
    fresh.replace(folder / "benchmarks.md")


def main() -> int:
    """Run the benchmarks that are named, or all; print their tables, and write them after each.

    Returns:
        1 when a benchmark failed; the others are run, printed and written nevertheless.
    """
    words = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    words.add_argument("name", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; unset: all")
    size = words.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller sizes, two minutes: a look, no figure to quote")
    size.add_argument("--full", action="store_true", help="every size of the goals, a quarter of an hour longer")
    words.add_argument(
        "--out", type=Path, metavar="FOLDER", default=PROJECT / "build" / "bench", help="results go here"
    )
    words.add_argument("--write", action="store_true", help="write docs/benchmarks.md as well")
    given = words.parse_args()
    unknown = [name for name in given.name if name not in names()]
    if unknown:
        words.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(names())}")
    if given.write and (given.quick or given.name):
        words.error("--write writes the whole page at full size: leave --quick and the names out")
    chosen = "quick" if given.quick else "full" if given.full else "usual"
    report = Report(machine(), chosen, ())
    print(report.machine)
    failed = []
    for name in given.name or names():
        try:
            section = measured(name, quick=given.quick, full=given.full)
        except Exception:  # noqa: BLE001 - one benchmark's failure must not lose the figures of the others
            traceback.print_exc()
            failed.append(name)
            continue
        print(f"\n{section.markdown()}", flush=True)
        report = replace(report, sections=(*report.sections, section))
        write(report, given.out)
    sections = report.sections
    print(f"\n{goals(sections)}\n" if not given.quick else "")
    print(f"{sum(section.seconds for section in sections):.0f} s in all; in {given.out}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    if given.write:
        write(report, PROJECT / "docs")
        print(f"written to {PROJECT / 'docs'} as well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
