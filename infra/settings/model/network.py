"""The workspace's network: the one that Azure ML manages, or the team's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from amlstack.base.models import matching
from infra.settings.model.base import SettingsModel, arm_id, given_by_id

_SUBNET = arm_id("Microsoft.Network/virtualNetworks/subnets")
_CIDR = r"\d{1,3}(\.\d{1,3}){3}/\d{1,2}"

RuleName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}\Z",
        "An outbound rule's name has up to 80 letters, digits, '-' and '_', a letter or digit first",
    ),
]
HostName = Annotated[
    str,
    matching(
        r"^(\*\.)?([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]*\Z",
        "A host is written by its full name, for example files.example.com or *.example.com",
    ),
]
ServiceTag = Annotated[
    str,
    matching(
        r"^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9]+)?\Z",
        "A service tag is written as Azure names it, for example DataFactory or Storage.westeurope",
    ),
]
Ports = Annotated[
    str,
    matching(
        r"^(\*|\d{1,5}(-\d{1,5})?(, ?\d{1,5}(-\d{1,5})?)*)\Z",
        'Ports are numbers and ranges, for example "443" or "80, 8080-8089", or "*"',
    ),
]
ResourceId = Annotated[
    str,
    matching(
        r"^/subscriptions/[^/]+/resource[Gg]roups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+\Z",
        "It is given by its ARM id, /subscriptions/…/providers/<type>/<name>",
    ),
]
Target = Annotated[
    str,
    matching(
        r"^[A-Za-z][A-Za-z0-9_]*\Z", "A private endpoint's target is a word, for example blob, vault or sqlServer"
    ),
]
Cidr = Annotated[str, matching(rf"^{_CIDR}\Z", "A range is written in CIDR notation, for example 10.20.0.0/16")]
Subnet = Annotated[
    str,
    matching(
        rf"^({_SUBNET}|{_CIDR})\Z",
        "A subnet is a range, for example 10.20.0.0/22, or its ARM id, "
        "/subscriptions/…/virtualNetworks/<name>/subnets/<name>",
    ),
]
GatewayId = Annotated[str, given_by_id("Microsoft.Network/natGateways")]
RouteTableId = Annotated[str, given_by_id("Microsoft.Network/routeTables")]
ZoneId = Annotated[str, given_by_id("Microsoft.Network/privateDnsZones")]

Isolation = Literal["allow_internet_outbound", "only_approved", "off"]
EndpointTarget = Literal["workspace", "blob", "file", "dfs", "vault", "registry"]
ENDPOINT_TARGETS: tuple[EndpointTarget, ...] = ("workspace", "blob", "file", "dfs", "vault", "registry")

KINDS = {
    "fqdn": ("fqdn",),
    "service_tag": ("service_tag", "protocol", "ports"),
    "private_endpoint": ("private_endpoint", "target", "spark"),
}
"""The three kinds of outbound rules, by the key that says which one a rule is, with all keys that it takes."""


def _off(value: Any) -> Any:
    """YAML readers of version 1.1 take a bare ``off`` for false."""
    return "off" if value is False else value


class OutboundRule(SettingsModel):
    """One destination that nodes in the managed network reach.

    A rule has exactly one of `fqdn`, `service_tag` and `private_endpoint`.
    """

    name: RuleName
    """Name: letters, digits, '-' and '_', a letter or digit first."""
    fqdn: HostName | None = None
    """A host by its name (files.example.com, *.example.com), on ports 80 and 443; `only_approved` alone. The first
    one adds an Azure Firewall, which is billed."""
    service_tag: ServiceTag | None = None
    """A service of Azure by its tag (DataFactory, Storage.westeurope); `only_approved` alone."""
    protocol: Literal["TCP", "UDP", "ICMP", "*"] | None = None
    """Of a service tag; TCP when absent."""
    ports: Ports | None = None
    """Of a service tag, e.g. "443" or "80, 8080-8089"; 443 when absent."""
    private_endpoint: ResourceId | None = None
    """ARM id of a resource that nodes reach by a private endpoint, in the same tenant."""
    target: Target | None = None
    """The part of it that the endpoint leads to (blob, file, dfs, vault, registry, sqlServer, …)."""
    spark: bool | None = None
    """True where serverless Spark uses the private endpoint too."""

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> OutboundRule:
        given = [key for key in KINDS if getattr(self, key) is not None]
        if len(given) != 1:
            seen = " and ".join(f"`{key}`" for key in given) or "none of them"
            raise ValueError(
                f"The rule `{self.name}` has {seen}|A rule has exactly one of `fqdn`, `service_tag` and "
                "`private_endpoint`"
            )
        taken = KINDS[given[0]]
        others = [key for keys in KINDS.values() for key in keys if key not in taken]
        if wrong := next((key for key in others if getattr(self, key) is not None), None):
            raise ValueError(f"The rule `{self.name}` of `{given[0]}` has `{wrong}`|It takes {', '.join(taken)}")
        if self.private_endpoint is not None and self.target is None:
            raise ValueError(
                f"The rule `{self.name}` has no `target`|A private endpoint leads to one part of its resource, e.g. "
                "blob of a storage account"
            )
        return self

    @property
    def kind(self) -> str:
        """The key that says of which kind it is."""
        return next(key for key in KINDS if getattr(self, key) is not None)


class VirtualNetwork(SettingsModel):
    """The team's own network: each subnet is a range of addresses in a network that the stack makes, or an ARM id."""

    address_space: tuple[Cidr, ...] = ()
    """Ranges of the network that the stack makes; none where every subnet is given by its id."""
    compute: Subnet | None = None
    """Subnet of the clusters that name none of their own, one address for each node: a range (the stack makes it
    with a security group) or an ARM id. Means `isolation: off`."""
    endpoints: Subnet | None = None
    """Subnet of private endpoints, by which what is in the network reaches the workspace: a range or an ARM id. No
    private endpoints when absent."""
    private_endpoints: tuple[EndpointTarget, ...] = ENDPOINT_TARGETS
    """The parts that get a private endpoint in `endpoints`; all of them when absent."""
    dns: Literal["create", "platform"] = "create"
    """create: the stack makes the private DNS zones of the endpoints, but for those in `zones`, and links them with
    the network; platform: an Azure Policy of the platform team registers the names."""
    zones: tuple[ZoneId, ...] = ()
    """ARM ids of private DNS zones that exist and are linked with the network already."""
    internet: bool = True
    """True lets nodes in the subnet that the stack makes reach the internet; false adds a rule behind those that
    Azure ML needs, which denies it."""
    nat_gateway: GatewayId | None = None
    """ARM id of a NAT gateway for that subnet: the way out of nodes without a public address."""
    route_table: RouteTableId | None = None
    """ARM id of a route table for that subnet."""


class NetworkSettings(SettingsModel):
    """The network that nodes of the workspace reach, and that the workspace is reached from."""

    isolation: Annotated[Isolation, BeforeValidator(_off)] | None = None
    """allow_internet_outbound: nodes are in a network that Azure ML manages and reach the internet; only_approved:
    they reach what `rules` name, and what Azure ML needs; off: no managed network. There is no way back. When
    absent: allow_internet_outbound for a new workspace on every stack but `sandbox`, off where `vnet` has a subnet
    for nodes or a cluster has a subnet or region of its own, and what an existing one has."""
    rules: tuple[OutboundRule, ...] = ()
    """Outbound rules of the managed network: all of them."""
    package_hosts: tuple[HostName, ...] = ()
    """Hosts of package indexes and mirrors that jobs and image builds install from; each becomes an FQDN rule under
    `only_approved`."""
    firewall: Literal["standard", "basic"] | None = None
    """Size of the Azure Firewall that FQDN rules need; Azure's default (standard) when absent."""
    vnet: VirtualNetwork | None = None
    """The team's own network."""
