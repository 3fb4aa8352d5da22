"""What a whole stack may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amlstack.base.findings import Finding, Level
from policies.checks.examples import cluster
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="stack-budget",
    title="A stack stays within its budget of nodes, GPUs, vCPUs and dollars per hour.",
    what=(
        "Adds up all clusters and serverless jobs of a stack at their maximum and refuses the stack above a configured "
        "budget. Dollars count at the price of each one's region and priority as far as the catalogue has it, else at "
        "the first that it has of the size; where it has none, the rule says so."
    ),
    why="Ten clusters that each keep their own ceiling still empty a subscription's quota together.",
    example=cluster(most=17),
    instead=cluster(most=16),
    settings=(
        Setting("nodes", "integer", "Most nodes of all clusters together."),
        Setting("gpus", "integer", "Most GPUs."),
        Setting("vcpus", "integer", "Most vCPUs."),
        Setting("usd_per_hour", "number", "Most US dollars per hour with every node up."),
    ),
    sample={"gpus": 128},
    not_exported="Azure Policy judges one resource at a time",
)


class GrowsTo(NamedTuple):
    """The nodes of a cluster or serverless job at their maximum, the region where it is known, the priority."""

    size: Size
    nodes: int
    region: str | None = None
    low_priority: bool = False


def check(
    asked: Sequence[GrowsTo],
    *,
    nodes: int | None = None,
    gpus: int | None = None,
    vcpus: int | None = None,
    usd_per_hour: float | None = None,
    where: str = "",
) -> tuple[Finding, ...]:
    """Judge what a stack may grow to.

    Args:
        asked: What each cluster and serverless job may grow to.
        nodes: Most nodes; None for no bound, as for the others.
        gpus: Most GPUs.
        vcpus: Most vCPUs.
        usd_per_hour: Most US dollars per hour.
        where: What the findings are about.
    """
    return tuple(_over(asked, {"nodes": nodes, "GPUs": gpus, "vCPUs": vcpus, "USD per hour": usd_per_hour}, where))


def _over(asked: Sequence[GrowsTo], budget: dict[str, float | None], where: str) -> Iterator[Finding]:
    prices = [one.size.node_price(one.region, low_priority=one.low_priority) for one in asked]
    unpriced = sorted({one.size.name for one, price in zip(asked, prices, strict=True) if price is None})
    totals: dict[str, float] = {
        "nodes": sum(one.nodes for one in asked),
        "GPUs": sum(one.size.gpus * one.nodes for one in asked),
        "vCPUs": sum((one.size.vcpus or 0) * one.nodes for one in asked),
        "USD per hour": sum(price.usd * one.nodes for one, price in zip(asked, prices, strict=True) if price),
    }
    for name, most in budget.items():
        if most is not None and totals[name] > most:
            yield Finding(
                RULE.code,
                where,
                seen=f"The stack may grow to {totals[name]:g} {name}",
                rule=f"One stack may have {most:g} {name}",
                remedy="Lower the maximum of a cluster, or ask for an exception",
            )
    if budget["USD per hour"] is not None and unpriced:
        yield Finding(
            RULE.code,
            where,
            seen=f"The catalogue has no price of {', '.join(unpriced)}",
            rule="A budget in dollars is judged only over sizes whose price is known",
            level=Level.INFO,
        )
