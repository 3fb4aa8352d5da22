"""Jobs read their data as the cluster, not with keys."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.examples import cluster
from policies.checks.rule import Rule

RULE = Rule(
    code="managed-identity",
    title="A cluster has a managed identity.",
    what=(
        "Flags a cluster without a system-assigned or user-assigned managed identity. Disabled unless configured: "
        "without one, jobs read data as the user who submits them."
    ),
    why=(
        "Without an identity of its own a cluster reaches storage with keys or as the user who submitted the "
        "job; neither can be granted exactly what it needs."
    ),
    example=cluster(top="identity: {type: None}"),
    instead=cluster(top="identity: {type: SystemAssigned}"),
    level="disabled",
)


REMEDY = "Write identity: {type: SystemAssigned}, or a user-assigned one"


def check(kind: str | None, *, where: str = "identity") -> Finding | None:
    """Judge a cluster's identity.

    Args:
        kind: ``SystemAssigned``, ``UserAssigned``, both with a comma, or ``None``; None when there is none.
        where: Path of the identity in the declaration.
    """
    if kind is not None and "assigned" in kind.lower():
        return None
    return Finding(
        RULE.code,
        where,
        seen="The cluster has no managed identity",
        rule="A cluster reads data as itself",
        remedy=REMEDY,
    )
