"""Properties of a blob beside its bytes and its metadata: headers that a download repeats, tags, a tier."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from starlette.responses import Response

from amlstack.sandbox.planes.blobs import leases, wire
from amlstack.sandbox.protocol import requests as bodies
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.store import Blob

PARTS = ("properties", "tags", "tier", "metadata")
HEADERS = ("cache-control", "content-encoding", "content-language", "content-disposition")
"""Of a download; a client sets them as ``x-ms-blob-…``."""
TIERS = ("Hot", "Cool", "Cold", "Archive")
MOST_TAGS = 10


def given(headers: Mapping[str, str], before: Blob | None) -> dict[str, Any]:
    """The properties that an upload gives a blob, for `Blob.extra`; a lease stays."""
    found: dict[str, Any] = {}
    if own := _headers(headers):
        found["headers"] = own
    if tags := headers.get("x-ms-tags"):
        found["tags"] = dict(parse_qsl(tags))
    if tier := headers.get("x-ms-access-tier"):
        found["tier"] = _tier(tier)
    if before is not None and "lease" in before.extra:
        found["lease"] = before.extra["lease"]
    return found


async def answer(context: KindContext, request: Request, blob: Blob, part: str) -> Response | None:
    """Answers a GET or PUT of one part; None for what the sandbox does not emulate."""
    if request.method == "GET" and part == "tags":
        return _tags(blob)
    if request.method in {"GET", "HEAD"} and part == "metadata":
        return Response(headers=wire.describe(blob))
    if request.method != "PUT" or part == "metadata":
        return None
    text = await bodies.read(request)
    with context.store.transaction():
        leases.check_conditions(request.headers, blob)
        leases.check_lease(request.headers, blob)
        extra = dict(blob.extra)
        if part == "tags":
            extra["tags"] = _read_tags(text)
        elif part == "tier":
            extra["tier"] = _tier(request.headers.get("x-ms-access-tier", ""))
        else:
            extra["headers"] = _headers(request.headers)
            kind = request.headers.get("x-ms-blob-content-type", "application/octet-stream")
            blob = context.store.blobs.retype(blob, kind, request.headers.get("x-ms-blob-content-md5"))
        context.store.blobs.set_extra(blob.account, blob.container, blob.name, extra)
    return Response(status_code=204 if part == "tags" else 200, headers=wire.stamp(blob.etag, time.time()))


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name in HEADERS if (value := headers.get(f"x-ms-blob-{name}"))}


def _tier(word: str) -> str:
    if word not in TIERS:
        message = f"The value '{word}' of the header x-ms-access-tier is none of {', '.join(TIERS)}."
        raise Refused(400, "InvalidHeaderValue", message)
    return word


def _tags(blob: Blob) -> Response:
    rows = "".join(
        f"<Tag><Key>{escape(key)}</Key><Value>{escape(value)}</Value></Tag>"
        for key, value in blob.extra.get("tags", {}).items()
    )
    text = f'<?xml version="1.0" encoding="utf-8"?><Tags><TagSet>{rows}</TagSet></Tags>'
    return Response(text, headers=wire.common(), media_type="application/xml")


def _read_tags(text: bytes) -> dict[str, str]:
    rows = wire.read_xml(text).iter("Tag")
    tags = {row.findtext("Key") or "": row.findtext("Value") or "" for row in rows}
    if len(tags) > MOST_TAGS or any(not 1 <= len(key) <= 128 or len(value) > 256 for key, value in tags.items()):
        message = (
            f"The tags specified are invalid: {MOST_TAGS} at most, names of 1 to 128 and values up to 256 letters."
        )
        raise Refused(400, "InvalidTags", message)
    return tags
