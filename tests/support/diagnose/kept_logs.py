"""Logs kept as files: folders of ``logs/`` with what is true of each, and single lines by the code that they give."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from amlstack.base.paths import PROJECT
from amlstack.diagnose import diagnose

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis

HERE = PROJECT / "tests" / "diagnose"
LOGS = HERE / "logs"
CASES = {str(file.parent.relative_to(LOGS)): file.parent for file in sorted(LOGS.rglob("expected.json"))}
"""``topic/case`` → a folder of logs as a launcher leaves it; `diagnose` does not read ``expected.json``."""


def expected(folder: Path) -> dict[str, Any]:
    """Fields of the verdict on a case."""
    fields: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return fields


@cache
def verdict(name: str) -> Diagnosis:
    """The verdict on a case; what several tests ask for is worked out once."""
    return diagnose([CASES[name]])


def lines(file: Path) -> tuple[str, ...]:
    return tuple(file.read_text().splitlines())


LINES = {file.stem: lines(file) for file in sorted((HERE / "lines").glob("*/*.txt"))}
"""Code of a signature → lines that must give it alone."""
HARMLESS = lines(HERE / "lines" / "harmless.txt")
HEALTHY = lines(HERE / "lines" / "healthy.txt")
