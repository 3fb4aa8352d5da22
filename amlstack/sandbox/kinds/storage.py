"""Microsoft.Storage: accounts, their blob service, containers, file shares and rules of their life cycle."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amlstack.catalog import regions
from amlstack.sandbox.kinds import private_link
from amlstack.sandbox.protocol.kind import Body, KindContext, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid
from amlstack.sandbox.protocol.requests import storage_etag
from amlstack.sandbox.protocol.times import iso

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

_PRIVATE = tuple(map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))


def check_addresses(rules: Mapping[str, Any] | None, where: str, *, smallest: int = 32) -> None:
    """Refuses rules for what is no public IPv4 address or range.

    Args:
        rules: Of the body; None for none.
        where: Their path in the body.
        smallest: Longest prefix that a range may have; single addresses are written without one.

    Raises:
        Refused: 400, at the first that is wrong.
    """
    for index, rule in enumerate((rules or {}).get("ipRules") or ()):
        text, at = str(rule.get("value", "")), f"{where}.ipRules[{index}].value"
        try:
            network = ipaddress.IPv4Network(text)
        except ValueError:
            raise invalid(at, f"'{text}' is no IPv4 address, and no range of them in CIDR notation.") from None
        if any(network.overlaps(one) for one in _PRIVATE):
            raise invalid(at, f"'{text}' is private; rules are for addresses of the internet.")
        if "/" in text and network.prefixlen > smallest:
            raise invalid(at, f"'{text}' is a range of one or two addresses; write them without a prefix.")


_ENDPOINTS: Final = ("dfs", "z1.web", "queue", "table", "file")
"""Of web sites with a zone, which has a number that Azure chooses."""


def with_tier(body: Body, tier: str) -> Body:
    """A body whose ``sku`` says its tier beside its name."""
    return {**body, "sku": {"tier": tier, **body["sku"]}}


FILES: Final = "Microsoft.Storage/storageAccounts/fileServices"
DEFAULTS: Final[dict[str, Body]] = {
    "cors": {"corsRules": []},
    "deleteRetentionPolicy": {"allowPermanentDelete": False, "enabled": False},
    "containerDeleteRetentionPolicy": {"enabled": False},
}


class AccountServices(ResourceKind):
    """A service of an account, which is there from the beginning and never goes by itself."""

    def render(self, context: KindContext, resource: ResourceRow) -> Body:
        """With the replication of its account."""
        account = context.store.resources.get("/".join(resource.id.split("/")[:9]))
        return {**({"sku": account.body["sku"]} if account else {}), **super().render(context, resource)}

    def written(self, context: KindContext, resource: ResourceRow) -> Body:
        """Without it."""
        return super().render(context, resource)

    def check_delete(self, query: Mapping[str, str]) -> None:
        """There is no DELETE."""
        raise Refused(405, "MethodNotAllowed", f"The resource manager has no DELETE for {self.noun}.")


class BlobServices(AccountServices):
    """Properties of an account's blob service."""

    type = "Microsoft.Storage/storageAccounts/blobServices"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A time to keep what was deleted, where it is kept."""
        for name in ("deleteRetentionPolicy", "containerDeleteRetentionPolicy"):
            policy = body["properties"].get(name) or {}
            days = policy.get("days")
            if policy.get("enabled") and (days is None or not 1 <= days <= 365):
                raise invalid(f"properties.{name}.days", f"'{days}' is not between 1 and 365.")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The body with the properties that an account has from the beginning."""
        given = body["properties"]
        merged = {name: {**default, **(given.get(name) or {})} for name, default in DEFAULTS.items()}
        return {**body, "properties": {**given, **merged}}


