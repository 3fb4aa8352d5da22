"""Whether the pack's catalogue is older than it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.catalog import sizes
from policies.pack_rules import CATALOGUE_OLD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date


def check(on: date, *, days: int, version: str) -> Iterator[Finding]:
    """Judge the catalogue as of a day.

    Args:
        on: The day of the judgement.
        days: How many days ago it may have been checked last.
        version: The pack's version.
    """
    checked, newest = sizes.last_checked(), sizes.last_retirement()
    if newest is not None and on > newest:
        seen = f"Version {version} knows no retirement after {newest.isoformat()}, and that day has passed"
    elif (on - checked).days > days:
        seen = f"The catalogue of version {version} was last checked in {checked:%Y-%m}"
    else:
        return
    yield Finding(
        CATALOGUE_OLD.code,
        "",
        seen=seen,
        rule="A pack knows the retirements of today",
        remedy="Pin a newer version of the pack",
        level=Level.WARNING,
    )
