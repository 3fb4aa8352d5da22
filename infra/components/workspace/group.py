"""The resource group, and what keeps a stack in the one that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from amlstack.base.findings import Finding
from infra.components import azure_native, tokens
from infra.components.workspace.adopted import ALL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.names import Names
    from infra.settings import Settings


def register_group(
    names: Names,
    *,
    location: str,
    tags: Mapping[str, str],
    keeps_name: bool,
    protect: bool,
    opts: pulumi.ResourceOptions,
    as_found: bool,
) -> pulumi.CustomResource:
    """Register the resource group.

    Args:
        names: The names of a new stack.
        location: Azure region.
        tags: Its tags.
        keeps_name: A group that the stack has keeps its name, whatever ``names`` has.
        protect: The engine refuses to delete it.
        opts: Its parent and protection.
        as_found: It was imported, and stays as it is.
    """
    kept = pulumi.ResourceOptions(
        # Where a group's own record lies says nothing of where its resources are.
        ignore_changes=ALL if as_found else ["location", *(["resourceGroupName"] if keeps_name else [])],
        # A protected group is never replaced. A state that was written before groups were protected does not say
        # so, and the engine would delete the group first; with creation first it finds the name taken and stops.
        delete_before_replace=not protect,
    )
    properties = {"resourceGroupName": names.group, "location": location, "tags": dict(tags), "name": None}
    return azure_native.register(tokens.RESOURCE_GROUP, "group", properties, pulumi.ResourceOptions.merge(opts, kept))


def moved(settings: Settings, names: Names) -> Finding | None:
    """The finding on settings that name another resource group than the one that the stack has."""
    wanted = settings.resource_group.called if settings.resource_group else None
    if wanted is None or wanted.lower() == names.group.lower():
        return None
    return Finding(
        "resource-group-moved",
        "amlstack:resource_group",
        f"`{wanted}` was given, and the stack's resources are in `{names.group}`",
        "Nothing moves to another resource group: workspace, storage and run records would be deleted and made anew, "
        "and this stack protects them",
        f"Write `{names.group}`. To give all of it up, set `amlstack:protect` to false first.",
    )
