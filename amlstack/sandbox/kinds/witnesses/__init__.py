"""How each answer of the sandbox is known: docs/sandbox.md shows it, and a test fails for an operation without it.

- *client*: a test ran the operation with one of Microsoft's own clients, unmodified; the requests of that run were
  recorded.
- *documented*: Azure's REST interface as published: for a resource type its azure-native class, which is generated
  from the REST API specifications; otherwise the page that `DOCUMENTED` names.
- *assumed*: neither; `ASSUMED` says why it is answered all the same.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox import kinds
from amlstack.sandbox.arm.ids import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.kinds.base import ResourceKind
    from amlstack.sandbox.kinds.witnesses import beside

RECORDS: Final = ("clients.json", "other_clients.json")
"""Files of what was recorded, one for each test of clients."""
WAYS: Final = ("client", "documented", "assumed")
LEARN: Final = "https://learn.microsoft.com/rest/api"
DOCUMENTED: Final[Mapping[str, str]] = {
    "GET Microsoft.Storage/storageAccounts/fileServices": f"{LEARN}/storagerp/file-services/get-service-properties",
    "list Microsoft.Storage/storageAccounts/fileServices": f"{LEARN}/storagerp/file-services/list",
    "POST Microsoft.MachineLearningServices/workspaces/jobs/cancel": f"{LEARN}/azureml/jobs/cancel",
    "POST Microsoft.MachineLearningServices/workspaces/datastores/listSecrets": (
        f"{LEARN}/azureml/datastores/list-secrets"
    ),
    "POST Microsoft.MachineLearningServices/workspaces/provisionManagedNetwork": (
        f"{LEARN}/azureml/managed-network-provisions/provision-managed-network"
    ),
    "POST Microsoft.MachineLearningServices/workspaces/listStorageAccountKeys": (
        f"{LEARN}/azureml/workspaces/list-storage-account-keys"
    ),
}
"""Actions, and reads of what no program makes, by the page that documents them."""
ASSUMED: Final[Mapping[str, str]] = {
    "DELETE Microsoft.KeyVault/vaults/keys": "Azure's resource manager has none; a stack is taken down all the same",
}
"""Operations that nothing public shows, by why they are answered."""


def operation(method: str, path: str) -> str | None:
    """What a request asks for: ``GET <type>``, ``list <type>``, ``POST <type>/<action>``; None beside these types."""
    place = parse(path)
    if method == "POST":
        above, _, action = path.rstrip("/").rpartition("/")
        place = parse(above)
        kind = None if place is None or place.collection else kinds.find(place.type)
        known = None if kind is None else next((one for one in kind.actions if one.lower() == action.lower()), None)
        return None if kind is None or known is None else f"POST {kind.type}/{known}"
    kind = None if place is None else kinds.find(place.type)
    if place is None or kind is None:
        return None
    return f"{'list' if method == 'GET' and place.collection else method} {kind.type}"


def operations(kind: ResourceKind) -> tuple[str, ...]:
    """Everything that a type answers."""
    writes = () if kind.read_only else ("PUT", *(("PATCH",) if kind.patches else ()), "DELETE")
    plain = (f"{verb} {kind.type}" for verb in ("GET", "list", *writes))
    return (*plain, *(f"POST {kind.type}/{action}" for action in kind.actions))


@functools.cache
def records() -> tuple[Mapping[str, Any], ...]:
    """The records of the clients' tests: ``{"client", "test", "recorded", "operations": […], "beside": […]}``."""
    folder = resources.files(__package__)
    return tuple(json.loads(folder.joinpath(name).read_text("utf-8")) for name in RECORDS)


@functools.cache
def asked() -> frozenset[str]:
    """The operations that a client ran."""
    return frozenset(one for record in records() for one in record["operations"])


def way_beside(row: beside.Row) -> str | None:
    """How a row beside the resource types is known, by which client or page; None for one without a witness."""
    clients = [record["client"] for record in records() if row.name in record["beside"]]
    if clients:
        return f"client: {'; '.join(clients)}"
    return f"[documented]({row.documented})" if row.documented else None


def way(kind: ResourceKind, one: str) -> str | None:
    """How an operation of a type is known; None for one without a witness."""
    if one in asked():
        return "client"
    if one in ASSUMED:
        return "assumed"
    if one in DOCUMENTED or (kind.schema is not None and not one.startswith("POST ")):
        return "documented"
    return None


def words(kind: ResourceKind) -> str:
    """``client: GET, PUT; documented: list, DELETE``."""
    return "; ".join(f"{name}: {', '.join(found)}" for name in WAYS if (found := list(_known(kind, name))))


def _known(kind: ResourceKind, name: str) -> Iterator[str]:
    for one in operations(kind):
        if way(kind, one) == name:
            verb, _, rest = one.partition(" ")
            yield rest.rpartition("/")[2] if verb == "POST" else verb
