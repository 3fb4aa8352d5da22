"""Small tables of facts as a second public source has them, in `tests/authority/tables`."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLES = PROJECT / "tests" / "authority" / "tables"


def table(name: str) -> list[Mapping[str, str]]:
    """The rows of ``tables/<name>.csv``, each by the names of its columns."""
    with (TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
