"""No cluster beyond the team's ceiling."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.examples import cluster
from policies.checks.rule import Rule, Setting

RULE = Rule(
    code="node-ceiling",
    title="A cluster has at most so many nodes.",
    what="Refuses a cluster whose maximum is above the team's ceiling. Silent until the ceiling is configured.",
    why="The maximum of a cluster is what one mistaken job may spend; 64 instead of 6 is one keystroke.",
    example=cluster(most=64),
    instead=cluster(most=16),
    settings=(Setting("nodes", "integer", "Most nodes of one cluster, and of one serverless job."),),
    sample={"nodes": 16},
)


def check(most: int, *, nodes: int | None, where: str = "nodes.max") -> Finding | None:
    """Judge the maximum of a cluster, or the node count of a serverless job.

    Args:
        most: Its maximum.
        nodes: The ceiling; None for none.
        where: Path of the maximum in the declaration.
    """
    if nodes is None or most <= nodes:
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"The maximum is {most} nodes",
        rule=f"At most {nodes} are allowed in one place",
        remedy=f"Write {nodes} or less, or ask for an exception",
    )
