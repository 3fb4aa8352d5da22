"""The workspace's storage account: code, inputs, outputs and checkpoints of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra import security
from infra.components import azure_native, tokens
from infra.components.order import behind
from infra.security import network_rules

if TYPE_CHECKING:
    from infra.components.workspace.place import Place


def register_storage(place: Place) -> pulumi.CustomResource:
    """Register the storage account, which Entra ID is the only way into: it has no shared keys."""
    twice = {
        "keySource": "Microsoft.Storage",
        "requireInfrastructureEncryption": True,
        "services": {"blob": {"enabled": True}, "file": {"enabled": True}},
    }
    properties = {
        "accountName": place.names.storage,
        **place.common,
        "kind": "StorageV2",
        "sku": {"name": security.sku(place.spec.storage.redundancy)},
        "allowSharedKeyAccess": False,
        "allowBlobPublicAccess": False,
        "enableHttpsTrafficOnly": True,
        "minimumTlsVersion": "TLS1_2",
        "publicNetworkAccess": place.public,
        "networkRuleSet": network_rules.storage_rules(place.security),
        "encryption": twice if place.security.infrastructure_encryption else None,
    }
    # Azure sets it when it makes an account and never changes it: one that exists keeps what it has.
    opts = pulumi.ResourceOptions.merge(place.opts, pulumi.ResourceOptions(ignore_changes=["encryption"]))
    return azure_native.register(tokens.STORAGE_ACCOUNT, "storage", properties, opts)


def register_soft_delete(place: Place, account: pulumi.Resource) -> list[pulumi.Resource]:
    """Register that deleted blobs and containers can be brought back; nothing where the settings want none.

    Args:
        place: Where.
        account: The storage account.
    """
    days = place.security.soft_delete_days
    if not days:
        return []
    kept = {"enabled": True, "days": days}
    properties = {
        "resourceGroupName": place.group_name,
        "accountName": behind(place.names.storage, account),
        "blobServicesName": "default",
        "deleteRetentionPolicy": kept,
        "containerDeleteRetentionPolicy": kept,
    }
    return [azure_native.register(tokens.BLOB_SERVICE, "storage-blobs", properties, place.loose)]
