"""Parts of a workspace: resource group, storage, key vault, registry, monitoring, identity, keys, records and locks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pulumi

from amlstack.base.findings import Finding, stated
from infra import resource_types, roles, security
from infra.components import registration
from infra.components.registration import behind

if TYPE_CHECKING:
    from infra.names import Names, Part
    from infra.security import Security
    from infra.settings import Settings, Workspace


@dataclass(frozen=True, slots=True)
class PartContext:
    """The context that a part of the workspace needs to be registered.

    Attributes:
        settings: The stack's settings.
        security: What those of the workspace come to on this stack.
        names: The names and ids of all parts.
        group_name: The group's name, known at preview, which depends on the group.
        tenant: Tenant id.
        component: What every part belongs to.
        opts: Of a part that holds data: its parent, after the group, protected where the stack protects.
        loose: The same of what holds none, and is never protected.
        premium: Private endpoints lead to the registry, which only its premium tier takes.
    """

    settings: Settings
    security: Security
    names: Names
    group_name: pulumi.Output[str]
    tenant: str
    component: pulumi.Resource
    opts: pulumi.ResourceOptions
    loose: pulumi.ResourceOptions
    premium: bool = False

    @property
    def spec(self) -> Workspace:
        """The workspace's settings."""
        return self.settings.workspace

    @property
    def common(self) -> dict[str, Any]:
        """The properties that every part has."""
        settings = self.settings
        return {"resourceGroupName": self.group_name, "location": settings.location, "tags": dict(settings.tags)}

    @property
    def public(self) -> str:
        """``Enabled`` or ``Disabled``, as ``publicNetworkAccess`` has it."""
        return self.security.access


ALL: Final = ["*"]
"""Of a part that was imported: the settings say nothing of it but its name."""


def register_group(
    settings: Settings, names: Names, *, protect: bool, parent: pulumi.Resource
) -> pulumi.CustomResource:
    """Register the resource group. One that the stack has keeps its name where it is protected, or none is given.

    Args:
        settings: The stack's settings.
        names: The names of a new stack.
        protect: The engine refuses to delete it.
        parent: The component that it belongs to.
    """
    keeps_name = protect or settings.resource_group is None
    opts = pulumi.ResourceOptions(
        parent=parent,
        protect=protect,
        # The location of a group's own record says nothing of the location of its resources.
        ignore_changes=ALL
        if settings.workspace.adopted
        else ["location", *(["resourceGroupName"] if keeps_name else [])],
        # A protected group is never replaced. A state that was written before groups were protected does not say
        # so, and the engine would delete the group first; with creation first it finds the name taken and stops.
        delete_before_replace=not protect,
    )
    properties = {
        "resourceGroupName": names.group,
        "location": settings.location,
        "tags": dict(settings.tags),
        "name": None,
    }
    return registration.register(resource_types.RESOURCE_GROUP, "group", properties, opts)


def moved(settings: Settings, names: Names) -> Finding | None:
    """The finding on settings that name another resource group than the one that the stack has."""
    wanted = settings.resource_group.called if settings.resource_group else None
    if wanted is None or wanted.lower() == names.group.lower():
        return None
    return stated("resource-group-moved", "amlstack:resource_group", wanted=wanted, names=names)


def register_storage(context: PartContext) -> pulumi.CustomResource:
    """Register the storage account, which Entra ID is the only way into: it has no shared keys."""
    twice = {
        "keySource": "Microsoft.Storage",
        "requireInfrastructureEncryption": True,
        "services": {"blob": {"enabled": True}, "file": {"enabled": True}},
    }
    properties = {
        "accountName": context.names.storage,
        **context.common,
        "kind": "StorageV2",
        "sku": {"name": security.SKUS[context.spec.storage.redundancy]},
        "allowSharedKeyAccess": False,
        "allowBlobPublicAccess": False,
        "enableHttpsTrafficOnly": True,
        "minimumTlsVersion": "TLS1_2",
        "publicNetworkAccess": context.public,
        "networkRuleSet": security.storage_rules(context.security),
        "encryption": twice if context.security.infrastructure_encryption else None,
    }
    # Azure sets it when it makes an account and never changes it: one that exists keeps what it has.
    opts = pulumi.ResourceOptions.merge(context.opts, pulumi.ResourceOptions(ignore_changes=["encryption"]))
    return registration.register(resource_types.STORAGE_ACCOUNT, "storage", properties, opts)


