"""Microsoft.Storage/storageAccounts/blobServices/containers: containers as the resource manager makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.kinds.base import KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow


class BlobContainers(ResourceKind):
    """Containers of an account, the same ones that the blob service shows."""

    type = "Microsoft.Storage/storageAccounts/blobServices/containers"
    noun = "a container"
    names = NameRule(
        r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*|\$root|\$web",
        "3 to 63 lower-case letters, digits and single hyphens, no hyphen at either end",
    )
    schema = Schema(
        "storage", "BlobContainerArgs", frozenset({"resourceGroupName", "accountName", "containerName"}),
        envelope=frozenset(),
    )  # fmt: skip
    tracked = False
    patches = True

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """The container itself."""
        context.store.blobs.make_container(_account(resource), resource.name)

    def removing(self, context: KindContext, resource: ResourceRow) -> bool:
        """A container goes with its blobs."""
        context.store.blobs.drop_container(_account(resource), resource.name)
        return True


def _account(resource: ResourceRow) -> str:
    return resource.id.split("/")[-5]


KIND = BlobContainers()
