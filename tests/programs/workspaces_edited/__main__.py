"""Many workspaces on the same storage, vault and registry, registered as a stack's own is; settings say how each is."""

import pulumi

from infra import properties, resource_types
from infra.components import registration

config = pulumi.Config()
wanted = config.require_object("workspaces")
subscription = config.require("subscription")
group = registration.register(
    resource_types.RESOURCE_GROUP,
    "group",
    {"resourceGroupName": "rg-edited", "location": "westeurope", "name": None},
    pulumi.ResourceOptions(),
)
ROOT = f"/subscriptions/{subscription}/resourceGroups/rg-edited/providers"
HERE = {"resourceGroupName": "rg-edited", "location": "westeurope"}
below = pulumi.ResourceOptions(depends_on=[group])
PARTS = [
    registration.register(
        resource_types.STORAGE_ACCOUNT,
        "storage",
        {"accountName": "stedited", **HERE, "kind": "StorageV2", "sku": {"name": "Standard_LRS"}},
        below,
    ),
    registration.register(
        resource_types.KEY_VAULT,
        "vault",
        {
            "vaultName": "kv-edited",
            **HERE,
            "properties": {
                "tenantId": config.require("tenant"),
                "sku": {"family": "A", "name": "standard"},
                "enableRbacAuthorization": True,
                "enablePurgeProtection": True,
            },
        },
        below,
    ),
]
key = {"resourceGroupName": "rg-edited", "vaultName": "kv-edited", "keyName": "k", "properties": {"kty": "RSA"}}
PARTS.append(registration.register(resource_types.KEY, "key", key, pulumi.ResourceOptions(depends_on=[*PARTS])))

for name, inputs in wanted.items():
    protect = bool(inputs.pop("protected", False))
    registration.register(
        resource_types.WORKSPACE,
        name,
        {
            "workspaceName": f"ws-{name}",
            **HERE,
            "identity": {"type": "SystemAssigned"},
            "storageAccount": f"{ROOT}/Microsoft.Storage/storageAccounts/stedited",
            "keyVault": f"{ROOT}/Microsoft.KeyVault/vaults/kv-edited",
            **inputs,
        },
        pulumi.ResourceOptions(
            depends_on=PARTS,
            delete_before_replace=True,
            protect=protect,
            replace_on_changes=list(properties.WORKSPACE_REPLACED_BY),
        ),
    )
