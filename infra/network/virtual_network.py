"""The team's own network: its subnets, their security rules, and the private endpoints in it.

Sources: of the security rules learn.microsoft.com/azure/machine-learning/how-to-secure-training-vnet (ports) and
…/how-to-managed-network, "List of required rules" (service tags of any network); of private endpoints and their DNS
zones learn.microsoft.com/azure/private-link/private-endpoint-dns and …/azure/machine-learning/how-to-custom-dns (all
read on 2026-11-22).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.names import Names, Part
    from infra.settings import Settings
    from infra.settings.model.network import VirtualNetwork


@dataclass(frozen=True, slots=True)
class Link:
    """One private endpoint.

    Attributes:
        part: Which part of the workspace it leads to.
        group: The sub-resource, in Azure's word.
        why: What fails without it in a network without public access.
    """

    part: Part
    group: str
    why: str


LINKS: Final[Mapping[str, Link]] = {
    "workspace": Link("workspace", "amlworkspace", "Nodes, the studio and `amlstack` itself talk to the workspace."),
    "blob": Link("storage", "blob", "Code, inputs, outputs and checkpoints are blobs."),
    "file": Link("storage", "file", "The workspace keeps notebooks and the files of compute instances on a share."),
    "dfs": Link("storage", "dfs", "Datastores of Data Lake Storage Gen2 go by this name."),
    "vault": Link("key_vault", "vault", "The workspace keeps secrets of connections and datastores there."),
    "registry": Link("registry", "registry", "Nodes pull the images of the workspace's environments."),
}
"""By the words of the settings."""

ZONES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "public": {
        "workspace": ("privatelink.api.azureml.ms", "privatelink.notebooks.azure.net"),
        "blob": ("privatelink.blob.core.windows.net",),
        "file": ("privatelink.file.core.windows.net",),
        "dfs": ("privatelink.dfs.core.windows.net",),
        "vault": ("privatelink.vaultcore.azure.net",),
        "registry": ("privatelink.azurecr.io",),
    },
    "usgovernment": {
        "workspace": ("privatelink.api.ml.azure.us", "privatelink.notebooks.usgovcloudapi.net"),
        "blob": ("privatelink.blob.core.usgovcloudapi.net",),
        "file": ("privatelink.file.core.usgovcloudapi.net",),
        "dfs": ("privatelink.dfs.core.usgovcloudapi.net",),
        "vault": ("privatelink.vaultcore.usgovcloudapi.net",),
        "registry": ("privatelink.azurecr.us",),
    },
    "china": {
        "workspace": ("privatelink.api.ml.azure.cn", "privatelink.notebooks.chinacloudapi.cn"),
        "blob": ("privatelink.blob.core.chinacloudapi.cn",),
        "file": ("privatelink.file.core.chinacloudapi.cn",),
        "dfs": ("privatelink.dfs.core.chinacloudapi.cn",),
        "vault": ("privatelink.vaultcore.azure.cn",),
        "registry": ("privatelink.azurecr.cn",),
    },
}
"""Zones of each endpoint, by cloud, as ``azure-native:environment`` names it."""


def known_zones() -> frozenset[str]:
    """The names of all zones."""
    return frozenset(zone for cloud in ZONES.values() for zones in cloud.values() for zone in zones)


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
"""Addresses that nodes reach."""

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


COMPUTE, ENDPOINTS = "compute", "endpoints"
"""Names of the subnets that the stack makes."""


@dataclass(frozen=True, slots=True)
class OwnNetwork:
    """The team's own network, composed from settings and names.

    Attributes:
        spec: The settings.
        name: Of the network that the stack makes.
        id: Its ARM id.
        made: Whether the stack makes it.
        compute: ARM id of the subnet of nodes; None where there is none.
        endpoints: ARM id of the subnet of private endpoints; None where there is none.
        security: Rules of the security group of nodes.
        zones: Private DNS zones by the endpoint whose names they hold; none under ``dns: platform``.
        given_zones: ARM ids of zones that exist, by name.
    """

    spec: VirtualNetwork
    name: str
    id: str
    made: bool
    compute: str | None
    endpoints: str | None
    security: tuple[dict[str, Any], ...]
    zones: dict[str, tuple[str, ...]]
    given_zones: dict[str, str]

    @property
    def links(self) -> dict[str, Link]:
        """The private endpoints, by the words of the settings."""
        return {name: LINKS[name] for name in self.spec.private_endpoints} if self.endpoints else {}

    @property
    def linked(self) -> str:
        """ARM id of the network that private DNS zones are linked with: that of the endpoints."""
        return (self.endpoints or self.id).rsplit("/subnets/", 1)[0]


def is_range(subnet: str | None) -> bool:
    """True where a subnet of the settings is one that the stack makes."""
    return subnet is not None and not subnet.startswith("/")


def own_network(settings: Settings, names: Names, cloud: str = "public") -> OwnNetwork | None:
    """The own network of a stack; None where it has none.

    Args:
        settings: Its settings.
        names: Its names, in the group that it has.
        cloud: As ``azure-native:environment`` names it.
    """
    network = settings.workspace.network
    if network is None or network.vnet is None:
        return None
    spec = network.vnet
    name = "vnet-" + re.sub(r"[^A-Za-z0-9]+", "-", names.workspace).strip("-")
    network_id = names.id_of("Microsoft.Network/virtualNetworks", name)
    public = any(each.subnet is None and each.node_public_ip is not False for each in settings.clusters)
    of_cloud = ZONES.get(cloud, ZONES["public"])
    return OwnNetwork(
        spec=spec,
        name=name,
        id=network_id,
        made=is_range(spec.compute) or is_range(spec.endpoints),
        compute=_id(spec.compute, network_id, COMPUTE),
        endpoints=_id(spec.endpoints, network_id, ENDPOINTS),
        security=tuple(rules(settings.location, public_addresses=public, internet=spec.internet)),
        zones={} if spec.dns == "platform" else {one: of_cloud[one] for one in spec.private_endpoints},
        given_zones={zone.rsplit("/", 1)[-1].lower(): zone for zone in spec.zones},
    )


def addresses(subnet: str) -> int:
    """The number of nodes that fit into a range: Azure keeps five addresses of each subnet."""
    return max(ipaddress.ip_network(subnet, strict=False).num_addresses - 5, 0)


def _id(subnet: str | None, network_id: str, name: str) -> str | None:
    return f"{network_id}/subnets/{name}" if is_range(subnet) else subnet
