"""What one cluster may take of the GPUs and vCPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import cluster
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="cluster-budget",
    title="A cluster stays within its budget of GPUs and vCPUs.",
    what=(
        "Refuses a cluster, or a serverless job, whose nodes at their maximum have more GPUs or vCPUs than configured. "
        "Silent until a budget is configured."
    ),
    why="Quota is shared by a whole subscription: one cluster that takes it all starves every other team.",
    example=cluster(most=9),
    instead=cluster(most=8),
    settings=(
        Setting("gpus", "integer", "Most GPUs of one cluster."),
        Setting("vcpus", "integer", "Most vCPUs of one cluster."),
    ),
    sample={"gpus": 64},
)


def check(
    size: Size, *, nodes: int, gpus: int | None = None, vcpus: int | None = None, where: str = "nodes.max"
) -> Finding | None:
    """Judge what a cluster may grow to.

    Args:
        size: Its size as the catalogue knows it.
        nodes: Its maximum number of nodes.
        gpus: Most GPUs; None for no bound.
        vcpus: Most vCPUs; None for no bound. A size whose vCPUs are unknown is not judged by them.
        where: Path of the maximum in the declaration.
    """
    for name, each, most in (("GPUs", size.gpus, gpus), ("vCPUs", size.vcpus or 0, vcpus)):
        if most is not None and nodes * each > most:
            return Finding(
                RULE.code,
                where,
                seen=f"{nodes} nodes of {size.name} have {nodes * each} {name}",
                rule=f"One cluster may have {most} {name}",
                remedy=f"Write {most // each} nodes or less, or ask for an exception",
            )
    return None
