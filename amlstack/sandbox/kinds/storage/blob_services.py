"""Microsoft.Storage/storageAccounts/blobServices: the one of every account, `default`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amlstack.sandbox.arm.refusals import Refused, invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

DEFAULTS: Final[dict[str, Body]] = {
    "cors": {"corsRules": []},
    "deleteRetentionPolicy": {"allowPermanentDelete": False, "enabled": False},
    "containerDeleteRetentionPolicy": {"enabled": False},
}


class BlobServices(ResourceKind):
    """Properties of an account's blob service, which is there from the beginning and never goes by itself."""

    type = "Microsoft.Storage/storageAccounts/blobServices"
    noun = "a blob service"
    names = NameRule("default", "default")
    schema = Schema(
        "storage",
        "BlobServicePropertiesArgs",
        frozenset({"resourceGroupName", "accountName", "blobServicesName"}),
        envelope=frozenset({"sku"}),
    )
    tracked = False
    made_status = 200

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A time to keep what was deleted, where it is kept."""
        del context, path, before
        for name in ("deleteRetentionPolicy", "containerDeleteRetentionPolicy"):
            policy = body["properties"].get(name) or {}
            days = policy.get("days")
            if policy.get("enabled") and (days is None or not 1 <= days <= 365):
                raise invalid(f"properties.{name}.days", f"'{days}' is not between 1 and 365.")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """What an account has from the beginning."""
        del context, path
        given = body["properties"]
        merged = {name: {**default, **(given.get(name) or {})} for name, default in DEFAULTS.items()}
        return {**body, "properties": {**given, **merged}}

    def check_delete(self, query: Mapping[str, str]) -> None:
        """There is no DELETE."""
        del query
        raise Refused(405, "MethodNotAllowed", "The resource manager has no DELETE for a blob service.")


def make_default(context: KindContext, account: ResourceRow) -> None:
    """The blob service of a new account."""
    store = context.store.resources
    store.put(f"{account.id}/blobServices/default", KIND.type, account.key, {"properties": dict(DEFAULTS)})


KIND = BlobServices()
