"""The foundation of a stack's runs: its own or an existing workspace, and the clusters' identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra import security
from infra.components import azure_native
from infra.components.identities import StackIdentity
from infra.components.shown import refuse
from infra.components.workspace import ExistingWorkspace, StackWorkspace, moved, provider_of
from infra.components.workspace.lookup import look_up_group, look_up_parts, look_up_workspace
from infra.network import plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.base.findings import Finding
    from infra.account import Account
    from infra.components.workspace import AnyWorkspace
    from infra.names import Names
    from infra.settings import Settings


async def found(names: Names, settings: Settings, provider: pulumi.ProviderResource | None) -> Names:
    """The names, after Azure has confirmed what the settings give by `existing`.

    Args:
        names: Of the stack.
        settings: Its settings.
        provider: Our provider, where the stack has one of its own.

    Raises:
        pulumi.RunError: Something is not there, or may not be read; it has been shown.
    """
    wrong: list[Finding] = []
    if settings.workspace.existing:
        names, wrong = await look_up_workspace(names, provider)
    else:
        if settings.resource_group and settings.resource_group.existing:
            wrong = await look_up_group(names, provider)
        if names.elsewhere and not wrong:
            wrong = await look_up_parts(names, provider)
    if wrong:
        refuse(wrong)
    return names


def existing(names: Names, who: Account, config: Mapping[str, str]) -> AnyWorkspace:
    """A workspace that somebody else owns.

    Args:
        names: Its place, with what it stands on.
        who: The stack's own subscription.
        config: The engine's configuration, ``namespace:key`` → value.
    """
    elsewhere = names.subscription.lower() != who.subscription.lower()
    return ExistingWorkspace(names, provider=provider_of(names.subscription, config) if elsewhere else None)


async def created(settings: Settings, names: Names, who: Account) -> AnyWorkspace:
    """The stack's own workspace, in the resource group that the stack has.

    Raises:
        pulumi.RunError: The settings name another group than the protected one that the stack has.
    """
    stack = pulumi.get_stack()
    protect = security.is_protected(settings, stack)
    workspace = StackWorkspace(
        settings.workspace,
        names,
        security=security.of_stack(settings, stack),
        assign_roles=settings.assign_roles,
        location=settings.location,
        tags=settings.tags,
        keeps_group=protect or settings.resource_group is None,
        protect=protect,
        owns_group=not (settings.resource_group and settings.resource_group.existing),
    )
    if workspace.group is not None:
        names = names.within(await _name_of(workspace.group))
        if wrong := moved(settings, names):
            refuse([wrong])
    cloud = pulumi.Config("azure-native").get("environment") or "public"
    workspace.fill(names, who, plan.network_plan(settings, names, pulumi.get_stack(), cloud))
    return workspace


async def identity(settings: Settings, workspace: AnyWorkspace) -> StackIdentity:
    """The stack's identity with its roles; on a workspace that exists under the name that the stack has given it."""
    keeps_name = settings.workspace.existing is not None
    shared = StackIdentity(workspace, location=settings.location, tags=settings.tags, keeps_name=keeps_name)
    if keeps_name:
        workspace.names = workspace.names.with_identity(await _name_of(shared.identity))
    shared.grant(workspace, assign_roles=settings.assign_roles)
    return shared


async def _name_of(resource: pulumi.Resource) -> str | None:
    """The name of a resource that the stack has; None while it has none, and where its registration failed."""
    try:
        name = await azure_native.output(resource, "name").future()
    except Exception:  # noqa: BLE001 - the engine has reported it already, and ends the program
        return None
    return str(name) if name else None
