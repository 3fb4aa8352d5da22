"""No remote login to nodes."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.rule import Rule

RULE = Rule(
    code="ssh-closed",
    title="The SSH port of the nodes is closed.",
    what=(
        "Flags a cluster whose remote login is not `Disabled`. Azure's default, `NotSpecified`, opens the port on "
        "all nodes where the cluster is in no virtual network."
    ),
    why=(
        "A shell on a node reads the data, the code and the identity of every job there; what jobs need to show "
        "goes through Azure ML."
    ),
    example="""\
# azure-native:machinelearningservices:Compute
properties:
  computeType: AmlCompute
  properties:
    vmSize: Standard_ND96isr_H100_v5
    remoteLoginPortPublicAccess: Enabled
    scaleSettings: {minNodeCount: 0, maxNodeCount: 4, nodeIdleTimeBeforeScaleDown: PT10M}
""",
    instead="""\
# azure-native:machinelearningservices:Compute
properties:
  computeType: AmlCompute
  properties:
    vmSize: Standard_ND96isr_H100_v5
    remoteLoginPortPublicAccess: Disabled
    scaleSettings: {minNodeCount: 0, maxNodeCount: 4, nodeIdleTimeBeforeScaleDown: PT10M}
""",
    level="advisory",
)


def check(access: str | None, *, where: str = "remoteLoginPortPublicAccess") -> Finding | None:
    """Judge a cluster's remote login.

    Args:
        access: ``Enabled``, ``Disabled`` or ``NotSpecified``; None when the cluster does not say.
        where: Its path in the declaration.
    """
    if access is not None and access.lower() == "disabled":
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"Remote login is {access or 'not specified'}",
        rule="The SSH port of the nodes is closed",
        remedy="Write remoteLoginPortPublicAccess: Disabled",
    )
