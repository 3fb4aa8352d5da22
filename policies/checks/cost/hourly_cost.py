"""What a cluster or job may cost per hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from policies.checks.examples import cluster
from policies.checks.rule import NO_PRICE, Rule, Setting

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="cost-per-hour",
    title="A cluster costs at most so much per hour.",
    what=(
        "Refuses a cluster, or a serverless job, whose nodes at their maximum cost more per hour than configured, at "
        "the price of its region and priority as far as the catalogue has it, else at the first that it has of the "
        "size. Where it has none it says so and refuses nothing. Silent until configured."
    ),
    why=(
        "The name of a size does not show its price: sixteen nodes of eight H100 cost more in a day than most teams "
        "spend in a month."
    ),
    example=cluster(", of a size with a price of 100 USD per hour", most=6),
    instead=cluster(", of a size with a price of 100 USD per hour", most=5),
    settings=(Setting("usd", "number", "Most US dollars per hour with every node up."),),
    sample={"usd": 500},
    not_exported=NO_PRICE,
)


def check(
    size: Size,
    *,
    nodes: int,
    usd: float | None,
    region: str | None = None,
    low_priority: bool = False,
    where: str = "nodes.max",
) -> Finding | None:
    """Judge what a cluster costs per hour.

    Args:
        size: Its size as the catalogue knows it.
        nodes: Its maximum number of nodes.
        usd: Most US dollars per hour; None for no bound.
        region: Region of its nodes; None where it is not known.
        low_priority: Whether they are of low priority.
        where: Path of the maximum in the declaration.
    """
    if usd is None:
        return None
    price = size.node_price(region, low_priority=low_priority)
    if price is None:
        return unpriced(RULE.code, size, where)
    if nodes * price.usd <= usd:
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"{nodes} nodes of {size.name} cost {nodes * price.usd:,.2f} USD per hour ({price.basis})",
        rule=f"At most {usd:,.2f} USD per hour are allowed",
        remedy=f"Write {int(usd // price.usd)} nodes or less, or ask for an exception",
    )


def unpriced(code: str, size: Size, where: str) -> Finding:
    """A note that a budget could not be judged."""
    return Finding(
        code,
        where,
        seen=f"The catalogue has no price of {size.name}",
        rule="A budget in dollars is judged only where the price is known",
        level=Level.INFO,
    )
