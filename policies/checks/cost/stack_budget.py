"""What a whole stack may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        "budget. Dollars are judged only where the catalogue knows every price; where it does not, the rule says so."
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


def check(
    asked: Sequence[tuple[Size, int]],
    *,
    nodes: int | None = None,
    gpus: int | None = None,
    vcpus: int | None = None,
    usd_per_hour: float | None = None,
    where: str = "",
) -> tuple[Finding, ...]:
    """Judge what a stack may grow to.

    Args:
        asked: Size and maximum of nodes of each cluster and serverless job.
        nodes: Most nodes; None for no bound, as for the others.
        gpus: Most GPUs.
        vcpus: Most vCPUs.
        usd_per_hour: Most US dollars per hour.
        where: What the findings are about.
    """
    return tuple(_over(asked, {"nodes": nodes, "GPUs": gpus, "vCPUs": vcpus, "USD per hour": usd_per_hour}, where))


def _over(asked: Sequence[tuple[Size, int]], budget: dict[str, float | None], where: str) -> Iterator[Finding]:
    unpriced = sorted({size.name for size, _ in asked if size.price_per_hour is None})
    totals: dict[str, float] = {
        "nodes": sum(count for _, count in asked),
        "GPUs": sum(size.gpus * count for size, count in asked),
        "vCPUs": sum((size.vcpus or 0) * count for size, count in asked),
        "USD per hour": sum(size.price_per_hour.usd * count for size, count in asked if size.price_per_hour),
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
