"""What the rest of a stack needs to know of its workspace, whoever owns that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pulumi

    from infra.names import Names, Part
    from infra.roles import Role


class AnyWorkspace(Protocol):
    """A workspace of the stack, or one that exists.

    Attributes:
        names: The names and ids of all parts.
        compute_subnet: ARM id of the subnet of clusters without one of their own, behind its network; None for none.
        provider: azure-native for the workspace's subscription, where that is not the stack's own.
        cluster_roles: What the identity of a cluster gets.
    """

    names: Names
    provider: pulumi.ProviderResource | None
    compute_subnet: pulumi.Output[str] | None
    cluster_roles: tuple[Role, ...]

    @property
    def group_name(self) -> pulumi.Input[str]:
        """Name of its resource group, behind the group where the stack has one."""
        ...

    @property
    def name(self) -> pulumi.Input[str]:
        """Its name, behind the workspace."""
        ...

    @property
    def workspace_id(self) -> pulumi.Input[str]:
        """Its ARM id likewise."""
        ...

    @property
    def group_id(self) -> pulumi.Input[str]:
        """ARM id of its resource group, behind the group where the stack has one."""
        ...

    @property
    def whole(self) -> pulumi.Input[str]:
        """The same id, behind everything that the workspace stands on."""
        ...

    @property
    def reached_by(self) -> tuple[pulumi.CustomResource, ...]:
        """The identity and the network that runs reach their data by, as far as the stack makes them."""
        ...

    @property
    def everything(self) -> pulumi.Output[Any]:
        """The workspace, as an entry of ``depends_on``."""
        ...

    def lock(self, after: Sequence[pulumi.Resource]) -> None:
        """Lock against deletion what the settings name; the last that is declared, after role assignments."""
        ...

    def part(self, part: Part) -> tuple[pulumi.Resource, ...]:
        """The resource of a part that the stack owns; none of what somebody else owns."""
        ...

    def has(self, part: Part) -> bool:
        """Whether the workspace has a part, whoever owns it."""
        ...
