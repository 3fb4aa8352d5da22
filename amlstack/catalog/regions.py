"""The regions of Azure, by the names that programs use; new ones open some times a year."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.base.text import hint, near
from amlstack.catalog import overlay
from amlstack.catalog.files import rows

if TYPE_CHECKING:
    from datetime import date

_MISSPELT = 0.85
"""Likeness to a known name from which on an unknown one is a mistake: `westeuropa` has 0.9."""

NEW = f" A region that is new is listed in `{overlay.NAME}` (`regions: [...]`, docs/reference/catalogue.md)."


def names() -> frozenset[str]:
    """All that the catalogue knows, sovereign clouds and early-access regions among them, and those of the team."""
    return _listed() | overlay.current().regions


@cache
def _listed() -> frozenset[str]:
    return frozenset(name for row in rows("regions") for name in row["names"])


def pair(written: str) -> str | None:
    """The region to which storage is replicated from one; None for a region without a pair."""
    return _pairs().get(code(written))


@cache
def _pairs() -> dict[str, str]:
    found: dict[str, str] = {}
    for row in rows("region_pairs"):
        for one, other in row["pairs"]:
            found |= {one: other} | ({other: one} if row["both_ways"] else {})
    return found


def checked() -> date:
    """The oldest day on which a part of the list was read."""
    days: list[date] = [row["checked"] for row in rows("regions")]
    return min(days)


def code(written: str) -> str:
    """The programmatic name: `West Europe` is `westeurope`."""
    return "".join(written.lower().split())


def finding(written: str, where: str) -> Finding | None:
    """An error for a name that is nearly one of a region, a warning for another unknown one; None for a region.

    Names that differ in their number or direction alone are no mistake: `westus4` or `denmarkwest` may be open before
    the catalogue knows it.

    Args:
        written: The name as it was written.
        where: Its place in the declaration.
    """
    name = code(written)
    if name in names():
        return None
    swapped = [each for each in names() if sorted(each) == sorted(name)]
    close = swapped or [each for each in near(name, names(), 1) if _is_misspelt(name, each)]
    remedy = f"Did you mean `{close[0]}`?" if close else hint(name, names()).strip()
    return Finding(
        "region-unknown",
        where,
        f"`{written}` is no region of Azure that the catalogue of {checked():%B %Y} knows",
        "A region is written as Azure names it, and a change of region replaces what lies in it",
        remedy + (NEW if close else "") or "Look it up: az account list-locations --query [].name.",
        Level.ERROR if close else Level.WARNING,
    )


def _is_misspelt(name: str, known: str) -> bool:
    return SequenceMatcher(None, known, name).ratio() >= _MISSPELT and _country(known) != _country(name)


def _country(name: str) -> str:
    """A name without number and direction."""
    return re.sub(r"\d|north|south|east|west|central", "", name)
