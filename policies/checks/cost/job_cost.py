"""What one run may cost before its timeout ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.cost.hourly_cost import unpriced
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule, Setting

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="cost-per-job",
    title="A job costs at most so much until its timeout.",
    what=(
        "Refuses a job whose nodes × timeout × price exceed the configured budget, and one that has no timeout, whose "
        "cost has no bound; in a sweep the trials that run at once count together. The price is that of the region and "
        "priority of its nodes as far as the catalogue has it, else the first that it has of the size. Where the size "
        "or its price is not known it says so and refuses nothing."
    ),
    why="A run that hangs in its first collective costs as much per hour as one that trains, until it is noticed.",
    example=job(", of a size with a price of 100 USD per hour", limits="{jobLimitsType: Command, timeout: P7D}"),
    instead=job(", of a size with a price of 100 USD per hour"),
    settings=(Setting("usd", "number", "Most US dollars of one run."),),
    sample={"usd": 5000},
    not_exported=NO_JOB,
)


def check(
    size: Size,
    *,
    nodes: int,
    timeout: int | None,
    usd: float | None,
    region: str | None = None,
    low_priority: bool = False,
    where: str = "limits.timeout",
) -> Finding | None:
    """Judge what a run can cost.

    Args:
        size: The size of its nodes as the catalogue knows it.
        nodes: Its number of nodes.
        timeout: Seconds after which it is ended; None for never.
        usd: Most US dollars; None for no bound.
        region: Region of its nodes; None where it is not known.
        low_priority: Whether they are of low priority.
        where: Path of the timeout in the declaration.
    """
    if usd is None:
        return None
    price = size.node_price(region, low_priority=low_priority)
    if price is None:
        return unpriced(RULE.code, size, where)
    per_hour = nodes * price.usd
    hours = usd / per_hour if per_hour else 0
    remedy = f"Write a timeout of {int(hours * 60)} minutes or less, or ask for an exception"
    if timeout is None:
        seen = (
            f"{nodes} nodes of {size.name} cost {per_hour:,.2f} USD per hour ({price.basis}), and nothing ends the job"
        )
    elif per_hour * timeout / 3600 > usd:
        seen = (
            f"{nodes} nodes of {size.name} cost {per_hour * timeout / 3600:,.2f} USD until the timeout ({price.basis})"
        )
    else:
        return None
    return Finding(RULE.code, where, seen=seen, rule=f"One run may cost {usd:,.2f} USD", remedy=remedy)
