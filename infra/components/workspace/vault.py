"""The workspace's key vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.components import azure_native, tokens

if TYPE_CHECKING:
    import pulumi

    from infra.components.workspace.place import Place


def register_key_vault(place: Place) -> pulumi.CustomResource:
    """Register the key vault, which goes by roles and has no access policies."""
    inner = {
        "tenantId": place.tenant,
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        "enablePurgeProtection": True,
        "enableSoftDelete": True,
        "publicNetworkAccess": place.public,
        # As azure-native's classes register what is not given.
        "enabledForDeployment": False,
        "enabledForDiskEncryption": False,
        "enabledForTemplateDeployment": False,
        "softDeleteRetentionInDays": 90,
    }
    properties = {"vaultName": place.names.key_vault, **place.common, "properties": inner}
    return azure_native.register(tokens.KEY_VAULT, "key-vault", properties, place.opts)