def register_soft_delete(context: PartContext, account: pulumi.Resource) -> list[pulumi.Resource]:
    """Register that deleted blobs and containers can be brought back; nothing where the settings want none.

    Args:
        context: Where.
        account: The storage account.
    """
    days = context.security.soft_delete_days
    if not days:
        return []
    kept = {"enabled": True, "days": days}
    properties = {
        "resourceGroupName": context.group_name,
        "accountName": behind(context.names.storage, account),
        "blobServicesName": "default",
        "deleteRetentionPolicy": kept,
        "containerDeleteRetentionPolicy": kept,
    }
    return [registration.register(resource_types.BLOB_SERVICE, "storage-blobs", properties, context.loose)]


def register_key_vault(context: PartContext) -> pulumi.CustomResource:
    """Register the key vault, which goes by roles and has no access policies."""
    inner = {
        "tenantId": context.tenant,
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        # Azure takes true or nothing.
        "enablePurgeProtection": context.spec.key_vault.purge_protection or None,
        "enableSoftDelete": True,
        "publicNetworkAccess": context.public,
        "networkAcls": security.vault_rules(context.security),
        # As azure-native's classes register what is not given.
        "enabledForDeployment": False,
        "enabledForDiskEncryption": False,
        "enabledForTemplateDeployment": False,
        "softDeleteRetentionInDays": 90,
    }
    inner = {name: value for name, value in inner.items() if value is not None}
    properties = {"vaultName": context.names.key_vault, **context.common, "properties": inner}
    return registration.register(resource_types.KEY_VAULT, "key-vault", properties, context.opts)


def register_key(context: PartContext, vault: pulumi.Resource, name: str) -> pulumi.CustomResource:
    """Register a key in the stack's vault; it stays there when the stack goes, as a key cannot be deleted by ARM.

    Args:
        context: Where.
        vault: The vault.
        name: Name of the key.
    """
    properties = {
        "resourceGroupName": context.group_name,
        "vaultName": behind(context.names.key_vault, vault),
        "keyName": name,
        # As learn.microsoft.com/azure/machine-learning/how-to-setup-customer-managed-keys recommends.
        "properties": {"kty": "RSA", "keySize": 3072},
        "keyUriWithVersion": None,
    }
    return registration.register(resource_types.KEY, f"key-{name}", properties, context.opts)


def register_registry(context: PartContext) -> pulumi.CustomResource:
    """Register the container registry, which has no admin user."""
    properties = {
        "registryName": context.names.registry,
        **context.common,
        # Only the premium tier can be closed to the internet, or to a part of it, and take private endpoints.
        "sku": {"name": "Premium" if context.security.limited or context.premium else "Standard"},
        "adminUserEnabled": False,
        "publicNetworkAccess": context.public,
        "networkRuleSet": security.registry_rules(context.security),
        # As azure-native's classes register what is not given.
        "anonymousPullEnabled": False,
        "networkRuleBypassOptions": "AzureServices",
        "zoneRedundancy": "Disabled",
    }
    return registration.register(resource_types.REGISTRY, "registry", properties, context.opts)


def register_logs(context: PartContext) -> pulumi.CustomResource:
    """Register the log analytics workspace."""
    properties = {
        "workspaceName": context.names.logs,
        **context.common,
        "sku": {"name": "PerGB2018"},
        "retentionInDays": 30,
    }
    return registration.register(resource_types.LOGS, "logs", properties, context.opts)


def register_insights(context: PartContext, written_to: pulumi.Resource | None) -> pulumi.CustomResource:
    """Register application insights.

    Args:
        context: Where.
        written_to: The log analytics workspace; None when it is none of the stack's.
    """
    properties = {
        "resourceName": context.names.insights,
        **context.common,
        "kind": "web",
        "applicationType": "web",
        "ingestionMode": "LogAnalytics",
        "workspaceResourceId": context.names.id("logs"),
        # As azure-native's classes register what is not given.
        "flowType": "Bluefield",
        "requestSource": "rest",
        "publicNetworkAccessForIngestion": "Enabled",
        "publicNetworkAccessForQuery": "Enabled",
    }
    after_logs = pulumi.ResourceOptions(
        depends_on=[written_to] if written_to else [],
        # With them anybody writes telemetry; azure-native marks neither.
        additional_secret_outputs=["connectionString", "instrumentationKey"],
    )
    opts = pulumi.ResourceOptions.merge(context.opts, after_logs)
    return registration.register(resource_types.INSIGHTS, "insights", properties, opts)


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
        self, context: PartContext, which: Iterable[roles.Role], on: Mapping[Part, pulumi.Resource]
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
    opts = pulumi.ResourceOptions(parent=context.component, delete_before_replace=True)
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
