"""A cluster without work should have no nodes."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.examples import cluster
from policies.checks.rule import Rule, Setting

RULE = Rule(
    code="scale-to-zero",
    title="A cluster scales down to no nodes.",
    what="Flags a cluster whose minimum number of nodes is above the allowed one, which is 0 unless configured.",
    why="Nodes of the minimum are paid for day and night, whether a job runs or not.",
    example=cluster(least=2),
    instead=cluster(),
    level="advisory",
    settings=(Setting("nodes", "integer", "Most nodes that may stay up without work.", 0),),
)


def check(least: int, *, nodes: int, where: str = "nodes.min") -> Finding | None:
    """Judge the minimum of a cluster.

    Args:
        least: Its minimum number of nodes.
        nodes: Most nodes that may stay up without work.
        where: Path of the minimum in the declaration.
    """
    if least <= nodes:
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"The minimum is {_nodes(least)}",
        rule=f"At most {_nodes(nodes)} may stay up without work: they are paid for day and night",
        remedy=f"Write {nodes}",
    )


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"
