"""The security of a workspace: as whom it acts, how it is encrypted, what is recorded, and what is locked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pulumi

from infra import resource_types, roles
from infra.components import registration
from infra.components.registration import behind
from infra.components.workspace.parts import register_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from infra.components.workspace.parts import PartContext
    from infra.names import Part


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
        context: PartContext,
        which: Iterable[roles.Role],
        on: Mapping[Part, pulumi.Resource],
    ) -> list[pulumi.Resource]:
        """Assign it roles on parts of the workspace.

        Args:
            context: Where.
            which: The roles.
            on: The parts that the stack makes.
        """
        made: list[pulumi.Resource] = []
        for role in which:
            if role.part not in context.names.without:  # an imported workspace need not have a registry
                label = f"workspace-{role.name.lower().replace(' ', '-')}-on-{role.part.replace('_', '-')}"
                there = (on[role.part],) if role.part in on else ()
                made += self.give_on(context, label, role, context.names.id(role.part), there)
        return made

    def give_on(
        self, context: PartContext, label: str, role: roles.Role, scope: str, on: Sequence[pulumi.Resource] = ()
    ) -> list[pulumi.Resource]:
        """Assign it one role on any resource, by its ARM id; nothing where the stack assigns none."""
        if self.id is None or self.principal is None:
            return []
        name = roles.assignment_name(scope, role, self.id)
        return [assign(label, role, scope, self.principal, name=name, parent=context.component, on=on)]


def register_identity(context: PartContext, on: Mapping[Part, pulumi.Resource]) -> Primary:
    """The workspace's identity, registered where it is the stack's, with its roles on what the workspace stands on.

    Args:
        context: Where.
        on: The parts that the stack makes.
    """
    spec, assign_roles = context.spec.identity, context.settings.assign_roles
    if context.security.identity == "system":
        return Primary()
    if context.security.identity == "user":
        made = Primary(spec.primary, spec.principal_id if assign_roles else None, [], spec.keep_system)
    else:
        properties = {"resourceName": context.names.workspace_identity, **context.common, "principalId": None}
        own = registration.register(resource_types.IDENTITY, "workspace-identity", properties, context.loose)
        principal = registration.output(own, "principalId") if assign_roles else None
        made = Primary(context.names.id("workspace_identity"), principal, [own], spec.keep_system, own)
    made.before.extend(made.give(context, (role for role in roles.WORKSPACE if role.part != "workspace"), on))
    return made


def let_approve(context: PartContext, who: Primary, accounts: Iterable[str]) -> list[pulumi.Resource]:
    """Let the identity approve the private endpoints of the managed network to the accounts of datastores.

    Args:
        context: Where.
        who: The workspace's identity; Azure itself gives a system-assigned one its roles.
        accounts: ARM ids.
    """
    made: list[pulumi.Resource] = []
    for account in accounts:
        made += who.give_on(context, f"workspace-approver-on-{account.rpartition('/')[2]}", roles.APPROVER, account)
    return made


def assign(
    label: str,
    role: roles.Role,
    scope: str,
    principal: pulumi.Input[str],
    *,
    name: str,
    parent: pulumi.Resource,
    on: Sequence[pulumi.Resource] = (),
    principal_type: str = "ServicePrincipal",
) -> pulumi.CustomResource:
    """Assign a role.

    Args:
        label: Name in the stack.
        role: The role.
        scope: ARM id of what it is given on.
        principal: Object id of who gets it, known once it exists.
        name: Name of the assignment, a UUID.
        parent: The component that the assignment belongs to.
        on: The resource that it is given on, where that is the stack's.
        principal_type: Azure's word. Without it Azure looks the principal up at once, and often finds no new one yet.
    """
    properties = {
        "roleAssignmentName": name,
        "scope": behind(scope.lstrip("/"), *on),
        "roleDefinitionId": roles.definition_id(scope, role),
        "principalId": principal,
        "principalType": principal_type,
    }
    opts = pulumi.ResourceOptions(
        parent=parent,
        # Azure changes neither on an assignment that exists; the name is taken until the old one is gone.
        replace_on_changes=["principalId", "roleDefinitionId"],
        delete_before_replace=True,
    )
    return registration.register(resource_types.ROLE_ASSIGNMENT, label, properties, opts)


def register_encryption(
    context: PartContext, vault: pulumi.Resource | None, who: Primary
) -> tuple[dict[str, Any], list[pulumi.Resource]]:
    """Register the key, where it is the stack's, and the identity's role on its vault.

    Args:
        context: Where.
        vault: The stack's own vault, where it has one.
        who: The workspace's identity.

    Returns:
        The properties of the workspace that name the key, and what comes before the workspace.
    """
    spec = context.spec.encryption
    if spec is None:
        return {}, []
    before: list[pulumi.Resource] = []
    if spec.own and vault is not None:
        made = register_key(context, vault, spec.key)
        before += [made, *who.give(context, [roles.ENCRYPTION], {"key_vault": vault})]
        identifier: pulumi.Input[str] = registration.output(made, "keyUriWithVersion")
        vault_id = context.names.id("key_vault")
    else:
        identifier, vault_id = spec.key, str(spec.key_vault)
        label = f"workspace-{roles.ENCRYPTION.name.lower().replace(' ', '-')}-on-key"
        before += who.give_on(context, label, roles.ENCRYPTION, vault_id)
    properties: dict[str, Any] = {
        "status": "Enabled",
        "keyVaultProperties": {"keyVaultArmId": vault_id, "keyIdentifier": identifier},
        **({"identity": {"userAssignedIdentity": who.id}} if who.id else {}),
    }
    return {"encryption": properties, "enableServiceSideCMKEncryption": spec.service_side}, before


NAME: Final = "amlstack"
"""Of diagnostic settings and locks."""


def register_diagnostics(
    context: PartContext, workspace: pulumi.Resource, logs: pulumi.Resource | None
) -> pulumi.CustomResource | None:
    """Register the workspace's diagnostic setting; None where the settings want none.

    Args:
        context: Where.
        workspace: The workspace.
        logs: The log analytics workspace; None when it is none of the stack's.
    """
    if not context.security.categories:
        return None
    properties = {
        "name": NAME,
        "resourceUri": behind(context.names.workspace_id.lstrip("/"), workspace),
        "workspaceId": behind(context.names.id("logs"), *([logs] if logs else ())),
        "logs": [{"category": category, "enabled": True} for category in context.security.categories],
    }
    opts = pulumi.ResourceOptions(
        parent=context.component,
        delete_before_replace=True,
    )
    return registration.register(resource_types.DIAGNOSTIC_SETTING, "workspace-diagnostics", properties, opts)


NOTES: Final = "Holds data of an Azure Machine Learning workspace. Set by amlstack:workspace.locks of its stack."


class StackResources:
    """A stack transformation that changes nothing: it knows what the program has registered.

    Attributes:
        every: All of it but components and providers.
        locked_in: What a lock would hold: role assignments, and containers and shares in an account.
        providers: Resource providers that the subscription must have registered.
    """

    def __init__(self) -> None:
        self.every: list[pulumi.CustomResource] = []
        self.locked_in: list[pulumi.Resource] = []
        self.providers: set[str] = set()

    def __call__(self, args: pulumi.ResourceTransformationArgs) -> None:
        """Look at a resource that is about to be registered."""
        if args.type_ in (resource_types.ROLE_ASSIGNMENT, *resource_types.HOLDS_DATA):
            self.locked_in.append(args.resource)
        if isinstance(args.resource, pulumi.CustomResource) and not isinstance(args.resource, pulumi.ProviderResource):
            self.every.append(args.resource)
            if provider := resource_types.PROVIDERS.get(args.type_.split(":")[1]):
                self.providers.add(provider)
