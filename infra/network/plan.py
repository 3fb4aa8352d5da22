"""All of a stack's network, composed before anything is registered: the one that Azure ML manages, or the team's own.

The team's own has subnets, their security rules, and private endpoints. Sources: of the security rules
learn.microsoft.com/azure/machine-learning/how-to-secure-training-vnet (ports) and …/how-to-managed-network, "List of
required rules" (service tags of any network); of private endpoints and their DNS zones
learn.microsoft.com/azure/private-link/private-endpoint-dns and …/azure/machine-learning/how-to-custom-dns (all read on
2026-11-22).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amlstack.catalog.files import rows
from infra import data
from infra.names import Names, Part
from infra.security import SANDBOX
from infra.settings.model.stack import CustomEnvironment

if TYPE_CHECKING:
    from infra.settings import Cluster, Settings
    from infra.settings.model.workspace import OutboundRule, VirtualNetwork


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


def subnet_rules(region: str, *, public_addresses: bool, internet: bool) -> list[dict[str, Any]]:
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
        security=tuple(subnet_rules(settings.location, public_addresses=public, internet=spec.internet)),
        zones={} if spec.dns == "platform" else {one: of_cloud[one] for one in spec.private_endpoints},
        given_zones={zone.rsplit("/", 1)[-1].lower(): zone for zone in spec.zones},
    )


def addresses(subnet: str) -> int:
    """The number of nodes that fit into a range: Azure keeps five addresses of each subnet."""
    return max(ipaddress.ip_network(subnet, strict=False).num_addresses - 5, 0)


def _id(subnet: str | None, network_id: str, name: str) -> str | None:
    return f"{network_id}/subnets/{name}" if is_range(subnet) else subnet


OFF: Final = "Disabled"
OPEN: Final = "AllowInternetOutbound"
APPROVED: Final = "AllowOnlyApprovedOutbound"

MODES: Final[Mapping[str, str]] = {"off": OFF, "allow_internet_outbound": OPEN, "only_approved": APPROVED}
"""Azure's word by the settings'."""


@dataclass(frozen=True, slots=True)
class WantedIsolation:
    """The isolation that the settings ask of the workspace.

    Attributes:
        mode: In Azure's words.
        given: The settings say so; otherwise a workspace that exists keeps what it has.
        excluded: What of the stack cannot be in a managed network, a sentence each.
    """

    mode: str
    given: bool
    excluded: tuple[str, ...] = ()


def declared(settings: Settings) -> str | None:
    """The mode that the settings ask for, in Azure's words; None where they leave it to the stack."""
    network = settings.workspace.network
    if network is None:
        return None
    if network.isolation is not None:
        return MODES[network.isolation]
    return OFF if network.vnet is not None and network.vnet.compute is not None else None


def wanted(settings: Settings, stack: str) -> WantedIsolation | None:
    """The isolation asked of the workspace; None where none is asked, and nothing is to be looked at.

    Args:
        settings: The stack's settings.
        stack: Its name.
    """
    mode, excluded = declared(settings), tuple(_excluded(settings))
    if mode is not None:
        return WantedIsolation(mode, given=True, excluded=excluded)
    # An imported workspace keeps the network that it has, until the settings say another one.
    if stack == SANDBOX or settings.workspace.adopted:
        return None
    return WantedIsolation(OFF if excluded else OPEN, given=False, excluded=excluded)


def _excluded(settings: Settings) -> Iterator[str]:
    for cluster in settings.clusters:
        if cluster.subnet is not None:
            yield f"cluster {cluster.name} has a subnet of its own"
        if cluster.location is not None and cluster.location != settings.location:
            yield f"cluster {cluster.name} is in {cluster.location}, the workspace in {settings.location}"


DOCKER_HUB: Final = ("docker.io", "*.docker.io", "*.docker.com", "production.cloudflare.docker.com")
"""Hosts of Docker Hub (learn.microsoft.com/azure/machine-learning/how-to-managed-network, 2026-11-22)."""

MICROSOFT: Final = "mcr.microsoft.com"
"""Reached by a rule that Azure ML makes itself."""

_TARGETS: Final = {"blob": ("blob",), "adls_gen2": ("dfs", "blob"), "file": ("file",)}
"""The services of an account by which kinds of datastores are reached; operations of `dfs` may be led on to `blob`
(learn.microsoft.com/azure/storage/common/storage-private-endpoints, 2026-11-22)."""

OWN_REGISTRIES: Final = ".azurecr.io"
"""Of the customer: reached by a private endpoint, as their layers come from storage of names that are not known."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A rule that follows from something else in the settings.

    Attributes:
        name: Its name.
        host: Where it leads.
        why: What needs it.
    """

    name: str
    host: str
    why: str


def generated(settings: Settings) -> tuple[Generated, ...]:
    """The FQDN rules that follow from package hosts and from images of registries on the internet."""
    network = settings.workspace.network
    if network is None or declared(settings) != APPROVED:
        return ()
    found = [Generated(_name("packages", host), host, "package_hosts") for host in network.package_hosts]
    for environment in settings.environments:
        if isinstance(environment, CustomEnvironment):
            why = f"the image of environment {environment.name}"
            found += [Generated(_name("images", host), host, why) for host in hosts_of(environment.image)]
    given = {rule.fqdn.lower() for rule in network.rules if rule.fqdn}
    # A host that several things need is reached by the first rule.
    first: dict[str, Generated] = {}
    for one in found:
        first.setdefault(one.host.lower(), one)
    return tuple(one for host, one in first.items() if host not in given)


