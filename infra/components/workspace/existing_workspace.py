"""Existing resources that a stack uses and does not own: looked up, and seen as its workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pulumi
from pulumi.runtime import config as engine_config

from amlstack.base import api_versions
from amlstack.base.findings import Finding, stated
from infra import roles
from infra.components.registration import after, refuse

if TYPE_CHECKING:
    from infra.names import Names, Part
    from infra.settings import Settings

FUNCTION: Final = "amlstack:azure:lookUp"
"""Of our provider: its answers are values also where a resource is missing, and it reaches every subscription."""

_NAMED_BY_WORKSPACE: Final[dict[Part, str]] = {
    "storage": "storageAccount",
    "key_vault": "keyVault",
    "insights": "applicationInsights",
    "registry": "containerRegistry",
}
_SHOWN: Final[dict[Part, str]] = {
    "group": "resource group",
    "workspace": "workspace",
    "storage": "storage account",
    "key_vault": "key vault",
    "registry": "container registry",
    "insights": "application insights resource",
    "logs": "log analytics workspace",
}


async def confirmed(names: Names, settings: Settings, provider: pulumi.ProviderResource | None) -> Names:
    """The names, after Azure has confirmed what the settings give by `existing`, with the parts of such a workspace.

    Args:
        names: Of the stack.
        settings: Its settings.
        provider: Our provider, where the stack has one of its own.

    Raises:
        pulumi.RunError: Something is not there, or may not be read; it has been shown.
    """
    above: dict[Part, str] = {}
    if settings.workspace.existing:
        above["workspace"] = names.workspace_id
    elif settings.resource_group and settings.resource_group.existing:
        above["group"] = names.group_id
    found: dict[str, Any] = {}
    for given in (above, names.elsewhere):
        wrong: list[Finding] = []
        for part, resource_id in given.items():
            answer = await _asked(resource_id, part, provider)
            if answer and (finding := _finding(part, resource_id, answer)):
                wrong.append(finding)
            elif answer and part == "workspace":
                found = answer["properties"]
        if wrong:
            refuse(wrong)
    return names.standing_on({part: str(found[key]) for part, key in _NAMED_BY_WORKSPACE.items() if found.get(key)})


async def _asked(resource_id: str, part: Part, provider: pulumi.ProviderResource | None) -> dict[str, Any] | None:
    """The answer; nothing while the provider's settings are not known yet, and where a plan is made without Azure."""
    properties = [*_NAMED_BY_WORKSPACE.values()] if part == "workspace" else []
    asked = {"id": resource_id, "apiVersion": api_versions.OF_PARTS[part], "properties": properties}
    answer: dict[str, Any] | None = await pulumi.runtime.invoke_async(
        FUNCTION, asked, pulumi.InvokeOptions(provider=provider)
    )
    return answer


def _finding(part: Part, resource_id: str, answer: dict[str, Any]) -> Finding | None:
    """The finding about an answer; None for a resource that is there."""
    setting = {"group": "resource_group", "workspace": "workspace"}.get(part, f"workspace.{part}")
    where = f"amlstack:{setting}.existing"
    status = int(answer["status"])
    if status == 200:
        return None
    _, _, subscription, _, group, *below = resource_id.split("/")
    what = f"{_SHOWN[part]} `{below[-1] if below else group}`"
    place = f"resource group `{group}` of subscription `{subscription}`" if below else f"subscription `{subscription}`"
    answered = f"Azure's answer: {answer.get('message') or answer.get('code')}"
    show = f"`az resource show --ids {resource_id}`" if below else f"`az group show --name {group}`"
    if status == 404:
        return stated("existing-missing", where, what=what, place=place, answered=answered, show=show)
    if status in (401, 403):
        return stated("existing-unreadable/finding", where, what=what, place=place, rule=answered, show=show)
    return stated("existing-unreadable", where, what=what, place=place, rule=answered, show=show)


class ExistingWorkspace:
    """A workspace that somebody else owns; its attributes are those of `StackWorkspace`.

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

    def part(self, part: Part) -> tuple[pulumi.Resource, ...]:  # noqa: ARG002 - as `StackWorkspace` has it
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
