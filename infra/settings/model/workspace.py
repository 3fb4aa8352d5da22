"""Settings of a workspace, its parts, its security, and its network: the one Azure ML manages, or the team's own."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from amlstack.base.models import matching
from amlstack.catalog.files import rows
from infra.settings.model.base import ObjectId, SettingsModel, arm_id, given_by_id, named, or_named
from infra.settings.model.cluster import ClusterName, IdentityId, SubnetId

_SUBNET = arm_id("Microsoft.Network/virtualNetworks/subnets")
_CIDR = r"\d{1,3}(\.\d{1,3}){3}/\d{1,2}"

RuleName = Annotated[str, named("RuleName")]
HostName = Annotated[str, named("HostName")]
ServiceTag = Annotated[str, named("ServiceTag")]
Ports = Annotated[str, named("Ports")]
ResourceId = Annotated[str, named("ResourceId")]
Target = Annotated[str, named("Target")]
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


VaultId = Annotated[str, given_by_id("Microsoft.KeyVault/vaults")]

_NAME = r"[0-9A-Za-z-]{1,127}"
_URL = rf"https://[0-9A-Za-z-]{{3,24}}\.vault\.[a-z.-]+/keys/{_NAME}(/[0-9a-f]{{32}})?"

KeyReference = Annotated[
    str,
    matching(
        rf"^({_NAME}|{_URL})\Z",
        "A key is a name (letters, digits, '-'), which the stack makes, or the address of one that exists, "
        "https://VAULT.vault.azure.net/keys/NAME/VERSION",
    ),
]

_LOGS = rows("log_categories")[0]

if TYPE_CHECKING:
    Category = str
else:
    Category = Literal[*sorted((*_LOGS["unless_chosen"], *_LOGS["others"]))]
"""Categories of a workspace's resource logs."""

LOCKABLE = ("storage", "key_vault", "registry")
"""Resources that a lock against deletion may protect."""


class WorkspaceIdentity(SettingsModel):
    """As whom the workspace acts on what it stands on; a bare string is its `type`."""

    type: Literal["stack", "system", "user"] | None = None
    """stack: a user-assigned identity that the stack makes, as the primary one; user: the one in `primary`; system:
    the workspace's own, and no other. When absent: user beside `primary`, else stack; on the stack `sandbox`
    system."""
    primary: IdentityId | None = None
    """ARM id of a user-assigned identity that exists, as the primary one."""
    principal_id: ObjectId | None = None
    """Object id of `primary`, to which the stack then assigns the roles of docs/explanation/identities.md; without it
    they are its owner's concern."""
    keep_system: bool = True
    """True keeps a system-assigned identity beside the primary one. A workspace that has one can be given another
    beside it; that Azure takes it away is not proven (docs/reference/unproven.md)."""

    @model_validator(mode="after")
    def _agree(self) -> WorkspaceIdentity:
        if self.type == "user" and self.primary is None:
            raise ValueError("`type` is user and `primary` is missing|`primary` says which identity")
        if self.type in {"stack", "system"} and self.primary is not None:
            raise ValueError(f"`type` is {self.type} and `primary` is given|`primary` goes with `type: user`")
        if self.principal_id is not None and self.primary is None:
            raise ValueError("`principal_id` is given without `primary`|It is the object id of `primary`")
        return self


class Encryption(SettingsModel):
    """A key of your own for the workspace's metadata; a bare string is its `key`."""

    key: KeyReference
    """Name of a key that the stack makes in its own key vault, or the address of one that exists
    (https://VAULT.vault.azure.net/keys/NAME/VERSION)."""
    key_vault: VaultId | None = None
    """ARM id of the key vault of a key that exists; it is in the workspace's subscription."""
    service_side: bool = False
    """True leaves the encrypted metadata with Microsoft (preview) instead of in a Cosmos DB, a search service and a
    storage account in your subscription."""

    @property
    def own(self) -> bool:
        """True where the stack makes the key."""
        return "/" not in self.key

    @model_validator(mode="after")
    def _agree(self) -> Encryption:
        if self.own and self.key_vault is not None:
            raise ValueError(
                "`key_vault` is given and `key` is a name|A key that the stack makes is in its own vault; of one that "
                "exists write the address"
            )
        if self.own:
            return self
        if self.key_vault is None:
            raise ValueError("`key` is an address and `key_vault` is missing|Azure asks for the ARM id of its vault")
        vault, given = self.key.removeprefix("https://").partition(".")[0], self.key_vault.rsplit("/", 1)[-1]
        if given.lower() != vault.lower():
            raise ValueError(f"`key` is in the vault `{vault}` and `key_vault` is `{given}`|Both name the same vault")
        return self


