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

from amlstack.catalog.files import rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.names import Names, Part
    from infra.settings import Settings
    from infra.settings.model.workspace import VirtualNetwork


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


_ENDPOINTS: Final = rows("private_endpoints")
LINKS: Final[Mapping[str, Link]] = {row["name"]: Link(row["part"], row["group"], row["why"]) for row in _ENDPOINTS}
"""By the words of the settings."""

ZONES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    cloud: {row["name"]: tuple(row["zones"][cloud]) for row in _ENDPOINTS} for cloud in _ENDPOINTS[0]["zones"]
}
"""Zones of each endpoint, by cloud, as ``azure-native:environment`` names it."""


def known_zones() -> frozenset[str]:
    """The names of all zones."""
    return frozenset(zone for cloud in ZONES.values() for zones in cloud.values() for zone in zones)


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


_RULES: Final = {row["name"]: SecurityRule(**row) for row in rows("node_security")}
NODE_MANAGEMENT: Final = _RULES.pop("AzureMachineLearningInbound")
"""Of nodes with public addresses; nodes without one take nothing from outside."""

NO_INTERNET: Final = _RULES.pop("InternetOutbound")
"""The last rule of nodes that may not reach the internet."""

OUTBOUND: Final = tuple(_RULES.values())
"""Addresses that nodes reach."""

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
        "sourcePortRange": "*",
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
