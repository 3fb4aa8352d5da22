"""A size that new subscriptions do not get, and of which nobody gets more."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.catalog.sizes import substitutes
from policies.checks.examples import cluster
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="size-closed",
    title="A size should be one that new subscriptions still get.",
    what=(
        "Advises against a size of a series that Azure has closed: new subscriptions cannot deploy it, and no further "
        "quota is approved for old ones. Names an open size that is nearest to it. Once the rule is given the day on "
        "which the subscription was created, it refuses the size in one that was created after the closing, and makes "
        "a note of it in an older one. A retired size is the matter of `size-retired`, one that is about to retire "
        "that of `size-retiring`."
    ),
    why=(
        "Since July 2026 a cluster of such a size is created in an old subscription and refused in a new one, and it "
        "cannot grow beyond the quota of today: the deployment fails, or works for one team and not for the next."
    ),
    example=cluster(size="Standard_DS3_v2", most=1),
    instead=cluster(size="Standard_D4s_v5", most=1),
    level="advisory",
    settings=(
        Setting(
            "subscription_created", "date", "Day on which the subscription was created: without it the rule advises."
        ),
    ),
    mandatory_with="subscription_created",
    not_exported="no condition tells a new subscription from an old one",
)


def check(size: Size, *, on: date, subscription_created: str | None = None, where: str = "size") -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement.
        subscription_created: Day on which the subscription was created, ``2026-07-01``; None where nobody says.
        where: Path of the size in the declaration.
    """
    closed = size.lifecycle.closed_since if size.lifecycle else None
    if closed is None or on < closed or size.retired_on(on):
        return None
    nearest = substitutes.nearest_open(size, on)
    seen = f"{size.name} is closed to new subscriptions since {closed:%Y-%m}"
    rule, level = "Azure deploys it within quota of old subscriptions alone, and approves no more", Level.ERROR
    if subscription_created is not None:
        created = date.fromisoformat(subscription_created)
        seen += f", and the subscription was created on {created}"
        if created < closed:
            rule, level = "An older subscription deploys it within the quota that it has, and gets no more", Level.INFO
    remedy = f"Use {nearest.name} ({nearest.describe()})" if nearest else ""
    return Finding(RULE.code, where, seen=seen, rule=rule, remedy=remedy, level=level)
