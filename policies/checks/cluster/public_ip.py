"""Nodes without an address on the internet."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.examples import cluster
from policies.checks.rule import Rule

RULE = Rule(
    code="node-public-ip",
    title="Nodes of a cluster have no public IP address.",
    what=(
        "Flags a cluster that does not switch off the public addresses of its nodes; Azure's default is to give "
        "each node one."
    ),
    why=(
        "Every public address is scanned from the internet, and many subscriptions forbid or bound them; a node needs "
        "none to train."
    ),
    example=cluster(compute="disableLocalAuth: true", inner="enableNodePublicIp: true"),
    instead=cluster(compute="disableLocalAuth: true", inner="enableNodePublicIp: false"),
    level="advisory",
)


REMEDY = "Write enableNodePublicIp: false"


def check(enabled: bool | None, *, where: str = "node_public_ip") -> Finding | None:
    """Judge a cluster's public addresses.

    Args:
        enabled: Whether nodes get one; None when the cluster does not say.
        where: Path of the switch in the declaration.
    """
    if enabled is False:
        return None
    return Finding(
        RULE.code,
        where,
        seen="Nodes get public addresses" if enabled else "The cluster does not switch public addresses off",
        rule="Nodes of a cluster have no public IP address",
        remedy=f"{REMEDY}; outside a managed network the nodes then need a subnet",
    )
