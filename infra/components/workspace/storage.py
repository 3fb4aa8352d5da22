"""The workspace's storage account: code, inputs, outputs and checkpoints of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.components import azure_native, tokens

if TYPE_CHECKING:
    import pulumi

    from infra.components.workspace.place import Place


def register_storage(place: Place) -> pulumi.CustomResource:
    """Register the storage account, which Entra ID is the only way into: it has no shared keys."""
    properties = {
        "accountName": place.names.storage,
        **place.common,
        "kind": "StorageV2",
        "sku": {"name": "Standard_LRS"},
        "allowSharedKeyAccess": False,
        "allowBlobPublicAccess": False,
        "enableHttpsTrafficOnly": True,
        "minimumTlsVersion": "TLS1_2",
        "publicNetworkAccess": place.public,
    }
    return azure_native.register(tokens.STORAGE_ACCOUNT, "storage", properties, place.opts)
