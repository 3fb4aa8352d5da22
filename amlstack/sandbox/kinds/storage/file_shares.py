"""Microsoft.Storage/storageAccounts/fileServices: the one of every account, `default`, and its shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

QUOTA = 102400
"""GiB of a share at most (learn.microsoft.com/rest/api/storagerp/file-shares, 2026-11-22)."""


class FileServices(ResourceKind):
    """An account's file service, of which the sandbox has the shares."""

    type = "Microsoft.Storage/storageAccounts/fileServices"
    noun = "a file service"
    names = NameRule("default", "default")
    tracked = False
    read_only = True


class FileShares(ResourceKind):
    """Shares of an account, whose files jobs read and write; there is no file service for clients."""

    type = "Microsoft.Storage/storageAccounts/fileServices/shares"
    noun = "a file share"
    names = NameRule(
        r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*",
        "3 to 63 lower-case letters, digits and single hyphens, no hyphen at either end",
    )
    schema = Schema(
        "storage", "FileShareArgs", frozenset({"resourceGroupName", "accountName", "shareName", "expand"}),
        envelope=frozenset(),
    )  # fmt: skip
    tracked = False
    patches = True
    makes_parent = True

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A size that a share may have, and a protocol that stays."""
        del context, path
        given = body["properties"]
        quota = given.get("shareQuota")
        if quota is not None and not 1 <= quota <= QUOTA:
            raise invalid("properties.shareQuota", f"'{quota}' is not between 1 and {QUOTA}.")
        if before is not None:
            protocol = before.body["properties"]["enabledProtocols"]
            if given.get("enabledProtocols", protocol) != protocol:
                raise invalid("properties.enabledProtocols", "it is given when a share is created, and stays.")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The defaults of a new share."""
        del context, path
        defaults = {"accessTier": "TransactionOptimized", "enabledProtocols": "SMB"}
        return {**body, "properties": {**defaults, **body["properties"]}}

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """The place of its files."""
        context.store.blobs.make_container(_account(resource), resource.name)

    def removing(self, context: KindContext, resource: ResourceRow) -> bool:
        """A share goes with its files, unless a container of its name has them too."""
        beside = resource.id.replace("/fileServices/default/shares/", "/blobServices/default/containers/")
        if context.store.resources.get(beside) is None:
            context.store.blobs.drop_container(_account(resource), resource.name)
        return True


def _account(resource: ResourceRow) -> str:
    return resource.id.split("/")[-5]


SERVICES = FileServices()
KIND = FileShares()
