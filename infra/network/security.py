"""Security rules of a subnet with nodes: what Azure ML documents for AmlCompute, each with its reason.

Sources: learn.microsoft.com/azure/machine-learning/how-to-secure-training-vnet (ports) and …/how-to-managed-network,
"List of required rules" (service tags of any network), both read on 2026-11-22.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class SecurityRule:
    """One security rule.

    Attributes:
        name: Name in the security group.
        inbound: Its direction.
        peer: Service tag of the other side; ``{region}`` is the workspace's region.
        protocol: ``Tcp``, ``Udp`` or ``*``.
        ports: Ports of the destination.
        why: What fails without it.
        allow: Whether it lets traffic pass.
    """

    name: str
    inbound: bool
    peer: str
    protocol: str
    ports: tuple[str, ...]
    why: str
    allow: bool = True


NODE_MANAGEMENT: Final = SecurityRule(
    "AzureMachineLearningInbound",
    True,
    "AzureMachineLearning",
    "Tcp",
    ("44224",),
    "Azure ML creates and manages nodes that have a public address through it.",
)
"""Of nodes with public addresses; nodes without one take nothing from outside."""

OUTBOUND: Final = (
    SecurityRule(
        "VirtualNetworkOutbound",
        False,
        "VirtualNetwork",
        ANY,
        (ANY,),
        "Ranks reach each other, and nodes the private endpoints, port 445 of file shares included.",
    ),
    SecurityRule(
        "AzureMachineLearningOutbound",
        False,
        "AzureMachineLearning",
        "Tcp",
        ("443", "8787", "18881"),
        "Nodes report to Azure ML.",
    ),
    SecurityRule(
        "AzureMachineLearningUdpOutbound",
        False,
        "AzureMachineLearning",
        "Udp",
        ("5831",),
        "Azure ML creates, updates and deletes nodes through it.",
    ),
    SecurityRule(
        "BatchNodeManagementOutbound",
        False,
        "BatchNodeManagement.{region}",
        ANY,
        ("443",),
        "Clusters are made of Azure Batch, whose agents report there.",
    ),
    SecurityRule(
        "StorageOutbound",
        False,
        "Storage.{region}",
        "Tcp",
        ("443",),
        "Azure Batch keeps what nodes start with in storage of its own. Data can leave by it too: a service endpoint "
        "policy bounds that.",
    ),
    SecurityRule("EntraOutbound", False, "AzureActiveDirectory", "Tcp", ("443",), "Nodes sign in."),
    SecurityRule(
        "AzureResourceManagerOutbound",
        False,
        "AzureResourceManager",
        "Tcp",
        ("443",),
        "Jobs that use the CLI or SDK of Azure ML ask it.",
    ),
    SecurityRule(
        "FrontDoorOutbound",
        False,
        "AzureFrontDoor.FirstParty",
        "Tcp",
        ("443",),
        "Layers of Microsoft's images come from it.",
    ),
    SecurityRule(
        "MicrosoftContainerRegistryOutbound",
        False,
        "MicrosoftContainerRegistry",
        "Tcp",
        ("443",),
        "Microsoft's images, those of curated environments among them.",
    ),
    SecurityRule("AzureMonitorOutbound", False, "AzureMonitor", "Tcp", ("443",), "Logs and metrics of nodes and jobs."),
)
"""What nodes reach."""

NO_INTERNET: Final = SecurityRule(
    "InternetOutbound",
    False,
    "Internet",
    ANY,
    (ANY,),
    "`internet: false`: whatever no rule before it allows stays inside.",
    allow=False,
)

_LAST: Final = 4096


def rules(region: str, *, public_addresses: bool, internet: bool) -> list[dict[str, Any]]:
    """The rules of the security group, as azure-native has them.

    Args:
        region: Of the workspace, as Azure names it (``westeurope``).
        public_addresses: Some nodes have public addresses.
        internet: Nodes may reach the internet.
    """
    wanted = [*([NODE_MANAGEMENT] if public_addresses else []), *OUTBOUND]
    made = [_wire(rule, 100 + 10 * index, region) for index, rule in enumerate(wanted)]
    return made if internet else [*made, _wire(NO_INTERNET, _LAST, region)]


def _wire(rule: SecurityRule, priority: int, region: str) -> dict[str, Any]:
    peer, here = rule.peer.format(region=region), "VirtualNetwork"
    source, destination = (peer, here) if rule.inbound else (here, peer)
    ports = {"destinationPortRange": rule.ports[0]} if len(rule.ports) == 1 else {}
    several = {"destinationPortRanges": list(rule.ports)} if len(rule.ports) > 1 else {}
    return {
        "name": rule.name,
        "priority": priority,
        "direction": "Inbound" if rule.inbound else "Outbound",
        "access": "Allow" if rule.allow else "Deny",
        "protocol": rule.protocol,
        "sourceAddressPrefix": source,
        "sourcePortRange": ANY,
        "destinationAddressPrefix": destination,
        **ports,
        **several,
    }
