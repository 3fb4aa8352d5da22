"""A blob's bytes: all of them, or a range."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.responses import FileResponse, Response

from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.data.blobs import wire

if TYPE_CHECKING:
    from starlette.requests import Request

    from amlstack.sandbox.store.store import Blob

AT_ONCE: Final = 4 << 20
"""Bytes that are read when they are asked for: a larger blob's file is gone when it is replaced before it is sent."""


def answer(request: Request, blob: Blob) -> Response:
    """Answers a GET.

    Raises:
        Refused: 416 for a range that the blob does not have.
    """
    wanted = request.headers.get("x-ms-range") or request.headers.get("range")
    headers = wire.describe(blob)
    if not wanted and blob.size <= AT_ONCE:
        return Response(blob.path.read_bytes(), headers=headers, media_type=blob.type)
    if not wanted:
        return FileResponse(blob.path, headers=headers, media_type=blob.type)
    found = re.fullmatch(r"bytes=(\d{1,18})-(\d{0,18})", wanted)
    if found is None or int(found[1]) >= blob.size:
        raise Refused(416, "InvalidRange", "The range specified is invalid for the current size of the resource.")
    first = int(found[1])
    last = min(int(found[2] or blob.size), blob.size - 1)
    if last < first:
        raise Refused(416, "InvalidRange", "The range specified is invalid: it ends before it begins.")
    with blob.path.open("rb") as stream:
        stream.seek(first)
        data = stream.read(last - first + 1)
    # A range has the whole blob's digest under another name.
    headers["x-ms-blob-content-md5"] = headers.pop("content-md5", "")
    headers["content-range"] = f"bytes {first}-{last}/{blob.size}"
    return Response(data, 206, headers, media_type=blob.type)
