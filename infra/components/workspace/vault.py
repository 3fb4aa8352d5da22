"""The workspace's key vault, and the key in it that encrypts the workspace's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.components import azure_native, tokens
from infra.components.order import behind
from infra.security import network_rules

if TYPE_CHECKING:
    import pulumi

    from infra.components.workspace.place import Place


def register_key_vault(place: Place) -> pulumi.CustomResource:
    """Register the key vault, which goes by roles and has no access policies."""
    inner = {
        "tenantId": place.tenant,
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        # Azure takes true or nothing.
        "enablePurgeProtection": place.spec.key_vault.purge_protection or None,
        "enableSoftDelete": True,
        "publicNetworkAccess": place.public,
        "networkAcls": network_rules.vault_rules(place.security),
        # As azure-native's classes register what is not given.
        "enabledForDeployment": False,
        "enabledForDiskEncryption": False,
        "enabledForTemplateDeployment": False,
        "softDeleteRetentionInDays": 90,
    }
    inner = {name: value for name, value in inner.items() if value is not None}
    properties = {"vaultName": place.names.key_vault, **place.common, "properties": inner}
    return azure_native.register(tokens.KEY_VAULT, "key-vault", properties, place.opts)


def register_key(place: Place, vault: pulumi.Resource, name: str) -> pulumi.CustomResource:
    """Register a key in the stack's vault; it stays there when the stack goes, as a key cannot be deleted by ARM.

    Args:
        place: Where.
        vault: The vault.
        name: Name of the key.
    """
    properties = {
        "resourceGroupName": place.group_name,
        "vaultName": behind(place.names.key_vault, vault),
        "keyName": name,
        # As learn.microsoft.com/azure/machine-learning/how-to-setup-customer-managed-keys recommends.
        "properties": {"kty": "RSA", "keySize": 3072},
        "keyUriWithVersion": None,
    }
    return azure_native.register(tokens.KEY, f"key-{name}", properties, place.opts)
