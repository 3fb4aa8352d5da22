"""Clusters: their size, scale, network, identity, remote login and fabric check; and the defaults of all clusters."""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Optional, cast

from pydantic import BeforeValidator, Field, create_model, model_validator

from amlstack.base.models import models_in
from infra.settings.model.base import Location, Refused, SettingsModel, Tags, given_by_id, named, or_named, refusing

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


BY_KEY = frozenset({"nodes", "ssh", "tags"})
"""Objects of a cluster that ``cluster_defaults`` completes key by key."""


class FabricCheck(SettingsModel):
    """A preflight and an all-reduce over a cluster's nodes; `true` is one with nothing set."""

    nodes: int | None = Field(None, ge=1)
    """Nodes that it takes; as many as the cluster may have when absent."""
    environment: str | None = Field(None, min_length=1)
    """Environment of the job, with PyTorch in it; a curated one when absent."""
    expect: float | None = Field(None, gt=0)
    """Least bus bandwidth in GB/s; when absent what the catalogue knows of the size, if it knows any."""
    rerun: str | None = None
    """Any word; another word repeats the check."""


def _switch(value: Any) -> Any:
    if isinstance(value, bool):
        return {} if value else None
    if not isinstance(value, dict | FabricCheck | None):
        message = f"`fabric_check` must be true, false or an object with keys, got `{value}`"
        raise ValueError(message)  # noqa: TRY004 - pydantic makes a finding of a ValueError
    return value


OptionalFabricCheck = Annotated[
    FabricCheck | None, BeforeValidator(_switch, json_schema_input_type=bool | FabricCheck | None)
]


ClusterName = Annotated[str, named("ClusterName")]
Duration = Annotated[str, named("Duration")]
SubnetId = Annotated[str, given_by_id("Microsoft.Network/virtualNetworks/subnets")]
IdentityId = Annotated[str, given_by_id("Microsoft.ManagedIdentity/userAssignedIdentities")]
# The two kinds of key that Azure documents for its Linux machines; options and comments are no part of a key here.
PublicKey = Annotated[str, named("PublicKey")]
AdminName = Annotated[str, named("AdminName")]


class Nodes(SettingsModel):
    """The range in which a cluster scales."""

    min: int = Field(0, ge=0)
    """Nodes that stay up, and are paid for, without work."""
    max: int = Field(ge=0)
    """Most nodes at once; also what the policies judge the cluster's fabric by."""
    idle: Duration = "PT10M"
    """The time that a node waits for work before it goes, ISO 8601 (PT10M)."""

    @model_validator(mode="after")
    def _ordered(self) -> Nodes:
        if self.min > self.max:
            raise ValueError(f"`min` is {self.min} and `max` is {self.max}|`min` must not be above `max`")
        return self


class ClusterIdentity(SettingsModel):
    """As whom the nodes of a cluster act; a bare string is its `type`."""

    type: Literal["stack", "system", "none"] | None = None
    """stack: one user-assigned identity, which the stack makes for all its clusters, so that a replaced cluster
    keeps its access; system: the cluster's own. Both get the roles of docs/explanation/identities.md. none: nobody.
    When absent: none beside `user_assigned`, else stack."""
    user_assigned: tuple[IdentityId, ...] = ()
    """ARM ids of user-assigned identities that exist already. The stack gives them no role."""

    @property
    def kind(self) -> Literal["stack", "system", "none"]:
        """The type, with what is meant when it is absent."""
        return self.type or ("none" if self.user_assigned else "stack")


class Ssh(SettingsModel):
    """The people who may log in to the nodes."""

    refused: ClassVar[Refused] = refusing(
        ("password admin_password admin_user_password adminUserPassword",
         "A password would stand in the settings, the state and the service; a node takes a public key"),
        ("private_key ssh_private_key", "A private key never leaves the machine that it was made on"),
        ("public_keys keys authorized_keys", "A cluster has one administrator with one key; write `public_key`"),
        ("ssh_key_value admin_user_ssh_public_key", "Write `public_key`"),
        ("admin_username admin_user_name", "Write `user`"),
    )  # fmt: skip

    user: AdminName
    """Name of the administrator that each node gets."""
    public_key: PublicKey
    """The administrator's public key, one line: `ssh-rsa …` or `ssh-ed25519 …`. Azure documents RSA for AmlCompute;
    that it takes the other one is not proven (docs/reference/unproven.md)."""
    public_access: bool = False
    """True opens the SSH port on the nodes' public addresses. Without it nodes are reached from inside their
    network."""


