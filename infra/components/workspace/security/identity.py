"""As whom the workspace acts: its user-assigned identity, and the roles of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pulumi

from infra import roles
from infra.components import azure_native, tokens
from infra.components.order import behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from infra.components.workspace.place import Place
    from infra.names import Names, Part


@dataclass(frozen=True, slots=True)
class Primary:
    """The identity that a workspace uses for what it does.

    Attributes:
        id: ARM id; None for the system-assigned one.
        principal: Object id, for roles; None where it is not known or the stack assigns none.
        before: What comes before the workspace: the identity and its roles.
        own: The identity, where the stack makes it.
        keeps_system: A system-assigned identity stays beside it.
    """

    id: str | None = None
    principal: pulumi.Input[str] | None = None
    before: list[pulumi.Resource] = field(default_factory=list)
    keeps_system: bool = True
    own: pulumi.CustomResource | None = None

    def properties(self) -> dict[str, Any]:
        """The part of the workspace's properties that names it."""
        if self.id is None:
            return {"identity": {"type": "SystemAssigned"}}
        kinds = "SystemAssigned,UserAssigned" if self.keeps_system else "UserAssigned"
        return {
            "identity": {"type": kinds, "userAssignedIdentities": [self.id]},
            "primaryUserAssignedIdentity": self.id,
        }

    def give(
        self,
        place: Place,
        which: Iterable[roles.Role],
        on: Mapping[Part, pulumi.Resource],
        *,
        scope: str | None = None,
    ) -> list[pulumi.Resource]:
        """Assign it roles on parts of the workspace.

        Args:
            place: Where.
            which: The roles.
            on: The parts that the stack makes.
            scope: ARM id of what they are given on, where that is no part of the workspace.
        """
        if self.id is None or self.principal is None:
            return []
        return [
            assign(
                f"workspace-{role.name.lower().replace(' ', '-')}-on-{'key' if scope else role.part.replace('_', '-')}",
                role,
                place.names,
                self.principal,
                on=() if scope or role.part not in on else (on[role.part],),
                holder=self.id,
                parent=place.component,
                scope=scope,
            )
            for role in which
            if scope or role.part not in place.names.without  # an imported workspace need not have a registry
        ]


def register_identity(place: Place, on: Mapping[Part, pulumi.Resource], *, assign_roles: bool) -> Primary:
    """The workspace's identity, registered where it is the stack's, with its roles on what the workspace stands on.

    Args:
        place: Where.
        on: The parts that the stack makes.
        assign_roles: The stack assigns roles.
    """
    spec = place.spec.identity
    if place.security.identity == "system":
        return Primary()
    if place.security.identity == "user":
        made = Primary(spec.primary, spec.principal_id if assign_roles else None, [], spec.keep_system)
    else:
        properties = {"resourceName": place.names.workspace_identity, **place.common, "principalId": None}
        own = azure_native.register(tokens.IDENTITY, "workspace-identity", properties, place.loose)
        principal = azure_native.output(own, "principalId") if assign_roles else None
        made = Primary(place.names.id("workspace_identity"), principal, [own], spec.keep_system, own)
    made.before.extend(made.give(place, (role for role in roles.WORKSPACE if role.part != "workspace"), on))
    return made


def grant_on_workspace(place: Place, who: Primary, workspace: pulumi.Resource) -> list[pulumi.Resource]:
    """Assign the roles that the identity has on the workspace itself, which exists by then."""
    return who.give(place, (role for role in roles.WORKSPACE if role.part == "workspace"), {"workspace": workspace})


def let_approve(place: Place, who: Primary, accounts: Iterable[str]) -> list[pulumi.Resource]:
    """Let the identity approve the private endpoints of the managed network to the accounts of datastores.

    Args:
        place: Where.
        who: The workspace's identity; Azure itself gives a system-assigned one its roles.
        accounts: ARM ids.
    """
    if who.id is None or who.principal is None:
        return []
    return [
        assign(
            f"workspace-approver-on-{account.rpartition('/')[2]}",
            roles.APPROVER,
            place.names,
            who.principal,
            on=(),
            holder=who.id,
            parent=place.component,
            scope=account,
        )
        for account in accounts
    ]


def assign(
    name: str,
    role: roles.Role,
    names: Names,
    principal: pulumi.Input[str],
    *,
    on: Sequence[pulumi.Resource],
    holder: str,
    parent: pulumi.Resource,
    scope: str | None = None,
) -> pulumi.CustomResource:
    """Assign a role.

    Args:
        name: Name in the stack.
        role: The role.
        names: The stack's names.
        principal: Object id of who gets it, known once it exists.
        on: The resource that it is given on, where that is the stack's.
        holder: ARM id of the identity, or of the resource with an identity of its own.
        parent: The component that the assignment belongs to.
        scope: ARM id of what it is given on; the role's part of the workspace when absent.
    """
    where = scope or roles.scope(role, names)
    properties = {
        "roleAssignmentName": roles.name_of(where, role, holder),
        "scope": behind(where.lstrip("/"), *on),
        "roleDefinitionId": roles.definition_for(where, role),
        "principalId": principal,
        # Without it Azure looks the principal up at once, and a new one is often not found yet.
        "principalType": "ServicePrincipal",
    }
    opts = pulumi.ResourceOptions(
        parent=parent,
        # Azure changes neither on an assignment that exists; the name is taken until the old one is gone.
        replace_on_changes=["principalId", "roleDefinitionId"],
        delete_before_replace=True,
    )
    return azure_native.register(tokens.ROLE_ASSIGNMENT, name, properties, opts)
