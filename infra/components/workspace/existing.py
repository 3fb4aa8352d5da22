"""A workspace that exists: what is put into it goes where it is, and nothing of it is a resource of the stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime import config as engine_config

from infra import roles
from infra.components.order import after

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.names import Names, Part


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
        self.whole: pulumi.Input[str] = names.workspace_id
        self.reached_by: tuple[pulumi.CustomResource, ...] = ()
        self.everything: pulumi.Output[Any] = after()

    def lock(self, after: Sequence[pulumi.Resource]) -> None:
        """Nothing: locks on it are somebody else's concern."""

    def part(self, part: Part) -> tuple[pulumi.Resource, ...]:  # noqa: ARG002 - as `AnyWorkspace` has it
        """Nothing: no part is the stack's."""
        return ()

    def has(self, part: Part) -> bool:
        """Whether the workspace names such a part."""
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
