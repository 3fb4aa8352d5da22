"""Blocks: parts of a blob that are uploaded one by one and then put together."""

from __future__ import annotations

import base64
import binascii
import hashlib
import shutil
from typing import TYPE_CHECKING, BinaryIO
from xml.sax.saxutils import escape

from starlette.responses import Response

from amlstack.sandbox.planes.blobs import downloads, wire
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from amlstack.sandbox.planes.blobs.wire import BlobPlace
    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.store import Blob

LONGEST = 64
"""Bytes of a block's id before it is written in base64."""


def staged(context: KindContext, place: BlobPlace, block: str) -> Path:
    """Where the bytes of an uploaded block lie until they are put together.

    Raises:
        Refused: 400; the id is missing, or none.
    """
    if not block:
        message = "A query parameter that's mandatory for this request is not specified: blockid."
        raise Refused(400, "MissingRequiredQueryParameter", message)
    return _folder(context, place) / _file_name(block)


def join(context: KindContext, place: BlobPlace, text: bytes, file: Path) -> list[list[str | int]]:
    """Puts blocks together.

    Args:
        context: State.
        place: The blob that they become.
        text: The list of them, in XML.
        file: Where to; removed again where the list is refused.

    Returns:
        Id and size of each.

    Raises:
        Refused: 400; it is no list, or names a block that there is not.
    """
    wanted = wire.read_xml(text)
    blob = context.store.blobs.get(place.account, place.container, place.name)
    listed: list[list[str | int]] = []
    try:
        with file.open("wb") as out:
            for entry in wanted:
                begin = out.tell()
                block = entry.text or ""
                _copy(_folder(context, place) / _file_name(block), blob, entry.tag, block, out)
                listed.append([block, out.tell() - begin])
    except Refused:
        file.unlink()
        raise
    return listed


def forget(context: KindContext, place: BlobPlace) -> None:
    """Takes away the blocks that were uploaded: those in the blob are its own now, the others are discarded."""
    folder = _folder(context, place)
    for block in folder.iterdir() if folder.exists() else ():
        block.unlink()


def listing(context: KindContext, place: BlobPlace, kind: str) -> Response:
    """Answers the list of a blob's blocks: ``committed``, ``uncommitted`` or ``all``."""
    blob = context.store.blobs.get(place.account, place.container, place.name)
    folder = _folder(context, place)
    waiting = sorted(folder.iterdir()) if folder.exists() else []
    if blob is None and not waiting:
        raise Refused(404, "BlobNotFound", "The specified blob does not exist.")
    parts = []
    if kind in {"committed", "all"}:
        rows = [] if blob is None else blob.extra.get("blocks", [])
        parts.append(f"<CommittedBlocks>{_xml(rows)}</CommittedBlocks>")
    if kind in {"uncommitted", "all"}:
        rows = [(_block(file.name), file.stat().st_size) for file in waiting]
        parts.append(f"<UncommittedBlocks>{_xml(rows)}</UncommittedBlocks>")
    text = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{"".join(parts)}</BlockList>'
    stamp = wire.stamp(blob.etag, blob.changed) if blob else wire.common()
    headers = {**stamp, "x-ms-blob-content-length": str(blob.size if blob else 0)}
    return Response(text, headers=headers, media_type="application/xml")


def _copy(file: Path, blob: Blob | None, tag: str, block: str, out: BinaryIO) -> None:
    """Copies a block as a list names it: ``Committed``, ``Uncommitted``, or ``Latest`` for whichever is newer."""
    if tag != "Committed" and file.exists():
        with file.open("rb") as stream:
            shutil.copyfileobj(stream, out)
        return
    begin = 0
    for name, size in () if blob is None or tag == "Uncommitted" else blob.extra.get("blocks", ()):
        if name == block and blob is not None:
            stream = blob.path.open("rb")
            stream.seek(begin)
            out.writelines(downloads.pieces(stream, size))
            return
        begin += size
    raise Refused(400, "InvalidBlockList", "The specified block list is invalid.")


def _xml(rows: Iterable[tuple[str, int]]) -> str:
    return "".join(f"<Block><Name>{escape(name)}</Name><Size>{size}</Size></Block>" for name, size in rows)


def _folder(context: KindContext, place: BlobPlace) -> Path:
    words = f"{place.account}\n{place.container}\n{place.name}"
    return context.store.blobs.root / "blocks" / hashlib.sha256(words.encode()).hexdigest()[:32]


def _file_name(block: str) -> str:
    """Letters and digits alone, whatever the id holds."""
    try:
        plain = base64.b64decode(block, validate=True)
    except (binascii.Error, ValueError):
        plain = b""
    if not 0 < len(plain) <= LONGEST:
        message = f"The block id '{block[:100]}' is not valid: base64 of 1 to {LONGEST} bytes."
        raise Refused(400, "InvalidQueryParameterValue", message)
    return plain.hex()


def _block(file_name: str) -> str:
    return base64.b64encode(bytes.fromhex(file_name)).decode()
