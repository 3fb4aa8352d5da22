"""Principals: what stands behind the identities of resources, user-assigned and system-assigned."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.protocol.entra import TENANT
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.store.store import ResourceRow, Store

_VERSION = 5
"""Of the UUIDs that stand for principals here; Entra ID's are random ones, of version 4."""
_PLACEHOLDERS = 256
"""Ids below it are zeros and a digit: placeholders."""
TYPE = "Microsoft.ManagedIdentity/userAssignedIdentities"


def principal(resource: ResourceRow) -> str:
    """Object id of a user-assigned identity, or of a resource's system-assigned one: another after it was made anew."""
    return object_id(resource, "principal")


def check(store: Store, body: Mapping[str, Any]) -> None:
    """Refuses user-assigned identities that do not exist."""
    for identity_id in (body.get("identity") or {}).get("userAssignedIdentities") or {}:
        if _found(store, identity_id) is None:
            message = f"The user-assigned identity '{identity_id}' could not be found."
            raise Refused(400, "FailedIdentityOperation", message, "identity.userAssignedIdentities")


def shown(store: Store, resource: ResourceRow, identity: Mapping[str, Any]) -> dict[str, Any]:
    """An identity as an answer has it: with the principals behind it."""
    result = dict(identity)
    if "SystemAssigned" in identity["type"]:
        result |= {"principalId": principal(resource), "tenantId": TENANT}
    if users := identity.get("userAssignedIdentities"):
        result["userAssignedIdentities"] = {name: _user(store, name) for name in users}
    return result


def all_of(store: Store) -> Iterator[str]:
    """Every principal of the sandbox."""
    for resource in store.resources.all():
        if resource.type == TYPE or "SystemAssigned" in (resource.body.get("identity") or {}).get("type", ""):
            yield principal(resource)


def is_ours(object_id: str) -> bool:
    """Whether the sandbox gives such an object id, or it is a placeholder; those of people are random."""
    try:
        found = uuid.UUID(object_id)
    except ValueError:
        return True
    return found.version == _VERSION or found.int < _PLACEHOLDERS


def _user(store: Store, identity_id: str) -> dict[str, Any]:
    found = _found(store, identity_id)
    return {} if found is None else {"principalId": principal(found), "clientId": object_id(found, "client")}


def _found(store: Store, identity_id: str) -> ResourceRow | None:
    found = store.resources.get(identity_id)
    return found if found is not None and found.type == TYPE else None


def object_id(resource: ResourceRow, what: str) -> str:
    """An id of a resource: another one after it was deleted and made anew."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{what}:{resource.key}:{resource.created}"))
