"""The roles of people, groups and applications on the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra import access, resource_types, roles
from infra.components import registration
from infra.components.registration import behind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from infra.components.workspace import AnyWorkspace
    from infra.settings import WorkspaceAccess


def register(
    entries: Iterable[WorkspaceAccess], workspace: AnyWorkspace, parent: pulumi.Resource
) -> list[pulumi.Resource]:
    """Assign the roles that the settings name; what is no role has been found before."""
    names = workspace.names
    made: list[pulumi.Resource] = []
    for entry in entries:
        role = access.role(entry.role)
        if role is None:
            continue
        for principal in entry.principals:
            properties = {
                "roleAssignmentName": access.assignment_name(role.definition, principal, names),
                "scope": behind(names.workspace_id.lstrip("/"), *workspace.part("workspace")),
                "roleDefinitionId": roles.definition_id(role, names),
                "principalId": principal.id,
                "principalType": access.PRINCIPAL_TYPES[principal.type],
            }
            opts = pulumi.ResourceOptions(
                parent=parent,
                # Azure changes neither on an assignment that exists; the name is taken until the old one is gone.
                replace_on_changes=["principalId", "roleDefinitionId"],
                delete_before_replace=True,
            )
            made.append(
                registration.register(resource_types.ROLE_ASSIGNMENT, f"{role.name} {principal.id}", properties, opts)
            )
    return made
