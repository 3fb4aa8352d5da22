"""Nodes in a network that the team owns."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.examples import cluster, subnet
from policies.checks.rule import Rule

RULE = Rule(
    code="subnet-present",
    title="A cluster is in a subnet.",
    what=(
        "Flags a cluster that names no subnet. Disabled unless configured: a workspace with a managed network "
        "needs none."
    ),
    why=(
        "Without a subnet or a managed network, nodes reach storage over the internet, and nothing bounds where "
        "they may talk to."
    ),
    example=cluster(),
    instead=cluster(inner=subnet("train")),
    level="disabled",
)


REMEDY = "Write subnet: {id: …/virtualNetworks/NAME/subnets/NAME}"


def check(subnet: str | None, *, where: str = "subnet") -> Finding | None:
    """Judge where a cluster's nodes are attached.

    Args:
        subnet: ARM id of the subnet; None or empty when there is none.
        where: Path of the subnet in the declaration.
    """
    if subnet:
        return None
    return Finding(
        RULE.code,
        where,
        seen="The cluster names no subnet",
        rule="Nodes join a subnet of the team's network",
        remedy=REMEDY,
    )
