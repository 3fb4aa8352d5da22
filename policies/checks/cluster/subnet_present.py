"""Nodes in a network that the team owns."""

from __future__ import annotations

from amlstack.base.findings import Finding
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
    example="""\
# azure-native:machinelearningservices:Compute
properties:
  computeType: AmlCompute
  properties:
    vmSize: Standard_ND96isr_H100_v5
    scaleSettings: {minNodeCount: 0, maxNodeCount: 4, nodeIdleTimeBeforeScaleDown: PT10M}
""",
    instead="""\
# azure-native:machinelearningservices:Compute
properties:
  computeType: AmlCompute
  properties:
    vmSize: Standard_ND96isr_H100_v5
    subnet: {id: /subscriptions/S/resourceGroups/G/providers/Microsoft.Network/virtualNetworks/train/subnets/nodes}
    scaleSettings: {minNodeCount: 0, maxNodeCount: 4, nodeIdleTimeBeforeScaleDown: PT10M}
""",
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
