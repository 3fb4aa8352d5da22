"""Where the parts of a workspace go, and what all of them have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pulumi

    from infra import settings as declared
    from infra.names import Names
    from infra.security import Security


@dataclass(frozen=True, slots=True)
class Place:
    """What a part of the workspace needs to be registered.

    Attributes:
        spec: The workspace's settings.
        security: What they come to on this stack.
        names: The names and ids of all parts.
        group_name: The group's name, known at preview, which depends on the group.
        location: Azure region.
        tags: Tags of every resource.
        tenant: Tenant id.
        component: What every part belongs to.
        opts: Of a part that holds data: its parent, after the group, protected where the stack protects.
        loose: The same of what holds none, and is never protected.
        premium: Private endpoints lead to the registry, which only its premium tier takes.
    """

    spec: declared.Workspace
    security: Security
    names: Names
    group_name: pulumi.Output[str]
    location: str
    tags: Mapping[str, str]
    tenant: str
    component: pulumi.Resource
    opts: pulumi.ResourceOptions
    loose: pulumi.ResourceOptions
    premium: bool = False

    @property
    def common(self) -> dict[str, Any]:
        """The properties that every part has."""
        return {"resourceGroupName": self.group_name, "location": self.location, "tags": dict(self.tags)}

    @property
    def public(self) -> str:
        """``Enabled`` or ``Disabled``, as ``publicNetworkAccess`` has it."""
        return self.security.access
