"""The workspace and what it stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_azure_native import (
    applicationinsights,
    containerregistry,
    keyvault,
    machinelearningservices,
    operationalinsights,
    resources,
    storage,
)

from amlstack.base.findings import Finding
from infra.components.order import after, behind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra import settings as declared
    from infra.account import Account
    from infra.names import Names
    from infra.settings import Settings


def moved(settings: Settings, names: Names) -> Finding | None:
    """The finding on settings that name another resource group than the one that the stack has."""
    wanted = settings.resource_group
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


class StackWorkspace(pulumi.ComponentResource):
    """Resource group, storage, key vault, logs, application insights, registry and the workspace on top of them.

    Entra ID is the only way in: the storage account has no shared keys, the registry no admin, the vault no access
    policies.
    """

    def __init__(
        self,
        spec: declared.Workspace,
        names: Names,
        *,
        location: str,
        tags: Mapping[str, str],
        keeps_group: bool,
        protect: bool,
    ) -> None:
        """Declare the resource group; `fill` declares what is in it.

        Args:
            spec: The workspace's settings.
            names: The names of a new stack.
            location: Azure region.
            tags: Tags of every resource.
            keeps_group: A group that the stack has keeps its name, whatever ``names`` has.
            protect: The engine refuses to delete what holds data.
        """
        super().__init__("amlstack:infra:Workspace", spec.name)
        self._spec, self._tags, self._location = spec, dict(tags), location
        self._public = "Enabled" if spec.public_network else "Disabled"
        self._guarded = pulumi.ResourceOptions(parent=self, protect=protect)
        kept = pulumi.ResourceOptions(
            # Where a group's own record lies says nothing of where its resources are.
            ignore_changes=["location", *(["resource_group_name"] if keeps_group else [])],
            # A protected group is never replaced. A state that was written before groups were protected does not say
            # so, and the engine would delete the group first; with creation first it finds the name taken and stops.
            delete_before_replace=not protect,
        )
        self.group = resources.ResourceGroup(
            "group",
            resource_group_name=names.group,
            location=location,
            tags=self._tags,
            opts=pulumi.ResourceOptions.merge(self._guarded, kept),
        )

    def fill(self, names: Names, account: Account) -> None:
        """Declare everything in the group.

        Args:
            names: The stack's names, in the group that it has.
            account: Subscription and tenant.
        """
        self.names = names
        # Known at preview, and the engine knows where it comes from: it deletes the group last.
        self.group_name = behind(names.group, self.group)
        # The names are taken until the old resource is gone.
        fixed = pulumi.ResourceOptions(parent=self, depends_on=[self.group], delete_before_replace=True)
        # What holds data: the engine refuses to delete it until somebody takes the protection off.
        self._kept = pulumi.ResourceOptions.merge(fixed, self._guarded)
        spec = self._spec
        self.storage, self.registry = self._storage(), self._registry()
        parts = [self.storage, self._key_vault(account.tenant), self._insights(), self.registry]
        self.workspace = machinelearningservices.Workspace(
            "workspace",
            workspace_name=names.workspace,
            resource_group_name=self.group_name,
            location=self._location,
            friendly_name=spec.display_name or spec.name,
            description=spec.description,
            identity=machinelearningservices.ManagedServiceIdentityArgs(type="SystemAssigned"),
            storage_account=names.id_of("Microsoft.Storage/storageAccounts", names.storage),
            key_vault=names.id_of("Microsoft.KeyVault/vaults", names.key_vault),
            application_insights=names.id_of("Microsoft.Insights/components", names.insights),
            container_registry=names.id_of("Microsoft.ContainerRegistry/registries", names.registry),
            system_datastores_auth_mode="Identity",
            public_network_access=self._public,
            tags=self._tags,
            opts=pulumi.ResourceOptions.merge(self._kept, pulumi.ResourceOptions(depends_on=parts)),
        )
        # Name and id as what is in the workspace needs them, and the id as what lives on all of it does.
        self.name = behind(names.workspace, self.workspace)
        self.workspace_id = behind(names.workspace_id, self.workspace)
        self.whole = behind(names.workspace_id, self.group, self.logs, *parts, self.workspace)
        self.everything = after(self.group, self.logs, *parts, self.workspace)
        self.register_outputs({"id": names.workspace_id})

    def _storage(self) -> pulumi.CustomResource:
        account: pulumi.CustomResource = storage.StorageAccount(
            "storage",
            account_name=self.names.storage,
            resource_group_name=self.group_name,
            location=self._location,
            kind="StorageV2",
            sku=storage.SkuArgs(name="Standard_LRS"),
            allow_shared_key_access=False,
            allow_blob_public_access=False,
            enable_https_traffic_only=True,
            minimum_tls_version="TLS1_2",
            public_network_access=self._public,
            tags=self._tags,
            opts=self._kept,
        )
        return account

    def _key_vault(self, tenant: str) -> pulumi.Resource:
        vault: pulumi.Resource = keyvault.Vault(
            "key-vault",
            vault_name=self.names.key_vault,
            resource_group_name=self.group_name,
            location=self._location,
            properties=keyvault.VaultPropertiesArgs(
                tenant_id=tenant,
                sku=keyvault.SkuArgs(family="A", name=keyvault.SkuName.STANDARD),
                enable_rbac_authorization=True,
                enable_purge_protection=True,
                enable_soft_delete=True,
                public_network_access=self._public,
            ),
            tags=self._tags,
            opts=self._kept,
        )
        return vault

    def _insights(self) -> pulumi.Resource:
        self.logs = operationalinsights.Workspace(
            "logs",
            workspace_name=self.names.logs,
            resource_group_name=self.group_name,
            location=self._location,
            sku=operationalinsights.WorkspaceSkuArgs(name="PerGB2018"),
            retention_in_days=30,
            tags=self._tags,
            opts=self._kept,
        )
        insights: pulumi.Resource = applicationinsights.Component(
            "insights",
            resource_name_=self.names.insights,
            resource_group_name=self.group_name,
            location=self._location,
            kind="web",
            application_type="web",
            ingestion_mode="LogAnalytics",
            workspace_resource_id=self.names.id_of("Microsoft.OperationalInsights/workspaces", self.names.logs),
            tags=self._tags,
            opts=pulumi.ResourceOptions.merge(self._kept, pulumi.ResourceOptions(depends_on=[self.logs])),
        )
        return insights

    def _registry(self) -> pulumi.Resource:
        registry: pulumi.Resource = containerregistry.Registry(
            "registry",
            registry_name=self.names.registry,
            resource_group_name=self.group_name,
            location=self._location,
            # Only the premium tier can be closed to the internet.
            sku=containerregistry.SkuArgs(name="Standard" if self._public == "Enabled" else "Premium"),
            admin_user_enabled=False,
            public_network_access=self._public,
            tags=self._tags,
            opts=self._kept,
        )
        return registry
