"""A blob's bytes: all of them, or a range."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.responses import FileResponse, Response, StreamingResponse

from amlstack.sandbox.planes.blobs import wire
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from starlette.requests import Request

    from amlstack.sandbox.store.store import Blob

AT_ONCE: Final = 4 << 20
"""Bytes that are read when they are asked for: a larger blob's file is gone when it is replaced before it is sent."""
PIECE: Final = 1 << 20
"""Bytes of a longer range, or of a block that is used again, that are held at once."""


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
    length = last - first + 1
    # A range has the whole blob's digest under another name.
    headers["x-ms-blob-content-md5"] = headers.pop("content-md5", "")
    headers["content-range"] = f"bytes {first}-{last}/{blob.size}"
    stream = blob.path.open("rb")
    stream.seek(first)
    if length <= AT_ONCE:
        with stream:
            return Response(stream.read(length), 206, headers, media_type=blob.type)
    return StreamingResponse(pieces(stream, length), 206, {**headers, "content-length": str(length)}, blob.type)


def pieces(stream: BinaryIO, length: int) -> Iterator[bytes]:
    """So many bytes of a file, `PIECE` at a time, whatever becomes of its name; closes it."""
    with stream:
        while length > 0 and (data := stream.read(min(PIECE, length))):
            length -= len(data)
            yield data