class StorageAccounts(ResourceKind):
    """Storage accounts, blob service only."""

    type = "Microsoft.Storage/storageAccounts"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Account names are unique in all of Azure; what is set at creation stays; rules for addresses are legal."""
        check_addresses(body["properties"].get("networkAcls"), "properties.networkAcls", smallest=30)
        if before is not None:
            _check_change(body, before.body)
        elif self.is_taken(context, path.name):
            raise Refused(409, "StorageAccountAlreadyTaken", f"The storage account named {path.name} is already taken.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The endpoints: for blobs a path of the sandbox's one endpoint, for others Azure's names.

        Source: azure-mgmt-storage 16.0.0, test_cli_mgmt_storage (2020-09-15).
        """
        others = {word.split(".")[-1]: f"https://{resource.name}.{word}.core.windows.net/" for word in _ENDPOINTS}
        given = (resource.body.get("properties") or {}).get("encryption") or self.nulls["encryption"]
        services = given.get("services") or {}
        since = {"lastEnabledTime": iso(resource.created)}
        other = regions.pair(resource.body["location"]) if "G" in str(resource.body.get("sku")) else None
        dated = {name: {**one, **since} if one and one.get("enabled") else one for name, one in services.items()}
        return {
            "encryption": {**given, "services": dated},
            "primaryEndpoints": {**others, "blob": f"{context.base}/blob/{resource.name}/"},
            "creationTime": iso(resource.created),
            "primaryLocation": resource.body["location"],
            "statusOfPrimary": "available",
            **({"secondaryLocation": other, "statusOfSecondary": "available"} if other else {}),
            "privateEndpointConnections": private_link.of_account(context, resource.id),
        }

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The defaults, and the tier that belongs to the replication."""
        return with_tier(super().fill(context, path, body), str(body["sku"]["name"]).partition("_")[0])

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """Its services."""
        for kind, given in ((BlobServices.type, DEFAULTS), (FILES, {})):
            own = f"{resource.id}/{kind.rpartition('/')[2]}/default"
            context.store.resources.put(own, kind, resource.key, {"properties": given})

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


class Places(ResourceKind):
    """Containers and shares: with an etag and the time of the last change, and with what was asked for at a write.

    Source: azure-mgmt-storage 16.0.0, test_cli_mgmt_storage (2020-09-15).
    """

    besides: ClassVar[Body] = {}
    """Properties in the answer to a write beside those that were sent."""

    def etag_of(self, resource: ResourceRow) -> Body:
        """The etag in storage's form."""
        return {"etag": f'"{storage_etag(resource)}"'}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The time of its last change."""
        return {"lastModifiedTime": iso(resource.changed)}

    def written(self, context: KindContext, resource: ResourceRow) -> Body:
        """The properties that were sent, and few more."""
        own = {"id": resource.id, "name": resource.name, "type": self.type}
        given = resource.body["properties"]
        return {**own, **({"properties": {**self.besides, **given}} if given else {})}


class BlobContainers(Places):
    """Containers of an account, the same ones that the blob service shows."""

    type = "Microsoft.Storage/storageAccounts/blobServices/containers"
    besides: ClassVar[Body] = {
        "deleted": False,
        "remainingRetentionDays": 0,
        "hasImmutabilityPolicy": False,
        "hasLegalHold": False,
    }

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """The container itself."""
        context.store.blobs.make_container(_account(resource), resource.name)

    def removing(self, context: KindContext, resource: ResourceRow) -> bool:
        """A container goes with its blobs."""
        context.store.blobs.drop_container(_account(resource), resource.name)
        return True


def _account(resource: ResourceRow) -> str:
    return resource.id.split("/")[-5]


QUOTA = 102400
"""GiB of a share at most (learn.microsoft.com/rest/api/storagerp/file-shares, 2026-11-22)."""


class FileServices(AccountServices):
    """Properties of an account's file service, of which the sandbox has the shares."""

    type = FILES

    def written(self, context: KindContext, resource: ResourceRow) -> Body:
        """Nothing, where nothing was asked for (azure-mgmt-storage 16.0.0, 2020-09-15)."""
        return super().written(context, resource) if resource.body["properties"] else {}


class FileShares(Places):
    """Shares of an account, whose files jobs read and write; there is no file service for clients."""

    type = "Microsoft.Storage/storageAccounts/fileServices/shares"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A size that a share may have, and a protocol that stays."""
        given = body["properties"]
        quota = given.get("shareQuota")
        if quota is not None and not 1 <= quota <= QUOTA:
            raise invalid("properties.shareQuota", f"'{quota}' is not between 1 and {QUOTA}.")
        if before is not None:
            protocol = before.body["properties"].get("enabledProtocols", self.nulls["enabledProtocols"])
            if given.get("enabledProtocols", protocol) != protocol:
                raise invalid("properties.enabledProtocols", "it is given when a share is created, and stays.")

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """The place of its files."""
        context.store.blobs.make_container(_account(resource), resource.name)

    def removing(self, context: KindContext, resource: ResourceRow) -> bool:
        """A share goes with its files, unless a container of its name has them too."""
        beside = resource.id.replace("/fileServices/default/shares/", "/blobServices/default/containers/")
        if context.store.resources.get(beside) is None:
            context.store.blobs.drop_container(_account(resource), resource.name)
        return True


class LifeCycles(ResourceKind):
    """The one policy of an account: rules by blob type and prefix."""

    type = "Microsoft.Storage/storageAccounts/managementPolicies"

    def render(self, context: KindContext, resource: ResourceRow) -> Body:
        """Under the name that Azure gives it in answers (azure-mgmt-storage 16.0.0, 2020-09-15)."""
        return {**super().render(context, resource), "name": "DefaultManagementPolicy"}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The time of its last change."""
        return {"lastModifiedTime": iso(resource.changed)}

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Rules with names of their own, each with something that it does."""
        rules = body["properties"]["policy"]["rules"]
        names = [rule["name"] for rule in rules]
        if len(set(names)) < len(names):
            raise invalid("properties.policy.rules", "two rules have the same name.")
        for number, rule in enumerate(rules):
            if not any((rule["definition"].get("actions") or {}).values()):
                raise invalid(f"properties.policy.rules[{number}].definition.actions", "a rule without an action.")


KINDS = (StorageAccounts(), BlobServices(), BlobContainers(), FileServices(), FileShares(), LifeCycles())
"""The kinds of this module; a new one is a row here."""
