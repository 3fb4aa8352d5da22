"""The containers and shares that a stack creates for its datastores, in the storage account that it creates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from infra import security
from infra.components import azure_native, tokens
from infra.components.order import behind
from infra.contents import datastores

if TYPE_CHECKING:
    from infra.components.workspace import AnyWorkspace
    from infra.settings import Settings


def register(settings: Settings, workspace: AnyWorkspace, parent: pulumi.Resource) -> dict[str, pulumi.Resource]:
    """Register them, each once however many datastores name it.

    Args:
        settings: The stack's.
        workspace: The workspace, complete.
        parent: Of all of them.

    Returns:
        By the datastore's name; none for a datastore whose container exists.
    """
    opts = pulumi.ResourceOptions(
        parent=parent,
        # They hold data, as the account does: the engine refuses to delete them until somebody takes that off.
        protect=security.is_protected(settings, pulumi.get_stack()),
        delete_before_replace=True,
    )
    made: dict[tuple[str, str], pulumi.Resource] = {}
    found: dict[str, pulumi.Resource] = {}
    for spec in settings.datastores:
        if not datastores.is_created(spec, settings):
            continue
        is_share = spec.kind == "file"
        key = (tokens.FILE_SHARE if is_share else tokens.BLOB_CONTAINER, spec.container)
        if key not in made:
            properties: dict[str, Any] = {
                "resourceGroupName": workspace.group_name,
                "accountName": behind(workspace.names.storage, *workspace.part("storage")),
                **({"shareName": spec.container} if is_share else {"containerName": spec.container}),
                **({} if is_share else {"publicAccess": "None"}),
            }
            made[key] = azure_native.register(key[0], spec.container, properties, opts)
        found[spec.name] = made[key]
    return found
