"""Parts of a workspace: resource group, storage, key vault, registry and monitoring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pulumi

from amlstack.base.findings import Finding
from infra import resource_types, security
from infra.components import registration
from infra.components.registration import behind

if TYPE_CHECKING:
    from infra.names import Names
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
    return Finding(
        "resource-group-moved",
        "amlstack:resource_group",
        f"`{wanted}` was given, and the stack's resources are in `{names.group}`",
        "Nothing moves to another resource group: workspace, storage and run records would be deleted and made anew, "
        "and this stack protects them",
        f"Write `{names.group}`. To give all of it up, set `amlstack:protect` to false first.",
    )


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