class ServerlessCompute(SettingsModel):
    """The network that serverless jobs get their nodes in."""

    subnet: SubnetId
    """ARM id of the subnet that serverless nodes join."""
    node_public_ip: bool = True
    """True gives serverless nodes public addresses."""


class Diagnostics(SettingsModel):
    """Resource logs of the workspace that go to log analytics; true or false stands for `enabled` alone."""

    enabled: bool = True
    """False sends none there."""
    categories: tuple[Category, ...] = ()
    """Categories of logs, as Azure Monitor names them; when absent those about changes, clusters and runs, without
    those about reading."""


def _as_diagnostics(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return {"categories": value}
    return {"enabled": value} if isinstance(value, bool) or value in ("true", "false") else value


DiagnosticsField = Annotated[Diagnostics, BeforeValidator(_as_diagnostics, json_schema_input_type=bool | Diagnostics)]


def _as_locks(value: Any) -> Any:
    if isinstance(value, bool) or value in ("true", "false"):
        return LOCKABLE if str(value).lower() == "true" else ()
    return value


def _lockable(value: str) -> str:
    if value in LOCKABLE:
        return value
    if value in {"group", "resource_group", "workspace"}:
        raise ValueError(
            f"`locks` names `{value}`|Clusters in a locked group or workspace stop scaling, as Azure deletes nodes "
            "there; locks go on storage, key_vault and registry"
        )
    raise ValueError(f"`locks` names `{value}`|Locks go on storage, key_vault and registry")


_Lockable = Annotated[str, AfterValidator(_lockable), WithJsonSchema({"enum": list(LOCKABLE)})]
LocksField = Annotated[
    tuple[_Lockable, ...], BeforeValidator(_as_locks, json_schema_input_type=bool | tuple[_Lockable, ...])
]


_MOST = 200
"""Rules of a workspace: learn.microsoft.com/azure/machine-learning/how-to-configure-private-link (2026-11-22)."""

_NOT_PUBLIC = tuple(
    map(
        ipaddress.IPv4Network,
        ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
         "192.168.0.0/16", "224.0.0.0/3"),
    )
)  # fmt: skip


def _public(text: str) -> str:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(
            f"`{text}` is no address|An address is written as 203.0.113.7, a range of them as 203.0.113.0/24"
        ) from None
    if network.version != 4:
        raise ValueError(f"`{text}` is an IPv6 address|Azure's rules for addresses take IPv4 only")
    if "/" in text and str(network) != text:
        raise ValueError(f"`{text}` is no range of addresses: it begins at {network.network_address}|Write {network}")
    if any(ipaddress.IPv4Network(network).overlaps(one) for one in _NOT_PUBLIC):
        raise ValueError(
            f"`{text}` is not an address of the internet|Rules for addresses are about the internet; who has a "
            "private address comes in through a private endpoint"
        )
    return text


Address = Annotated[str, AfterValidator(_public)]


class PublicNetwork(SettingsModel):
    """Access from the internet to the workspace and what it stands on; true or false stands for `enabled` alone."""

    enabled: bool = True
    """False closes them to the internet; else they answer from there, to Entra ID only."""
    allow: tuple[Address, ...] = Field((), max_length=_MOST)
    """Public IPv4 addresses and ranges (203.0.113.0/24), up to 200, from which they answer; all when absent."""


def _as_object(value: Any) -> Any:
    if value is None or isinstance(value, dict | PublicNetwork):
        return value
    if isinstance(value, list | tuple):
        return {"allow": value}
    if isinstance(value, bool) or value in {"true", "false"}:
        return {"enabled": value}
    raise ValueError(
        f"`public_network` must be true, false or an object with `allow`, got `{str(value)[:60]}`|Write false, true, "
        "or {allow: [203.0.113.0/24]}"
    )


PublicNetworkField = Annotated[
    PublicNetwork, BeforeValidator(_as_object, json_schema_input_type=bool | tuple[str, ...] | PublicNetwork)
]


