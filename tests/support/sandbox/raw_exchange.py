"""Requests as no well-behaved client sends them."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.sandbox.sandbox_client import Arm


def raw(arm: Arm, method: str, path: str, data: bytes | None = None, **headers: str | bytes) -> tuple[int, Any, Any]:
    """One exchange in which everything is sent as it is; a text of XML comes back as bytes."""
    parts = urllib.parse.urlsplit(arm.url)
    context = ssl.create_default_context(cafile=str(arm.endpoint.ca))
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in {"Authorization": f"Bearer {arm.token}", **headers}.items():
            connection.putheader(name.replace("_", "-"), value)
        if data is not None and "Transfer_Encoding" not in headers:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders()
        if data is not None:
            connection.send(data)
        reply = connection.getresponse()
        text = reply.read()
    finally:
        connection.close()
    is_json = "json" in (reply.headers["Content-Type"] or "")
    return reply.status, json.loads(text) if is_json else text, reply.headers