class Cluster(SettingsModel):
    """One AmlCompute cluster."""

    refused: ClassVar[Refused] = refusing(
        ("os os_type osType", "Nodes run Linux, by whose means a job's ranks are started"),
        ("virtual_machine_image virtualMachineImage image",
         "Azure takes an image of one's own for Windows nodes only; a job's software is its environment"),
        ("property_bag propertyBag", "Azure describes no key of it"),
        ("type compute_type computeType resource_id resourceId",
         "A stack makes clusters of Azure ML's own (AmlCompute); other computes are attached by other means"),
        ("sku", "An AmlCompute cluster has none; `size` decides what a node is and costs"),
        ("vm_size vmSize", "Write `size`"),
        ("tier vm_priority vmPriority", "Write `priority`"),
        ("min_instances min_node_count minNodeCount", "Write `nodes: {min: …}`"),
        ("max_instances max_node_count maxNodeCount", "Write `nodes: {max: …}`"),
        ("idle_time_before_scale_down node_idle_time_before_scale_down", "Write `nodes: {idle: PT120S}`"),
        ("scale_settings scaleSettings", "Write `nodes: {min: …, max: …, idle: …}`"),
        ("ssh_settings user_account_credentials userAccountCredentials", "Write `ssh: {user: …, public_key: …}`"),
        ("ssh_public_access_enabled remote_login_port_public_access remoteLoginPortPublicAccess",
         "Write `ssh: {user: …, public_key: …, public_access: true}`; without `ssh` the port is closed"),
        ("network_settings", "Write `subnet`, the ARM id of the subnet"),
        ("enable_node_public_ip enableNodePublicIp", "Write `node_public_ip`"),
        ("compute_location computeLocation", "Write `location`"),
    )  # fmt: skip

    name: ClusterName
    """Name: 3 to 24 characters, a letter first, then letters, digits and '-', no '-' at the end."""
    size: str
    """VM size, as `amlstack sizes` lists them."""
    nodes: Nodes
    """Scale: min, max, idle."""
    priority: Literal["dedicated", "low_priority"] = "dedicated"
    """Low-priority nodes can be pre-empted."""
    single_node_jobs: bool = False
    """Promises that no job takes more than one node, so that a GPU size without InfiniBand may have many."""
    location: Location | None = None
    """Region of the nodes; the stack's when absent."""
    subnet: SubnetId | None = None
    """ARM id of the subnet that the nodes join."""
    node_public_ip: bool | None = None
    """True gives nodes public addresses; Azure's default when absent."""
    identity: Annotated[ClusterIdentity, or_named("type", ClusterIdentity)] = Field(default_factory=ClusterIdentity)
    """The identity by which the nodes read and write datastores and pull images: a type, or an object."""
    identity_change: Literal["replace", "in_place"] = "replace"
    """The meaning of another `identity` for a cluster that exists. That Azure changes it in place is not proven
    (docs/reference/unproven.md): in_place trusts that it does, replace does not."""
    isolated_network: bool = False
    """Azure's `isolatedNetwork`, passed on as it is. What the service does with it beside a subnet or a managed
    network is not proven (docs/reference/unproven.md)."""
    ssh: Ssh | None = None
    """The people who may log in to the nodes; nobody when absent."""
    disable_local_auth: bool | None = None
    """True lets nodes take Entra ID's accounts alone. When absent: unless the cluster has `ssh`."""
    fabric_check: OptionalFabricCheck = None
    """A job that judges the nodes and the network between them before the cluster's other jobs, which are submitted
    only once it has completed: true, or an object."""
    rehearse_on: Annotated[str, named("RehearseOn")] | None = None
    """The place where `amlstack rehearse` runs the cluster's jobs: `slurm`, or `slurm:PROFILE` with a profile of
    `amlstack:slurm`; `machine`, which is this one, when absent. Azure is told nothing of it."""
    description: str | None = None
    """A sentence for people who find the cluster in the studio."""
    tags: Tags = Field(default_factory=dict)
    """Tags beside the stack's."""
    adopted: bool = False
    """The cluster was imported (docs/how-to/existing.md): what its settings do not say stays as it was found, and
    `identity: none` leaves its identity as it is."""

    @property
    def without_local_auth(self) -> bool:
        """True where local accounts are off, by the settings or by the default."""
        return self.ssh is None if self.disable_local_auth is None else self.disable_local_auth

    @model_validator(mode="after")
    def _reachable(self) -> Cluster:
        if self.ssh is not None and self.disable_local_auth:
            raise ValueError(
                "`ssh` names an administrator, and `disable_local_auth` is true|Local accounts cannot be on and off: "
                "leave one of the two out"
            )
        if self.ssh is not None and self.ssh.public_access and self.node_public_ip is False:
            raise ValueError(
                "`ssh.public_access` is true, and `node_public_ip` is false|"
                "A node without a public address has no public port: leave one of the two out"
            )
        return self


def _partial(model: type[SettingsModel], name: str, inside: Collection[str] = (), without: str = "") -> Any:
    """A model with the fields of another one, all of which may be absent.

    Args:
        model: The other one.
        name: Of the new one.
        inside: Fields that hold objects, of which the same is true.
        without: A field that it does not have.
    """
    fields: dict[str, Any] = {}
    for key, field in model.model_fields.items():
        if key != without:
            given: Any = Optional[_type(field, name, partly=key in inside)]  # noqa: UP045 - at run time
            fields[key] = (given, None)
    made = create_model(name, __base__=SettingsModel, __doc__=model.__doc__, **fields)
    made.refused, made.partly = model.refused, model
    return made


def _type(field: FieldInfo, name: str, *, partly: bool) -> Any:
    if partly and (inner := models_in(field.annotation)):
        return _partial(cast("type[SettingsModel]", inner[0]), f"{name}{inner[0].__name__}")
    annotation: Any = field.annotation
    return Annotated[(annotation, *field.metadata)] if field.metadata else annotation


if TYPE_CHECKING:
    ClusterDefaults = Cluster
else:
    ClusterDefaults = _partial(Cluster, "ClusterDefaults", BY_KEY, without="name")
    ClusterDefaults.refused = MappingProxyType({**Cluster.refused, "name": "Each cluster has a name of its own"})
