"""Benchmarks: ``python tools/bench [NAME …] [--quick] [--json FILE] [--write]``; ``make bench`` runs them all.

A benchmark is a module in ``benches/`` with ``run(*, quick: bool) -> Iterable[Row]``. What it is compared with, the
anchor, is measured in the same run, so that a busy or slow machine moves both. Nothing here is a test: nothing fails
for time.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import traceback
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from pages import Report, Section, as_json, as_markdown
from plot import as_svg

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs"


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


def measured(name: str, *, quick: bool) -> Section:
    """Run one benchmark.

    Raises:
        Exception: Whatever it raises; a benchmark without all its figures says nothing.
    """
    module = import_module(f"benches.{name}")
    start = time.monotonic()
    rows = []
    for row in module.run(quick=quick):
        print(f"{name}: {row.what}: {row.value:.3g} {row.unit}", file=sys.stderr, flush=True)
        rows.append(row)
    return Section(name, (module.__doc__ or "").strip(), tuple(rows), time.monotonic() - start)


def main() -> int:
    """Run the benchmarks that are named, or all; print their tables, and write them where that is asked for.

    Returns:
        1 when a benchmark failed; the others are run and printed nevertheless, and nothing is written.
    """
    words = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    words.add_argument("name", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; unset: all")
    words.add_argument("--quick", action="store_true", help="smaller sizes: a look, no figure to quote")
    words.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE as JSON")
    words.add_argument("--write", action="store_true", help="write docs/benchmarks.md, .json and .svg as well")
    result = words.parse_args()
    unknown = [name for name in result.name if name not in names()]
    if unknown:
        words.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(names())}")
    if result.write and (result.quick or result.name):
        words.error("--write writes the whole page at full size: leave --quick and the names out")
    about, sections, failed = machine(), [], []
    print(about)
    for name in result.name or names():
        try:
            section = measured(name, quick=result.quick)
        except Exception:  # noqa: BLE001 - one benchmark's failure must not lose the figures of the others
            traceback.print_exc()
            failed.append(name)
            continue
        print(f"\n{section.markdown()}", flush=True)
        sections.append(section)
    report = Report(about, result.quick, tuple(sections))
    print(f"\n{sum(section.seconds for section in sections):.0f} s in all")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    if result.json:
        result.json.write_text(as_json(report))
    if result.write:
        (DOCS / "benchmarks.md").write_text(as_markdown(report))
        (DOCS / "benchmarks.json").write_text(as_json(report))
        (DOCS / "benchmarks.svg").write_text(as_svg(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
