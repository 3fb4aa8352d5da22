"""A size that new subscriptions do not get, and of which nobody gets more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.catalog import sizes
from policies.checks.examples import cluster
from policies.checks.rule import Rule

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="size-closed",
    title="A size should be one that new subscriptions still get.",
    what=(
        "Advises against a size of a series that Azure has closed: new subscriptions cannot deploy it, and no further "
        "quota is approved for old ones. Names an open size that is nearest to it. A retired size is the matter of "
        "`size-retired`, one that is about to retire that of `size-retiring`."
    ),
    why=(
        "Since July 2026 a cluster of such a size is created in an old subscription and refused in a new one, and it "
        "cannot grow beyond the quota of today: the deployment fails, or works for one team and not for the next."
    ),
    example=cluster(size="Standard_DS3_v2", most=1),
    instead=cluster(size="Standard_D4s_v5", most=1),
    options="A team whose subscription is new sets it to `mandatory`.",
    level="advisory",
    not_exported="no condition tells a new subscription from an old one",
)


def check(size: Size, *, on: date, where: str = "size") -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement.
        where: Path of the size in the declaration.
    """
    closed = size.lifecycle.closed_since if size.lifecycle else None
    if closed is None or on < closed or size.retired_on(on):
        return None
    nearest = sizes.nearest_open(size, on)
    return Finding(
        RULE.code,
        where,
        seen=f"{size.name} is closed to new subscriptions since {closed:%Y-%m}",
        rule="Azure deploys it within quota of old subscriptions alone, and approves no more",
        remedy=f"Use {nearest.name} ({nearest.describe()})" if nearest else "",
    )
