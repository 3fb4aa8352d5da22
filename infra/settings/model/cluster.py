"""Clusters: their size, scale, network and identity."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from infra.settings.model.base import Location, SettingsModel, Tags, name_of, or_named

ClusterName = Annotated[str, name_of(r"^[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]\Z")]
Duration = Annotated[str, name_of(r"^P(\d+D|(\d+D)?T(\d+H(\d+M)?(\d+S)?|\d+M(\d+S)?|\d+S))\Z")]
SubnetId = Annotated[
    str,
    name_of(
        r"^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network/virtualNetworks/[^/]+/subnets/[^/]+\Z"
    ),
]
IdentityId = Annotated[
    str,
    name_of(
        r"^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ManagedIdentity/userAssignedIdentities/[^/]+\Z"
    ),
]


class Nodes(SettingsModel):
    """How far a cluster scales."""

    min: int = Field(0, ge=0, description="Nodes that stay up, and are paid for, without work.")
    max: int = Field(ge=0, description="Most nodes at once; also what the policies judge the cluster's fabric by.")
    idle: Duration = Field("PT10M", description="How long a node waits for work before it goes, ISO 8601 (PT10M).")

    @model_validator(mode="after")
    def _ordered(self) -> Nodes:
        if self.min > self.max:
            raise ValueError(f"`min` is {self.min} and `max` is {self.max}|`min` must not be above `max`")
        return self


class ClusterIdentity(SettingsModel):
    """As whom the nodes of a cluster act; a bare string is its `type`."""

    type: Literal["stack", "system", "none"] | None = Field(
        None,
        description="stack: one user-assigned identity, which the stack makes for all its clusters, so that a replaced "
        "cluster keeps its access; system: the cluster's own. Both get the roles of docs/identities.md. none: nobody. "
        "When absent: none beside `user_assigned`, else stack.",
    )
    user_assigned: tuple[IdentityId, ...] = Field(
        (), description="ARM ids of user-assigned identities that exist already. The stack gives them no role."
    )

    @property
    def kind(self) -> Literal["stack", "system", "none"]:
        """The type, with what is meant when it is absent."""
        return self.type or ("none" if self.user_assigned else "stack")


class Cluster(SettingsModel):
    """One AmlCompute cluster."""

    name: ClusterName = Field(
        description="Name: 3 to 24 characters, a letter first, then letters, digits and '-', no '-' at the end."
    )
    size: str = Field(description="VM size, as `amlstack sizes` lists them.")
    nodes: Nodes = Field(description="Scale: min, max, idle.")
    priority: Literal["dedicated", "low_priority"] = Field(
        "dedicated", description="Low-priority nodes can be pre-empted."
    )
    single_node_jobs: bool = Field(
        False,
        description="Promises that no job takes more than one node, so that a GPU size without InfiniBand may have "
        "many.",
    )
    location: Location | None = Field(None, description="Region of the nodes; the stack's when absent.")
    subnet: SubnetId | None = Field(None, description="ARM id of the subnet that the nodes join.")
    node_public_ip: bool | None = Field(
        None, description="Whether nodes get public addresses; Azure's default when absent."
    )
    identity: Annotated[ClusterIdentity, or_named("type", ClusterIdentity)] = Field(
        default_factory=ClusterIdentity,
        description="As whom the nodes read and write datastores and pull images: a type, or an object.",
    )
    description: str | None = Field(None, description="A sentence for people who find the cluster in the studio.")
    tags: Tags = Field(default_factory=dict, description="Tags beside the stack's.")
