"""Microsoft.Storage/storageAccounts; their blobs are served by `amlstack.sandbox.data.blobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

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
    assigned = ResourceKind.assigned | {"primaryEndpoints", "primaryLocation", "statusOfPrimary"}
    note = "Blob data plane with SAS or bearer; shared keys are refused; no listKeys, files, queues or tables."

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Account names are unique in all of Azure."""
        del body
        if before is None:
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

    def removing(self, context: KindContext, resource: ResourceRow) -> bool:
        """An account goes with its blobs."""
        context.store.blobs.drop_account(resource.name)
        return True


KIND = StorageAccounts()
