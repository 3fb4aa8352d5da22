"""Rules on training clusters: how they scale, who reaches them, their network."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from typing import TYPE_CHECKING

from amlstack.base import text
from amlstack.base.findings import Finding, stated

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size


def check_scale_to_zero(least: int, *, nodes: int, where: str = "nodes.min") -> Finding | None:
    """Judge the minimum of a cluster.

    Args:
        least: Its minimum number of nodes.
        nodes: Most nodes that may stay up without work.
        where: Path of the minimum in the declaration.
    """
    if least <= nodes:
        return None
    return stated("scale-to-zero", where, least=_nodes(least), most=_nodes(nodes), nodes=nodes)


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def check_idle_time(idle: str | None, *, minutes: int, where: str = "nodes.idle") -> Finding | None:
    """Judge the idle time of a cluster.

    Args:
        idle: ISO 8601 duration before an idle node is given back; None when the cluster does not say.
        minutes: Longest time allowed.
        where: Its path in the declaration.
    """
    waits = text.seconds(idle.strip().upper()) if idle is not None else None
    if waits is not None and waits <= minutes * 60:
        return None
    seen = "The cluster does not say when idle nodes go" if idle is None else f"Idle nodes wait {idle}"
    rule = f"A node may wait {minutes} minutes for work"
    return Finding("idle-time", where, seen=seen, rule=rule, remedy=f"Write PT{minutes}M or less")


def check_node_ceiling(most: int, *, nodes: int | None, where: str = "nodes.max") -> Finding | None:
    """Judge the maximum of a cluster, or the node count of a serverless job.

    Args:
        most: Its maximum.
        nodes: The ceiling; None for none.
        where: Path of the maximum in the declaration.
    """
    if nodes is None or most <= nodes:
        return None
    return stated("node-ceiling", where, most=most, nodes=nodes)


PUBLIC_IP_REMEDY = "Write enableNodePublicIp: false"


def check_public_ip(enabled: bool | None, *, where: str = "node_public_ip") -> Finding | None:
    """Judge a cluster's public addresses.

    Args:
        enabled: Whether nodes get one; None when the cluster does not say.
        where: Path of the switch in the declaration.
    """
    if enabled is False:
        return None
    seen = "Nodes get public addresses" if enabled else "The cluster does not switch public addresses off"
    rule = "Nodes of a cluster have no public IP address"
    remedy = f"{PUBLIC_IP_REMEDY}; outside a managed network the nodes then need a subnet"
    return Finding("node-public-ip", where, seen=seen, rule=rule, remedy=remedy)


SSH_REMEDY = "Write remoteLoginPortPublicAccess: Disabled"


def check_ssh(access: str | None, *, where: str = "remoteLoginPortPublicAccess") -> Finding | None:
    """Judge a cluster's remote login.

    Args:
        access: ``Enabled``, ``Disabled`` or ``NotSpecified``; None when the cluster does not say.
        where: Its path in the declaration.
    """
    if access is not None and access.lower() == "disabled":
        return None
    return stated("ssh-closed", where, access=access or "not specified", remedy=SSH_REMEDY)


LOCAL_AUTH_REMEDY = "Write disableLocalAuth: true"


def check_local_auth(disabled: bool | None, *, where: str = "disableLocalAuth") -> Finding | None:
    """Judge a cluster's local authentication.

    Args:
        disabled: Whether it is switched off; None when the cluster does not say.
        where: Path of the switch in the declaration.
    """
    if disabled:
        return None
    return stated(
        "local-auth-off",
        where,
        seen="Local authentication is on"
        if disabled is False
        else "The cluster does not switch local authentication off",
        remedy=LOCAL_AUTH_REMEDY,
    )


MANAGED_IDENTITY_REMEDY = "Write identity: {type: SystemAssigned}, or a user-assigned one"


def check_managed_identity(kind: str | None, *, where: str = "identity") -> Finding | None:
    """Judge a cluster's identity.

    Args:
        kind: ``SystemAssigned``, ``UserAssigned``, both with a comma, or ``None``; None when there is none.
        where: Path of the identity in the declaration.
    """
    if kind is not None and "assigned" in kind.lower():
        return None
    return stated("managed-identity", where, remedy=MANAGED_IDENTITY_REMEDY)


SUBNET_PRESENT_REMEDY = "Write subnet: {id: …/virtualNetworks/NAME/subnets/NAME}"


def check_subnet_present(subnet: str | None, *, where: str = "subnet") -> Finding | None:
    """Judge where a cluster's nodes are attached.

    Args:
        subnet: ARM id of the subnet; None or empty when there is none.
        where: Path of the subnet in the declaration.
    """
    if subnet:
        return None
    return stated("subnet-present", where, remedy=SUBNET_PRESENT_REMEDY)


RDMA_NETWORK = ip_network("172.16.0.0/16")
"""The range from which Azure addresses InfiniBand devices."""


def check_subnet_overlap(size: Size, *, prefixes: Sequence[str], where: str = "subnet") -> Finding | None:
    """Judge the addresses around a cluster.

    Args:
        size: Its size as the catalogue knows it.
        prefixes: Address ranges of its subnet and network, as far as they are known; what is no range is skipped.
        where: Path of the subnet in the declaration.
    """
    if not size.fabric.rdma:
        return None
    taken = [prefix for prefix in prefixes if _overlaps(prefix)]
    if not taken:
        return None
    return stated("subnet-overlap", where, taken=", ".join(taken), size=size, RDMA_NETWORK=RDMA_NETWORK)


def _overlaps(prefix: str) -> bool:
    try:
        network = ip_network(prefix, strict=False)
    except ValueError:
        return False
    return network.overlaps(RDMA_NETWORK)
