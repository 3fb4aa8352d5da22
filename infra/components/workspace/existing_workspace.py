"""The workspace as the rest of a stack sees it, owned or existing, and the lookup of an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pulumi
from pulumi.runtime import config as engine_config

from infra import roles
from infra.components.order import after

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    def settled_id(self) -> pulumi.Input[str]:
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
        """True where the workspace has a part, whoever owns it."""
        ...


class ExistingWorkspace:
    """A workspace that somebody else owns, as `AnyWorkspace` describes it.

    Attributes:
        names: Its name and place, and the ids of what it stands on, as far as Azure named them.
        provider: azure-native for its subscription; None for the stack's own.
    """

    cluster_roles: tuple[roles.Role, ...] = roles.CLUSTER

    def __init__(self, names: Names, *, provider: pulumi.ProviderResource | None) -> None:
        self.names = names
        self.provider = provider
        self.compute_subnet: pulumi.Output[str] | None = None
        self.group_name: pulumi.Input[str] = names.group
        self.name: pulumi.Input[str] = names.workspace
        self.workspace_id: pulumi.Input[str] = names.workspace_id
        self.group_id: pulumi.Input[str] = names.group_id
        self.settled_id: pulumi.Input[str] = names.workspace_id
        self.reached_by: tuple[pulumi.CustomResource, ...] = ()
        self.everything: pulumi.Output[Any] = after()

    def lock(self, after: Sequence[pulumi.Resource]) -> None:
        """Nothing: locks on it are somebody else's concern."""

    def part(self, part: Part) -> tuple[pulumi.Resource, ...]:  # noqa: ARG002 - as `AnyWorkspace` has it
        """Nothing: no part is the stack's."""
        return ()

    def has(self, part: Part) -> bool:
        """True where the workspace names such a part."""
        return part in self.names.elsewhere


PROVIDER = "workspace"
"""Name of the provider of another subscription."""


def provider_of(subscription: str, config: Mapping[str, str]) -> pulumi.ProviderResource:
    """azure-native for another subscription, with everything else as the stack has it.

    Args:
        subscription: Its id.
        config: The engine's configuration, ``namespace:key`` → value.
    """
    settings: dict[str, pulumi.Input[str]] = {}
    for key, value in config.items():
        namespace, _, name = key.partition(":")
        if namespace == "azure-native":
            settings[name] = pulumi.Output.secret(value) if engine_config.is_config_secret(key) else value
    return pulumi.ProviderResource("azure-native", PROVIDER, {**settings, "subscriptionId": subscription})
