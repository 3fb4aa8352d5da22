"""Only regions that the team approved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import cluster
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

RULE = Rule(
    code="region-approved",
    title="Resources lie in approved regions.",
    what=(
        "Refuses a resource whose location is not among the approved regions; written names and codes (`West "
        "Europe`, `westeurope`) are the same. Silent until regions are configured."
    ),
    why=(
        "Data may have to stay where the law wants it, quota for InfiniBand sizes exists in few regions, and "
        "traffic between regions is slow and paid for."
    ),
    example=cluster(top="location: southindia"),
    instead=cluster(top="location: westeurope"),
    settings=(Setting("regions", "array", "Approved regions."),),
    sample={"regions": ["westeurope", "northeurope"]},
)


def check(location: str, *, regions: Sequence[str] | None, where: str = "location") -> Finding | None:
    """Judge where a resource lies.

    Args:
        location: Its region, as a name or a code; `global` is none.
        regions: Approved regions; None or none at all for no bound.
        where: Path of the location in the declaration.
    """
    if not regions or _code(location) in {"global", *map(_code, regions)}:
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"The location is {location!r}",
        rule="Resources lie in an approved region",
        remedy=f"Approved: {', '.join(regions)}",
    )


def _code(region: str) -> str:
    return "".join(region.lower().split())