@dataclass(frozen=True, slots=True)
class AccountEndpoint:
    """A private endpoint that a datastore needs.

    Attributes:
        name: Of its rule.
        account: ARM id of the storage account.
        target: The part of it.
    """

    name: str
    account: str
    target: str


def endpoints(settings: Settings, names: Names) -> tuple[AccountEndpoint, ...]:
    """The private endpoints to accounts of datastores, none to the workspace's own: Azure ML makes those.

    Args:
        settings: The stack's.
        names: Its names: a bare account lies in its resource group.
    """
    network = settings.workspace.network
    if network is None or declared(settings) != APPROVED:
        return ()
    given = {(str(rule.private_endpoint).lower(), str(rule.target).lower()) for rule in network.rules}
    found: dict[tuple[str, str], AccountEndpoint] = {}
    for spec in settings.datastores:
        account = data.account_id(spec, names)
        if account.lower() == names.id("storage").lower():
            continue
        for target in _TARGETS[spec.kind]:
            # Accounts have names of their own in the whole of Azure.
            name = f"data-{account.rpartition('/')[2]}-{target}"
            key = (account.lower(), target)
            if key not in given:
                found.setdefault(key, AccountEndpoint(name, account, target))
    return tuple(found.values())


def hosts_of(image: str) -> tuple[str, ...]:
    """The hosts on the internet that an image is pulled from, none for Microsoft's and for registries in Azure."""
    registry = registry_of(image)
    if registry == MICROSOFT or registry.endswith(OWN_REGISTRIES):
        return ()
    return DOCKER_HUB if registry == DOCKER_HUB[0] else (registry,)


def registry_of(image: str) -> str:
    """The host in an image's reference, without a port, in small letters: ``docker.io`` where there is none."""
    first, slash, _ = image.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    host = first.partition(":")[0].lower() if named else DOCKER_HUB[0]
    return DOCKER_HUB[0] if host in ("index.docker.io", "registry-1.docker.io") else host


def rules(settings: Settings, names: Names) -> dict[str, dict[str, Any]]:
    """All rules by name, as the bodies of ``workspaces/outboundRules`` have them under ``properties``."""
    network = settings.workspace.network
    if network is None:
        return {}
    named = {rule.name: wire(rule) for rule in network.rules}
    to_hosts = {one.name: {"type": "FQDN", "destination": one.host} for one in generated(settings)}
    to_accounts = {one.name: _endpoint(one.account, one.target) for one in endpoints(settings, names)}
    return {**named, **to_hosts, **to_accounts}


def wire(rule: OutboundRule) -> dict[str, Any]:
    """A rule of the settings on the wire."""
    if rule.fqdn is not None:
        return {"type": "FQDN", "destination": rule.fqdn}
    if rule.service_tag is not None:
        destination: Mapping[str, Any] = {
            "serviceTag": rule.service_tag,
            "protocol": rule.protocol or "TCP",
            "portRanges": rule.ports or "443",
        }
        return {"type": "ServiceTag", "destination": dict(destination)}
    return _endpoint(rule.private_endpoint, rule.target, spark=bool(rule.spark))


def _endpoint(resource: str | None, target: str | None, *, spark: bool = False) -> dict[str, Any]:
    destination = {"serviceResourceId": resource, "subresourceTarget": target, "sparkEnabled": spark}
    return {"type": "PrivateEndpoint", "destination": destination}


def hosts(settings: Settings) -> Iterator[str]:
    """Every host that an FQDN rule leads to."""
    network = settings.workspace.network
    if network is not None:
        yield from (rule.fqdn for rule in network.rules if rule.fqdn)
        yield from (one.host for one in generated(settings))


def _name(what: str, host: str) -> str:
    return f"{what}-{re.sub(r'[^A-Za-z0-9]+', '-', host.replace('*', 'any')).strip('-')}"[:80]


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The network of a workspace that the stack makes.

    Attributes:
        wanted: What is asked of its isolation; None where nothing is, and nothing is looked at.
        rules: Outbound rules of the managed network by name.
        accounts: ARM ids of the storage accounts of datastores that some of them lead to.
        firewall: Size of the firewall that they need.
        own: The team's own network.
    """

    wanted: WantedIsolation | None = None
    rules: dict[str, dict[str, Any]] | None = None
    accounts: tuple[str, ...] = ()
    firewall: str | None = None
    own: OwnNetwork | None = None

    @property
    def needs_premium(self) -> bool:
        """True where private endpoints lead to the registry, which only its premium tier takes."""
        approved = self.wanted is not None and self.wanted.mode == APPROVED
        return approved or (self.own is not None and "registry" in self.own.links)


def network_plan(settings: Settings, names: Names, stack: str, cloud: str = "public") -> NetworkPlan:
    """The network of a stack.

    Args:
        settings: Its settings.
        names: Its names, in the group that it has.
        stack: Its name.
        cloud: As ``azure-native:environment`` names it.
    """
    network = settings.workspace.network
    return NetworkPlan(
        wanted(settings, stack),
        rules(settings, names),
        tuple(dict.fromkeys(each.account for each in endpoints(settings, names))),
        network.firewall if network is not None else None,
        own_network(settings, names, cloud),
    )


def placed(spec: Cluster, settings: Settings) -> Cluster:
    """A cluster in the subnet of the workspace's network, unless it names one of its own.

    The subnet's id is not the real one: it is for rules, which look at no name in it.
    """
    if spec.subnet is not None or (network := own_network(settings, _SOMEWHERE)) is None or network.compute is None:
        return spec
    return spec.model_copy(update={"subnet": network.compute})


_SOMEWHERE = Names("-", "-", "-")
