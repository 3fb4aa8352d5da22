"""Requests that are signed with an account's key.

Source: learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key (2026-11-25).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from amlstack.sandbox.files.datastores import account_key
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

SCHEME: Final = "SharedKey "
_HEADERS: Final = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


def check(key: str, request: Request, account: str) -> None:
    """Refuses a request whose signature is none by the account's key.

    Args:
        key: The sandbox's signing key.
        request: Of the client; its header ``Authorization`` is ``SharedKey ACCOUNT:SIGNATURE``.
        account: Name of the account that the path leads to.

    Raises:
        Refused: 403.
    """
    name, _, given = request.headers.get("authorization", "")[len(SCHEME) :].partition(":")
    secret = base64.b64decode(account_key(key, account))
    wanted = base64.b64encode(hmac.digest(secret, _signed_text(request, name).encode(), hashlib.sha256))
    if name != account or not hmac.compare_digest(wanted, given.encode()):
        message = (
            "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
            "correctly including the signature."
        )
        raise Refused(403, "AuthenticationFailed", message)


def _signed_text(request: Request, account: str) -> str:
    """The text that the client has signed: method, headers, the path as the client has it, and the query."""
    headers = request.headers
    standard = [headers.get(name, "") for name in _HEADERS]
    if headers.get("content-length") == "0":
        standard[_HEADERS.index("content-length")] = ""
    if "x-ms-date" in headers:
        standard[_HEADERS.index("date")] = ""
    own = sorted((name, value.strip()) for name, value in headers.items() if name.startswith("x-ms-"))
    path, _, query = request.scope["raw_path"].decode("latin-1").partition("?")
    query = query or request.scope["query_string"].decode("latin-1")
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(name.lower(), []).append(value)
    resource = [f"/{account}{path}", *(f"{name}:{','.join(sorted(values[name]))}" for name in sorted(values))]
    return "\n".join((request.method, *standard, *(f"{name}:{value}" for name, value in own), *resource))
