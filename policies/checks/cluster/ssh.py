"""No remote login to nodes."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.examples import cluster
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
    example=cluster(inner="remoteLoginPortPublicAccess: Enabled"),
    instead=cluster(inner="remoteLoginPortPublicAccess: Disabled"),
    level="advisory",
)


REMEDY = "Write remoteLoginPortPublicAccess: Disabled"


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
        remedy=REMEDY,
    )
