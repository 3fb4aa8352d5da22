"""Connections of private endpoints, as the resources that they lead to know them; the endpoint's record holds them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.protocol.kind import Body, KindContext, Reply, ResourceKind
from amlstack.sandbox.protocol.refusals import invalid, not_emulated

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

ENDPOINTS: Final = "Microsoft.Network/privateEndpoints"
CONNECTIONS: Final = ("privateLinkServiceConnections", "manualPrivateLinkServiceConnections")
STATE: Final = "privateLinkServiceConnectionState"
APPROVED: Final = {"status": "Approved", "description": "Auto-Approved"}
_STATUSES: Final = ("Approved", "Rejected", "Pending")
_GONE: Final = "Disconnected"


def guid(resource: ResourceRow) -> str:
    """The ``resourceGuid`` of a resource, new with every creation."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{resource.key}:{resource.created}"))


def connections(endpoint: Mapping[str, Any]) -> list[Body]:
    """The connections of a private endpoint, by its properties: those approved by themselves, then the others."""
    return [link for name in CONNECTIONS for link in endpoint.get(name) or ()]


def leading_to(context: KindContext, target: str) -> Iterator[tuple[ResourceRow, Body]]:
    """Each private endpoint that leads to a resource, with the state of its connection."""
    for row in context.store.resources.of_type(ENDPOINTS):
        for link in connections(row.body["properties"]):
            inner = link.get("properties") or {}
            state = {**APPROVED, **(inner.get(STATE) or {})}
            if str(inner.get("privateLinkServiceId")).lower() == target.lower() and state["status"] != _GONE:
                yield row, state


def of_account(context: KindContext, account: str) -> list[Body]:
    """The connections of a storage account."""
    own, kind = f"{account}/privateEndpointConnections", AccountConnections.type
    found: list[Body] = []
    for row, state in leading_to(context, account):
        name = f"{account.rpartition('/')[2]}.{guid(row)}"
        properties = {
            "provisioningState": "Succeeded",
            "privateEndpoint": {"id": row.id},
            STATE: {**state, "actionRequired": "None"},
        }
        found.append({"id": f"{own}/{name}", "name": name, "type": kind, "properties": properties})
    return found


class AccountConnections(ResourceKind):
    """The connections of a storage account: its owner takes them, refuses them and ends them.

    Source: azure-mgmt-storage 16.0.0, test_cli_mgmt_storage (2020-09-15).
    """

    type = "Microsoft.Storage/storageAccounts/privateEndpointConnections"

    def answer(
        self, context: KindContext, method: str, path: ArmPath, query: Mapping[str, str], body: Any
    ) -> Reply | None:
        """Answers a request for them, all of which lie in the records of private endpoints."""
        account = context.store.resources[path.parent].id
        if path.collection:
            return Reply(200, {"value": of_account(context, account)})
        at = {f"{path.parent.rpartition('/')[2]}.{guid(row)}".lower(): row for row, _ in leading_to(context, account)}
        endpoint = at.get(path.name.lower())
        if endpoint is None:
            raise self.absent(path)
        if method == "PUT":
            given = (body.get("properties") or {}).get(STATE) or {} if isinstance(body, dict) else {}
            if given.get("status") not in _STATUSES:
                raise invalid(f"properties.{STATE}.status", f"'{given.get('status')}' is none of {_STATUSES}.")
            _take(context, endpoint, {key: given[key] for key in ("status", "description") if given.get(key)})
        elif method == "DELETE":
            _take(context, endpoint, {"status": _GONE})
            return Reply(200)
        elif method != "GET":
            raise not_emulated(f"{method} of {self.type}")
        wanted = path.name.lower()
        return Reply(200, next(row for row in of_account(context, account) if row["name"].lower() == wanted))


def _take(context: KindContext, endpoint: ResourceRow, state: Body) -> None:
    properties = dict(endpoint.body["properties"])
    for name in CONNECTIONS:
        if links := properties.get(name):
            properties[name] = [
                {
                    **link,
                    "properties": {**link["properties"], STATE: {**(link["properties"].get(STATE) or {}), **state}},
                }
                for link in links
            ]
    parent = endpoint.key.rsplit("/providers/", 1)[0]
    body = {**endpoint.body, "properties": properties}
    context.store.resources.put(endpoint.id, endpoint.type, parent, body, endpoint.state)


class AccountLinks(ResourceKind):
    """The parts of a storage account that private endpoints lead to, with the zones of their names.

    Source: azure-mgmt-storage 16.0.0, test_cli_mgmt_storage (2020-09-15).
    """

    type = "Microsoft.Storage/storageAccounts/privateLinkResources"

    def answer(
        self, context: KindContext, method: str, path: ArmPath, query: Mapping[str, str], body: Any
    ) -> Reply | None:
        """Answers the list."""
        if method != "GET" or not path.collection:
            raise not_emulated(f"{method} of {self.type}, only the list")
        account = context.store.resources[path.parent].id
        rows = [
            {
                "id": f"{account}/privateLinkResources/{part}",
                "name": part,
                "type": self.type,
                "properties": {
                    "groupId": part,
                    "requiredMembers": [part],
                    "requiredZoneNames": [f"privatelink.{part}.core.windows.net"],
                },
            }
            for part in ("blob", "table", "queue", "file", "web", "dfs")
        ]
        return Reply(200, {"value": rows})


KINDS = (AccountConnections(), AccountLinks())
"""The kinds of this module; a new one is a row here."""
