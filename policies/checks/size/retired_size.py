"""A size must still exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.catalog.sizes import substitutes
from policies.checks.rule import Rule

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="size-retired",
    title="A size must not be retired.",
    what="Refuses a size whose retirement date has come, and names a living one that is nearest to it.",
    why=(
        "Azure gives out no nodes of a retired size, so what names one never runs. Examples of distributed training "
        "still name Standard_NC24rs_v3, gone since 2025-09-30."
    ),
    example="""\
clusters:
  - name: train
    size: Standard_NC24rs_v3
""",
    instead="""\
clusters:
  - name: train
    size: Standard_ND40rs_v2
""",
)


def check(size: Size, *, on: date, where: str = "size") -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement, and on which the remedy must be available.
        where: Path of the size in the declaration.
    """
    if size.retired is None or on < size.retired:
        return None
    nearest = substitutes.nearest_compliant(size, on)
    return Finding(
        RULE.code,
        where,
        seen=f"{size.name} was retired on {size.retired.isoformat()}",
        rule="Azure gives out no nodes of a retired size",
        remedy=f"Use {nearest.name} ({nearest.describe()})" if nearest else "",
    )
