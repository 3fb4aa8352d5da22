"""A size that will be gone soon deserves a word while there is time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.catalog.sizes import substitutes
from policies.checks.examples import cluster
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="size-retiring",
    title="A size should not be about to retire.",
    what="Advises against a size whose announced retirement lies within so many days, and names a living one near it.",
    why=(
        "A cluster cannot change its size: it is replaced, quota for the new one takes weeks, and on the day of the "
        "retirement its nodes are taken away."
    ),
    example=cluster(size="Standard_HC44rs   # announced for 2027-05-31"),
    instead=cluster(size="Standard_HB120rs_v3"),
    level="advisory",
    settings=(Setting("days", "integer", "How many days ahead to look.", 180),),
    sample={"days": 400},
    not_exported="a condition cannot say how many days are left; export again and size-retired follows",
)


def check(size: Size, *, on: date, days: int, where: str = "size") -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement.
        days: How many days ahead to look.
        where: Path of the size in the declaration.
    """
    if size.retired is None or not on < size.retired <= on + timedelta(days=days):
        return None
    nearest = substitutes.nearest_compliant(size, size.retired)
    return Finding(
        RULE.code,
        where,
        seen=f"{size.name} will be retired on {size.retired.isoformat()}, in {(size.retired - on).days} days",
        rule=f"A size should outlive the next {days} days",
        remedy=f"Plan for {nearest.name} ({nearest.describe()})" if nearest else "",
        level=Level.WARNING,
    )
