"""Benchmarks: ``python tools/bench [NAME …] [--write]``; ``make bench`` runs them all.

A benchmark is a module in ``benches/`` with ``run() -> Iterable[Row]``. What it is compared with, the anchor, is
measured in the same run, so that a busy or slow machine moves both. Nothing here is a test: nothing fails for time.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from measure import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from measure import Row

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "benchmarks.md"
INTRO = """\
# Benchmarks

<!-- Written by `python tools/bench --write`. -->

`make bench` prints these tables for your machine. What each figure is compared with is measured in the same run; times
are CPU seconds of this process and its children unless a row says otherwise. They are measurements, not tests.
"""


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


def main() -> int:
    """Run the benchmarks that are named, or all, and print or write their tables."""
    words = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    words.add_argument("name", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; unset: all")
    words.add_argument("--write", action="store_true", help="write docs/benchmarks.md as well")
    result = words.parse_args()
    text = [INTRO, machine()]
    print(text[1])
    for name in result.name or names():
        module = import_module(f"benches.{name}")
        rows: Iterable[Row] = module.run()
        section = f"\n## {name.replace('_', ' ').capitalize()}\n\n{(module.__doc__ or '').strip()}\n\n{table(rows)}"
        print(section, flush=True)
        text.append(section)
    if result.write:
        PAGE.write_text("\n".join(text) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
