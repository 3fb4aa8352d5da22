"""The RDMA network has addresses of its own."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import cluster, subnet
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="subnet-overlap",
    title="A cluster's network leaves 172.16.0.0/16 to InfiniBand.",
    what=(
        "Refuses a cluster with InfiniBand or RDMA whose subnet, or the virtual network around it, overlaps "
        "172.16.0.0/16. Addresses are known where the network is declared in the same stack before the cluster, "
        "or given in `networks`; elsewhere the rule has nothing to judge."
    ),
    why=(
        "Azure addresses the InfiniBand devices of a node from 172.16.0.0/16. In a network that uses the same "
        "addresses, routes collide and ranks do not find each other."
    ),
    example=cluster(inner=subnet("train")),
    instead=cluster(inner=subnet("compute")),
    settings=(
        Setting(
            "networks",
            "object",
            "Address ranges of networks outside the stack: name → ranges with commas between.",
            {},
        ),
    ),
    sample={"networks": {"train": "172.16.0.0/12", "compute": "10.4.0.0/16"}},
    not_exported="a condition cannot look into another resource",
)


RDMA_NETWORK = ip_network("172.16.0.0/16")
"""What Azure addresses InfiniBand devices from."""


def check(size: Size, *, prefixes: Sequence[str], where: str = "subnet") -> Finding | None:
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
    return Finding(
        RULE.code,
        where,
        seen=f"The network uses {', '.join(taken)}",
        rule=f"The InfiniBand of {size.name} is addressed from {RDMA_NETWORK}",
        remedy="Give the network other addresses, e.g. from 10.0.0.0/8",
    )


def _overlaps(prefix: str) -> bool:
    try:
        network = ip_network(prefix, strict=False)
    except ValueError:
        return False
    return network.overlaps(RDMA_NETWORK)
