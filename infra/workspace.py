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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra import settings as declared
    from infra.account import Account
    from infra.names import Names


class Workspace(pulumi.ComponentResource):
    """Resource group, storage, key vault, logs, application insights, registry and the workspace on top of them.

    Entra ID is the only way in: the storage account has no shared keys, the registry no admin, the vault no access
    policies.
    """

    def __init__(
        self,
        spec: declared.Workspace,
        names: Names,
        account: Account,
        *,
        location: str,
        tags: Mapping[str, str],
        protect: bool,
    ) -> None:
        super().__init__("amlstack:infra:Workspace", spec.name)
        self.names, self._tags, self._location = names, dict(tags), location
        self._public = "Enabled" if spec.public_network else "Disabled"
        self._plain = pulumi.ResourceOptions(parent=self)
        self.group = resources.ResourceGroup(
            "group", resource_group_name=names.group, location=location, tags=self._tags, opts=self._plain
        )
        self._inside = pulumi.ResourceOptions(parent=self, depends_on=[self.group])
        # What holds data: the engine refuses to delete it until somebody takes the protection off.
        self._kept = pulumi.ResourceOptions.merge(self._inside, pulumi.ResourceOptions(protect=protect))
        parts = [
            self._storage(),
            self._key_vault(account.tenant),
            self._insights(),
            self._registry(),
        ]
        self.workspace = machinelearningservices.Workspace(
            "workspace",
            workspace_name=names.workspace,
            resource_group_name=names.group,
            location=location,
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
        self.register_outputs({"id": names.workspace_id})

    def _storage(self) -> pulumi.Resource:
        account: pulumi.Resource = storage.StorageAccount(
            "storage",
            account_name=self.names.storage,
            resource_group_name=self.names.group,
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
            resource_group_name=self.names.group,
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
        logs = operationalinsights.Workspace(
            "logs",
            workspace_name=self.names.logs,
            resource_group_name=self.names.group,
            location=self._location,
            sku=operationalinsights.WorkspaceSkuArgs(name="PerGB2018"),
            retention_in_days=30,
            tags=self._tags,
            opts=self._inside,
        )
        insights: pulumi.Resource = applicationinsights.Component(
            "insights",
            resource_name_=self.names.insights,
            resource_group_name=self.names.group,
            location=self._location,
            kind="web",
            application_type="web",
            ingestion_mode="LogAnalytics",
            workspace_resource_id=self.names.id_of("Microsoft.OperationalInsights/workspaces", self.names.logs),
            tags=self._tags,
            opts=pulumi.ResourceOptions.merge(self._inside, pulumi.ResourceOptions(depends_on=[logs])),
        )
        return insights

    def _registry(self) -> pulumi.Resource:
        registry: pulumi.Resource = containerregistry.Registry(
            "registry",
            registry_name=self.names.registry,
            resource_group_name=self.names.group,
            location=self._location,
            # Only the premium tier can be closed to the internet.
            sku=containerregistry.SkuArgs(name="Standard" if self._public == "Enabled" else "Premium"),
            admin_user_enabled=False,
            public_network_access=self._public,
            tags=self._tags,
            opts=self._kept,
        )
        return registry