StorageId = Annotated[str, given_by_id("Microsoft.Storage/storageAccounts")]
KeyVaultId = Annotated[str, given_by_id("Microsoft.KeyVault/vaults")]
RegistryId = Annotated[str, given_by_id("Microsoft.ContainerRegistry/registries")]
InsightsId = Annotated[str, given_by_id("Microsoft.Insights/components")]
LogsId = Annotated[str, given_by_id("Microsoft.OperationalInsights/workspaces")]

StorageName = Annotated[str, named("StorageName")]
RegistryName = Annotated[str, named("RegistryName")]
InsightsName = Annotated[str, matching(r"^[^/]{1,255}\Z", "It has 1 to 255 characters, no '/'")]
LogsName = Annotated[str, named("LogsName")]


class StorageAccount(SettingsModel):
    """The storage account of the workspace."""

    existing: StorageId | None = None
    """ARM id of one that exists, in any resource group or subscription: nothing of it is created, changed or
    deleted."""
    name: StorageName | None = None
    """Its name, of one that was imported under another name than the stack would give it."""
    redundancy: Literal["lrs", "zrs", "grs", "gzrs", "ragrs", "ragzrs"] = "lrs"
    """The places of the copies: lrs in one data centre, zrs in three zones, grs and gzrs in another region too.
    Azure changes lrs to zrs on request, not by an edit."""
    soft_delete_days: int | None = Field(None, ge=0, le=365)
    """Days for which deleted blobs and containers can be brought back; 0 for none. When absent 7, on the stack
    `sandbox` none."""
    infrastructure_encryption: bool | None = None
    """A second layer of encryption. Set when the account is made; one that exists keeps what it has. When absent
    true, on the stack `sandbox` false."""


class KeyVault(SettingsModel):
    """The key vault of the workspace."""

    existing: KeyVaultId | None = None
    """ARM id of one that exists, in any resource group or subscription: nothing of it is created, changed or
    deleted."""
    name: ClusterName | None = None
    """Its name, of one that was imported under another name than the stack would give it."""
    purge_protection: bool = True
    """Nobody purges what is deleted before its time is over. Azure turns it on and never off again."""


class ContainerRegistry(SettingsModel):
    """The container registry of the workspace."""

    existing: RegistryId | None = None
    """ARM id of one that exists, in any resource group or subscription: nothing of it is created, changed or
    deleted."""
    absent: bool = False
    """The workspace that was imported has none, and the stack makes none for it."""
    name: RegistryName | None = None
    """Its name, of one that was imported under another name than the stack would give it."""


class ApplicationInsights(SettingsModel):
    """Application insights of the workspace."""

    existing: InsightsId | None = None
    """ARM id of one that exists, in any resource group or subscription: nothing of it is created, changed or
    deleted."""
    absent: bool = False
    """The workspace that was imported has none, and the stack makes none for it."""
    name: InsightsName | None = None
    """Its name, of one that was imported under another name than the stack would give it."""


class LogAnalytics(SettingsModel):
    """The log analytics workspace that application insights write to."""

    existing: LogsId | None = None
    """ARM id of one that exists, in any resource group or subscription: nothing of it is created, changed or
    deleted."""
    name: LogsName | None = None
    """Its name, of one that was imported under another name than the stack would give it."""


WorkspaceName = Annotated[str, named("WorkspaceName")]
WorkspaceRef = Annotated[
    str,
    matching(
        rf"^({arm_id('Microsoft.MachineLearningServices/workspaces').removesuffix('[^/]+')})?"
        r"[A-Za-z0-9][A-Za-z0-9_-]{2,32}\Z",
        "A workspace that exists is given by its name in `resource_group`, or by its ARM id, "
        "/subscriptions/…/resourceGroups/…/providers/Microsoft.MachineLearningServices/workspaces/<name>",
    ),
]
GroupName = Annotated[str, named("GroupName")]


