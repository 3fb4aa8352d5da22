"""Microsoft.Storage/storageAccounts; their blobs are served by `amlstack.sandbox.data.blobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import Refused, invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema
from amlstack.sandbox.kinds.platform.addresses import check_addresses
from amlstack.sandbox.kinds.storage import blob_services

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow


class StorageAccounts(ResourceKind):
    """Storage accounts, blob service only."""

    type = "Microsoft.Storage/storageAccounts"
    noun = "a storage account"
    names = NameRule(r"[a-z0-9]{3,24}", "3 to 24 lower-case letters and digits")
    schema = Schema(
        "storage",
        "StorageAccountArgs",
        frozenset({"resourceGroupName", "accountName"}),
        wire={
            "enableHttpsTrafficOnly": "supportsHttpsTrafficOnly",
            "enableNfsV3": "isNfsV3Enabled",
            "networkRuleSet": "networkAcls",
        },
    )
    ticks = 2
    made_status = 202
    patches = True

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Account names are unique in all of Azure; what is set at creation stays; rules for addresses are legal."""
        check_addresses(body["properties"].get("networkAcls"), "properties.networkAcls", smallest=30)
        if before is not None:
            _check_change(body, before.body)
        else:
            for other in context.store.resources.of_type(self.type):
                if other.name == path.name:
                    message = f"The storage account named {path.name} is already taken."
                    raise Refused(409, "StorageAccountAlreadyTaken", message)

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The defaults of a new account."""
        del context, path
        given = body.get("properties", {})
        defaults = {"supportsHttpsTrafficOnly": True, "minimumTlsVersion": "TLS1_2", "accessTier": "Hot"}
        return {**body, "properties": {**defaults, **given}}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The blob endpoint: a path of the sandbox's one endpoint."""
        return {
            "primaryEndpoints": {"blob": f"{context.base}/blob/{resource.name}/"},
            "primaryLocation": resource.body["location"],
            "statusOfPrimary": "available",
        }

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """Its blob service."""
        blob_services.make_default(context, resource)

    def removing(self, context: KindContext, resource: ResourceRow) -> bool:
        """An account goes with its blobs."""
        context.store.blobs.drop_account(resource.name)
        return True


def _check_change(body: Body, before: Body) -> None:
    """Refuses what an account that exists cannot become.

    Sources: learn.microsoft.com/azure/storage/common/infrastructure-encryption-enable and
    .../redundancy-migration (2026-11-22).
    """
    old = (before["properties"].get("encryption") or {}).get("requireInfrastructureEncryption", False)
    if (body["properties"].get("encryption") or {}).get("requireInfrastructureEncryption", old) != old:
        where = "properties.encryption.requireInfrastructureEncryption"
        raise invalid(where, "infrastructure encryption is set when an account is created, and cannot be changed.")
    names = [str(each["sku"]["name"]) for each in (before, body)]
    if ("ZRS" in names[0]) != ("ZRS" in names[1]):
        message = (
            f"The storage account cannot be changed from {names[0]} to {names[1]} by an update: copies in zones come "
            "and go by a conversion that is asked for."
        )
        raise Refused(409, "AccountPropertyCannotBeUpdated", message, "sku.name")


KIND = StorageAccounts()
