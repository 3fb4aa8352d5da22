"""Names and ids of the team's own network, known before anything exists."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.network import security
from infra.network.links import LINKS, ZONES, Link

if TYPE_CHECKING:
    from infra.names import Names
    from infra.settings import Settings
    from infra.settings.model import VirtualNetwork

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
    """Whether a subnet of the settings is one that the stack makes."""
    return subnet is not None and not subnet.startswith("/")


def of(settings: Settings, names: Names, cloud: str = "public") -> OwnNetwork | None:
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
    name = f"vnet-{stem(names)}"
    network_id = names.id_of("Microsoft.Network/virtualNetworks", name)
    of_cloud = ZONES.get(cloud, ZONES["public"])
    return OwnNetwork(
        spec=spec,
        name=name,
        id=network_id,
        made=is_range(spec.compute) or is_range(spec.endpoints),
        compute=_id(spec.compute, network_id, COMPUTE),
        endpoints=_id(spec.endpoints, network_id, ENDPOINTS),
        security=tuple(
            security.rules(settings.location, public_addresses=_public_addresses(settings), internet=spec.internet)
        ),
        zones={} if spec.dns == "platform" else {one: of_cloud[one] for one in spec.private_endpoints},
        given_zones={zone.rsplit("/", 1)[-1].lower(): zone for zone in spec.zones},
    )


def stem(names: Names) -> str:
    """What names of network resources end in."""
    return re.sub(r"[^A-Za-z0-9]+", "-", names.workspace).strip("-")


def addresses(subnet: str) -> int:
    """How many nodes fit into a range: Azure keeps five addresses of each subnet."""
    return max(ipaddress.ip_network(subnet, strict=False).num_addresses - 5, 0)


def _id(subnet: str | None, network_id: str, name: str) -> str | None:
    return f"{network_id}/subnets/{name}" if is_range(subnet) else subnet


def _public_addresses(settings: Settings) -> bool:
    inside = [cluster for cluster in settings.clusters if cluster.subnet is None]
    return any(cluster.node_public_ip is not False for cluster in inside)