class ResourceGroup(SettingsModel):
    """The resource group of the stack; a bare string is its name."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["name"]}, {"required": ["existing"]}]})

    name: GroupName | None = None
    """Name of the resource group that the stack makes."""
    existing: GroupName | None = None
    """Instead of `name`: a resource group that exists. The stack puts its resources into it; the group itself is
    not created, changed, protected or deleted. docs/how-to/existing.md."""

    @property
    def called(self) -> str:
        """Its name in either case."""
        return self.existing or self.name or ""


class Workspace(SettingsModel):
    """The Azure ML workspace and what it stands on; a bare string is its name.

    Either ``name`` (the stack creates it) or ``existing`` (nothing of it is changed);
    `infra.settings.checks` says what goes with which.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["name"]}, {"required": ["existing"]}]})

    name: WorkspaceName = ""
    """Name of the workspace: 3 to 33 characters, letters, digits, '-' and '_'."""
    existing: WorkspaceRef | None = None
    """Instead of `name`: a workspace that exists, by its name in `resource_group` or by its ARM id, of any resource
    group or subscription. Nothing of it is created, changed, protected or deleted; clusters, environments, code,
    data, jobs and schedules are put into it. docs/how-to/existing.md."""
    display_name: str | None = None
    """The name that the studio shows; `name` when absent."""
    description: str | None = None
    """A sentence for people who find the workspace in the portal."""
    public_network: PublicNetworkField | None = None
    """Access from the internet to workspace, storage, key vault and registry, by Entra ID only: true, false, or the
    addresses that they answer ({allow: [203.0.113.0/24]}). When absent false, on the stack `sandbox` true."""
    identity: Annotated[WorkspaceIdentity, or_named("type", WorkspaceIdentity)] = Field(
        default_factory=WorkspaceIdentity
    )
    """The identity by which the workspace acts on what it stands on: a type, or an object."""
    storage: StorageAccount = Field(default_factory=StorageAccount)
    """The storage account."""
    key_vault: KeyVault = Field(default_factory=KeyVault)
    """The key vault."""
    registry: ContainerRegistry = Field(default_factory=ContainerRegistry)
    """The container registry."""
    insights: ApplicationInsights = Field(default_factory=ApplicationInsights)
    """Application insights."""
    logs: LogAnalytics = Field(default_factory=LogAnalytics)
    """Log analytics, which application insights that the stack creates write to."""
    adopted: bool = False
    """The group, the workspace and its parts were imported (docs/how-to/existing.md): they are the stack's, protected
    and deleted with it, and what the settings do not say of the workspace stays as it was found."""
    encryption: Annotated[Encryption, or_named("key", Encryption)] | None = None
    """A key of your own for the workspace's metadata: a name, or an object. A workspace gets one when it is made,
    or never."""
    high_business_impact: bool = False
    """Microsoft collects less for its diagnosis, and nodes encrypt and clean their scratch disks. Set when the
    workspace is made; it never changes."""
    diagnostics: DiagnosticsField | None = None
    """Resource logs of the workspace that go to log analytics: true, false, or {categories: [RunEvent]}. When
    absent true, on the stack `sandbox` false."""
    locks: LocksField = ()
    """Resources that are locked against deletion by any tool: true for storage, key_vault and registry, or a list
    of them. Never the group or the workspace, whose clusters would stop scaling. It takes a deployer who may write
    locks (Owner or User Access Administrator). While it is there, Azure does not delete role assignments on what is
    locked either, so that the identity of a cluster goes only after the lock."""
    image_build_compute: ClusterName | None = None
    """The cluster that builds the images of your own environments, without GPUs; nobody else reaches a registry
    that is closed to the internet."""
    serverless_compute: ServerlessCompute | None = None
    """The subnet of serverless jobs; Azure's own network when absent."""
    name_salt: str = ""
    """Changes the names of storage account, key vault and registry: a destroyed vault's name stays taken until its
    purge protection ends."""
    network: NetworkSettings | None = None
    """Its network: managed by Azure ML, or the team's own."""


class Principal(SettingsModel):
    """Somebody in Entra ID."""

    id: ObjectId
    """Object id, as `az ad user show --id NAME --query id` prints it."""
    type: Literal["user", "group", "service_principal"]
    """Its kind; of an application the object id is that of its service principal."""


class WorkspaceAccess(SettingsModel):
    """One role on the workspace, and who gets it."""

    role: str = Field(min_length=1)
    """Azure's name of the role, e.g. `AzureML Data Scientist`; docs/how-to/data.md lists them."""
    principals: tuple[Principal, ...]
    """The people, groups and applications that get it."""

    @model_validator(mode="after")
    def _given(self) -> WorkspaceAccess:
        if not self.principals:
            raise ValueError("`principals` is empty|A role is given to somebody")
        return self
