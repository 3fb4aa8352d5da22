"""Nodes that have no work should go soon."""

from __future__ import annotations

from amlstack.base import durations
from amlstack.base.findings import Finding
from policies.checks.examples import cluster
from policies.checks.rule import Rule, Setting

RULE = Rule(
    code="idle-time",
    title="Idle nodes are given back soon.",
    what="Flags a cluster that does not say how long a node waits for work, or that lets it wait too long.",
    why="An idle node of eight GPUs costs as much as a busy one; a forgotten idle time is paid for in full.",
    example=cluster(idle="PT12H"),
    instead=cluster(),
    level="advisory",
    settings=(Setting("minutes", "integer", "Longest time that a node may wait for work.", 60),),
    fix="Writes the longest allowed time.",
)


def check(idle: str | None, *, minutes: int, where: str = "nodes.idle") -> Finding | None:
    """Judge the idle time of a cluster.

    Args:
        idle: ISO 8601 duration before an idle node is given back; None when the cluster does not say.
        minutes: Longest time allowed.
        where: Its path in the declaration.
    """
    waits = durations.seconds(idle.strip().upper()) if idle is not None else None
    if waits is not None and waits <= minutes * 60:
        return None
    return Finding(
        RULE.code,
        where,
        seen="The cluster does not say when idle nodes go" if idle is None else f"Idle nodes wait {idle}",
        rule=f"A node may wait {minutes} minutes for work",
        remedy=f"Write PT{minutes}M or less",
    )
