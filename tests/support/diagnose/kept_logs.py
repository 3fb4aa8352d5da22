"""Logs kept as files: folders of ``logs/`` with what is true of each, and single lines by the code that they give."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from amlstack.base.paths import PROJECT
from amlstack.diagnose import judge, read, with_stand_in

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis, LogFiles

HERE = PROJECT / "tests" / "diagnose"
LOGS = HERE / "logs"
CASES = {str(file.parent.relative_to(LOGS)): file.parent for file in sorted(LOGS.rglob("expected.json"))}
"""``topic/case`` → a folder of logs as a launcher leaves it; `diagnose` does not read ``expected.json``."""


def expected(folder: Path) -> dict[str, Any]:
    """Fields of the verdict on a case."""
    fields: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return fields


@cache
def found(name: str) -> LogFiles:
    """The logs of a case, which are read once for several tests."""
    return read([CASES[name]])


@cache
def verdict(name: str) -> Diagnosis:
    return with_stand_in(judge(found(name)), [CASES[name]])


def lines(file: Path) -> tuple[str, ...]:
    return tuple(file.read_text().splitlines())


LINES = {file.stem: lines(file) for file in sorted((HERE / "lines").glob("*/*.txt"))}
"""Code of a signature → lines that must give it alone."""
HARMLESS = lines(HERE / "lines" / "harmless.txt")
HEALTHY = lines(HERE / "lines" / "healthy.txt")
