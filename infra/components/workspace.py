"""The workspace and what it stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from amlstack.base.findings import Finding
from infra.components import azure_native, tokens
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
            ignore_changes=["location", *(["resourceGroupName"] if keeps_group else [])],
            # A protected group is never replaced. A state that was written before groups were protected does not say
            # so, and the engine would delete the group first; with creation first it finds the name taken and stops.
            delete_before_replace=not protect,
        )
        self.group = azure_native.register(
            tokens.RESOURCE_GROUP,
            "group",
            {"resourceGroupName": names.group, "location": location, "tags": self._tags, "name": None},
            pulumi.ResourceOptions.merge(self._guarded, kept),
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
        self.workspace = azure_native.register(
            tokens.WORKSPACE,
            "workspace",
            {
                "workspaceName": names.workspace,
                **self._common,
                "friendlyName": spec.display_name or spec.name,
                "description": spec.description,
                "identity": {"type": "SystemAssigned"},
                "storageAccount": names.id_of("Microsoft.Storage/storageAccounts", names.storage),
                "keyVault": names.id_of("Microsoft.KeyVault/vaults", names.key_vault),
                "applicationInsights": names.id_of("Microsoft.Insights/components", names.insights),
                "containerRegistry": names.id_of("Microsoft.ContainerRegistry/registries", names.registry),
                "systemDatastoresAuthMode": "Identity",
                "publicNetworkAccess": self._public,
            },
            pulumi.ResourceOptions.merge(self._kept, pulumi.ResourceOptions(depends_on=parts)),
        )
        # Name and id as what is in the workspace needs them, and the id as what lives on all of it does.
        self.name = behind(names.workspace, self.workspace)
        self.workspace_id = behind(names.workspace_id, self.workspace)
        self.whole = behind(names.workspace_id, self.group, self.logs, *parts, self.workspace)
        # The workspace comes after all of it.
        self.everything = after(self.workspace)
        self.register_outputs({"id": names.workspace_id})

    @property
    def _common(self) -> dict[str, Any]:
        return {"resourceGroupName": self.group_name, "location": self._location, "tags": self._tags}

    def _storage(self) -> pulumi.CustomResource:
        properties = {
            "accountName": self.names.storage,
            **self._common,
            "kind": "StorageV2",
            "sku": {"name": "Standard_LRS"},
            "allowSharedKeyAccess": False,
            "allowBlobPublicAccess": False,
            "enableHttpsTrafficOnly": True,
            "minimumTlsVersion": "TLS1_2",
            "publicNetworkAccess": self._public,
        }
        return azure_native.register(tokens.STORAGE_ACCOUNT, "storage", properties, self._kept)

    def _key_vault(self, tenant: str) -> pulumi.Resource:
        inner = {
            "tenantId": tenant,
            "sku": {"family": "A", "name": "standard"},
            "enableRbacAuthorization": True,
            "enablePurgeProtection": True,
            "enableSoftDelete": True,
            "publicNetworkAccess": self._public,
            # As azure-native's classes register what is not given.
            "enabledForDeployment": False,
            "enabledForDiskEncryption": False,
            "enabledForTemplateDeployment": False,
            "softDeleteRetentionInDays": 90,
        }
        properties = {"vaultName": self.names.key_vault, **self._common, "properties": inner}
        return azure_native.register(tokens.KEY_VAULT, "key-vault", properties, self._kept)

    def _insights(self) -> pulumi.Resource:
        logs = {
            "workspaceName": self.names.logs,
            **self._common,
            "sku": {"name": "PerGB2018"},
            "retentionInDays": 30,
        }
        self.logs = azure_native.register(tokens.LOGS, "logs", logs, self._kept)
        insights = {
            "resourceName": self.names.insights,
            **self._common,
            "kind": "web",
            "applicationType": "web",
            "ingestionMode": "LogAnalytics",
            "workspaceResourceId": self.names.id_of("Microsoft.OperationalInsights/workspaces", self.names.logs),
            # As azure-native's classes register what is not given.
            "flowType": "Bluefield",
            "requestSource": "rest",
            "publicNetworkAccessForIngestion": "Enabled",
            "publicNetworkAccessForQuery": "Enabled",
        }
        after_logs = pulumi.ResourceOptions(
            # An earlier version of azure-native knew it by that type.
            aliases=[pulumi.Alias(type_="azure-native:insights:Component")],
            depends_on=[self.logs],
        )
        opts = pulumi.ResourceOptions.merge(self._kept, after_logs)
        return azure_native.register(tokens.INSIGHTS, "insights", insights, opts)

    def _registry(self) -> pulumi.CustomResource:
        properties = {
            "registryName": self.names.registry,
            **self._common,
            # Only the premium tier can be closed to the internet.
            "sku": {"name": "Standard" if self._public == "Enabled" else "Premium"},
            "adminUserEnabled": False,
            "publicNetworkAccess": self._public,
            # As azure-native's classes register what is not given.
            "anonymousPullEnabled": False,
            "networkRuleBypassOptions": "AzureServices",
            "zoneRedundancy": "Disabled",
        }
        return azure_native.register(tokens.REGISTRY, "registry", properties, self._kept)
