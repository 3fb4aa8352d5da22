"""Lists that a workspace has of what nobody registers in it: its private endpoints, and what it has none of here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amlstack.sandbox.arm.ids import ML
from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.kinds.base import Body, KindContext, Reply
from amlstack.sandbox.kinds.network import addresses

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

_WORKSPACE: Final = f"{ML}/workspaces"
EMPTY: Final = ("features", "connections")
"""Lists with nothing in them, as nothing makes an entry here."""


def answer(context: KindContext, path: ArmPath) -> Reply | None:
    """Answers a GET of such a list; None for every other path.

    Raises:
        Refused: 404; there is no such workspace.
    """
    if not path.collection:
        return None
    kind = path.type.lower()
    if kind == f"{ML}/registries".lower():
        # The registries of the group itself; azureml is Microsoft's own, and in no list of a subscription.
        return Reply(200, {"value": []})
    above, _, what = kind.rpartition("/")
    made = {"privateendpointconnections": _connections, "privatelinkresources": _link_resources}
    if above != _WORKSPACE.lower() or (what not in made and what not in EMPTY):
        return None
    workspace = context.store.resources.get(path.parent)
    if workspace is None:
        message = f"The Resource '{_WORKSPACE}/{path.parent.rpartition('/')[2]}' was not found."
        raise Refused(404, "ResourceNotFound", message)
    return Reply(200, {"value": made[what](context, workspace) if what in made else []})


def _connections(context: KindContext, workspace: ResourceRow) -> list[Body]:
    """One for each private endpoint that leads to the workspace, approved as all are here."""
    found: list[Body] = []
    for row in context.store.resources.of_type(addresses.ENDPOINTS):
        properties = row.body["properties"]
        links = [
            *(properties.get("privateLinkServiceConnections") or ()),
            *(properties.get("manualPrivateLinkServiceConnections") or ()),
        ]
        targets = {str(link.get("properties", {}).get("privateLinkServiceId")).lower() for link in links}
        if workspace.key in targets:
            shown = {
                "privateEndpoint": {"id": row.id},
                "privateLinkServiceConnectionState": {"status": "Approved", "description": "Auto-Approved"},
                "provisioningState": "Succeeded",
            }
            own = f"{workspace.id}/privateEndpointConnections/{row.name}"
            kind = f"{_WORKSPACE}/privateEndpointConnections"
            found.append({"id": own, "name": row.name, "type": kind, "properties": shown})
    return found


def _link_resources(context: KindContext, workspace: ResourceRow) -> list[Body]:
    """The one part that a private endpoint leads to, with the zones of its names.

    Source: learn.microsoft.com/azure/private-link/private-endpoint-dns (2026-11-22).
    """
    del context
    zones = ["privatelink.api.azureml.ms", "privatelink.notebooks.azure.net"]
    properties = {"groupId": "amlworkspace", "requiredMembers": ["default"], "requiredZoneNames": zones}
    own = f"{workspace.id}/privateLinkResources/amlworkspace"
    kind = f"{_WORKSPACE}/privateLinkResources"
    return [{"id": own, "name": "amlworkspace", "type": kind, "properties": properties}]
