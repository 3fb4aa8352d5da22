"""The address at which azure-ai-ml finds the blobs of a datastore.

It makes the address of ``accountName`` and the cloud's suffix (``https://<accountName>.blob.core.windows.net``), and
takes no other. A name below which this machine answers would need a resolver of names; so the client alone gets
``127.0.0.1:PORT/blob/<account>`` for the account of a datastore that lies here, and what it sends back is read again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

_CLIENT = re.compile(r"\bazure-ai-ml/", re.IGNORECASE)
_DATASTORES = re.compile(r"/workspaces/[^/]+/datastores(/[^/]+)?/?", re.IGNORECASE)
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+/blob/(?P<account>[^/]+)")


def concerns(path: str, user_agent: str | None) -> bool:
    """True where an answer at this path is read by that client."""
    return bool(user_agent and _CLIENT.search(user_agent) and _DATASTORES.search(path))


def shown(base: str, body: Any, accounts: Collection[str]) -> Any:
    """An answer with the addresses of the accounts that lie here."""
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("value"), list):
        return {**body, "value": [shown(base, each, accounts) for each in body["value"]]}
    properties = body.get("properties")
    if not isinstance(properties, dict) or properties.get("accountName") not in accounts:
        return body
    name = f"{base.removeprefix('https://')}/blob/{properties['accountName']}"
    return {**body, "properties": {**properties, "accountName": name}}


def read(body: Any) -> Any:
    """A body of that client with the plain names of its accounts."""
    properties = body.get("properties") if isinstance(body, dict) else None
    if not isinstance(properties, dict):
        return body
    found = _ADDRESS.fullmatch(str(properties.get("accountName")))
    return body if found is None else {**body, "properties": {**properties, "accountName": found["account"]}}
