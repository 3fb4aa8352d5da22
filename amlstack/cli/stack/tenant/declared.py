"""From a stack's settings to the requests that Azure Policy is asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget
from amlstack.rpc import ProviderError
from amlstack.sandbox.azure_native import shape, table
from policies.tenant.stack import DeclaredStack, indexed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.cli.stack.tenant.rendered import RegisteredResource
    from infra.account import Account
    from infra.settings import Settings

_PREFIX = "azure-native:"
_GROUP = "Microsoft.Resources/subscriptions/resourceGroups"
_WORKSPACES = "microsoft.machinelearningservices/workspaces"


def declared(settings: Settings, who: Account, *, known: bool, stack: str) -> DeclaredStack:
    """The stack as a tenant's policies see it.

    Args:
        settings: The settings, with nothing wrong.
        who: Subscription and tenant.
        known: Whether the subscription is the stack's own, and not one of zeros.
        stack: The stack's name.
    """
    from amlstack.cli.stack.tenant.rendered import resources_of

    targets, unknown = requests(resources_of(settings, who, stack=stack))
    group = next((one for one in targets if one.type == _GROUP), None)
    name = group.name if group else _group_of(targets)
    location, tags = (group.body.get("location"), group.body.get("tags") or {}) if group else (None, None)
    place = PolicyPlace.of(who.subscription, name, location=location, tags=tags)
    if not known:
        place.subscription.clear()
    return DeclaredStack(tuple(targets), place, tuple(unknown))


def _group_of(targets: list[PolicyTarget]) -> str:
    """The resource group that somebody else owns."""
    of_workspace = (one.id.split("/") for one in targets if one.type.lower().startswith(_WORKSPACES))
    return next((parts[4] for parts in of_workspace), "")


def requests(registered: Iterable[RegisteredResource]) -> tuple[list[PolicyTarget], list[str]]:
    """The requests of registered resources of Azure, and the types of which none is known."""
    targets: list[PolicyTarget] = []
    unknown: dict[str, None] = {}
    for one in registered:
        if not one.token.startswith(_PREFIX):
            continue  # what runs in a workspace: Azure Policy judges none of it
        try:
            kind, version = table.find(one.token)
        except ProviderError:
            unknown[one.token.removeprefix(_PREFIX)] = None
            continue
        body: Mapping[str, Any] = shape.body(kind, one.properties)
        type_ = _type_of(kind.path)
        targets.append(
            PolicyTarget(type_, kind.id_of(one.subscription, one.properties), body, version, indexed(type_, body))
        )
    return targets, list(unknown)


def _type_of(path: str) -> str:
    """``Microsoft.X/a/b`` of ``…/providers/Microsoft.X/a/{one}/b/{two}``."""
    before, found, below = path.rpartition("/providers/")
    if not found:
        return _GROUP
    namespace, _, rest = below.partition("/")
    # Types and names take turns; a name may be fixed, as in `blobServices/default/containers/{containerName}`.
    return "/".join([namespace, *rest.split("/")[::2]]) if before or namespace else _GROUP
