"""Content of blobs, in blocks, copies and downloads, and the properties beside it: headers, tags, a tier."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import parse_qsl, urlsplit
from xml.sax.saxutils import escape

from starlette.responses import FileResponse, Response, StreamingResponse

from amlstack.sandbox.files import storage
from amlstack.sandbox.planes.blobs import wire
from amlstack.sandbox.planes.blobs.wire import MOST_BYTES, BlobPlace
from amlstack.sandbox.protocol import entra, requests
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.blobs import Blob

AT_ONCE: Final = 4 << 20
"""Bytes that are read when they are asked for: a larger blob's file is gone when it is replaced before it is sent."""
PIECE: Final = 1 << 20
"""Bytes of a longer range, or of a block that is used again, that are held at once."""


def download(request: Request, blob: Blob) -> Response:
    """Answers a GET.

    Raises:
        Refused: 416 for a range that ends before it begins.
    """
    wanted = request.headers.get("x-ms-range") or request.headers.get("range")
    headers = wire.describe(blob)
    if not wanted and blob.size <= AT_ONCE:
        return Response(blob.path.read_bytes(), headers=headers, media_type=blob.type)
    if not wanted:
        return FileResponse(blob.path, headers=headers, media_type=blob.type)
    found = re.fullmatch(r"bytes=(\d{1,18})-(\d{0,18})", wanted)
    if found is None or int(found[1]) >= blob.size:
        told = "The range specified is invalid for the current size of the resource."
        answer = wire.refusal(Refused(416, "InvalidRange", told))
        answer.headers["content-range"] = f"bytes */{blob.size}"
        return answer
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
            data = stream.read(length)
        if request.headers.get("x-ms-range-get-content-md5", "").lower() == "true":
            headers["content-md5"] = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        return Response(data, 206, headers, media_type=blob.type)
    return StreamingResponse(pieces(stream, length), 206, {**headers, "content-length": str(length)}, blob.type)


def pieces(stream: BinaryIO, length: int) -> Iterator[bytes]:
    """So many bytes of a file, `PIECE` at a time, whatever becomes of its name; closes it."""
    with stream:
        while length > 0 and (data := stream.read(min(PIECE, length))):
            length -= len(data)
            yield data


def concatenate(files: Iterable[Path], whole: Path) -> None:
    """Writes files into one, in their order."""
    with whole.open("wb") as out:
        for file in files:
            with file.open("rb") as stream:
                shutil.copyfileobj(stream, out)


LONGEST = 64
"""Bytes of a block's id before it is written in base64."""


def staged(context: KindContext, place: BlobPlace, block: str) -> Path:
    """The file in which the bytes of an uploaded block lie until they are put together.

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
    blob = context.store.blobs.get(*place)
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
    blob = context.store.blobs.get(*place)
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
            out.writelines(pieces(stream, size))
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


def fetch(context: KindContext, request: Request, file: Path, account: str | None = None) -> tuple[Blob, str]:
    """Writes the bytes of a request's source into a file.

    Args:
        context: State.
        request: With ``x-ms-copy-source``.
        file: A new one.
        account: Of Copy Blob: whose blobs the request's own token opens.

    Returns:
        The source, and the MD5 of what was written in base64: of a block, of the part that ``x-ms-source-range`` names.

    Raises:
        Refused: 401 or 403 for a source that may not be read, 404 for one that is not there, 400 for another content
            than ``x-ms-source-content-md5`` and 413 for too much.
    """
    url = request.headers["x-ms-copy-source"]
    place = storage.locate_blob(url.partition("?")[0])
    if place is None or not place[2]:
        message = "The sandbox copies blobs of its own alone, and the source URL is none of these."
        raise Refused(501, "SandboxNotEmulated", message)
    try:
        if place[0] != account:
            _authorize(context, request, place, dict(parse_qsl(urlsplit(url).query)))
    except Refused as refused:
        raise Refused(refused.status, "CannotVerifyCopySource", refused.message) from None
    blob = context.store.blobs.get(*place)
    if blob is None:
        # As Azurite 3 answers within an account, where nobody had to be asked.
        code = "BlobNotFound" if place[0] == account else "CannotVerifyCopySource"
        raise Refused(404, code, "The specified blob does not exist.")
    if blob.size > MOST_BYTES:
        raise Refused(413, "RequestBodyTooLarge", "The source is larger than Put Blob From URL takes.")
    wanted = re.fullmatch(r"bytes=(\d{1,18})-(\d{1,18})", request.headers.get("x-ms-source-range", ""))
    first, end = (int(wanted[1]), int(wanted[2]) + 1) if wanted else (0, blob.size)
    digest = hashlib.md5(usedforsecurity=False)
    with file.open("wb") as out:
        source = blob.path.open("rb")
        source.seek(first)
        for piece in pieces(source, end - first):
            digest.update(piece)
            out.write(piece)
    md5 = base64.b64encode(digest.digest()).decode()
    try:
        wire.check_md5(request.headers.get("x-ms-source-content-md5", md5), md5)
    except Refused:
        file.unlink()
        raise
    return blob, md5


def _authorize(context: KindContext, request: Request, place: tuple[str, str, str], query: dict[str, str]) -> None:
    account, container, _ = place
    if token := requests.authorization(request, "x-ms-copy-source-authorization"):
        entra.check_bearer(context.key, token, entra.storage(account))
    elif "sig" in query:
        storage.check_grant(context.key, query, account, container, "r")
    else:
        message = (
            "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
        )
        raise Refused(401, "CannotVerifyCopySource", message)


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


async def answer_part(context: KindContext, request: Request, blob: Blob, part: str) -> Response | None:
    """Answers a GET or PUT of one part; None for what the sandbox does not emulate."""
    if request.method in {"GET", "HEAD"}:
        wire.check_read(request.headers, blob)
    if request.method == "GET" and part == "tags":
        return _tags(blob)
    if request.method in {"GET", "HEAD"} and part == "metadata":
        return Response(headers=wire.describe(blob))
    if request.method != "PUT" or part == "metadata":
        return None
    text = await requests.read(request)
    with context.store.transaction():
        wire.check_write(request.headers, blob)
        extra = dict(blob.extra)
        if part == "tags":
            extra["tags"] = _read_tags(text)
        elif part == "tier":
            before = extra.get("tier")
            extra |= {"tier": _tier(request.headers.get("x-ms-access-tier", "")), "tiered": time.time()}
        else:
            extra["headers"] = _headers(request.headers)
            # What is not said is cleared.
            kind, md5 = (request.headers.get(f"x-ms-blob-content-{word}") for word in ("type", "md5"))
            blob = context.store.blobs.retype(blob, kind or "", md5)
        context.store.blobs.set_extra(blob.account, blob.container, blob.name, extra)
    if part == "tags":
        return Response(status_code=204, headers=wire.common())
    if part == "tier":  # 202: what comes back from the archive is on its way
        return Response(status_code=202 if before == "Archive" else 200, headers=wire.common())
    return Response(headers=wire.stamp(blob.etag, blob.changed))


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name in HEADERS if (value := headers.get(f"x-ms-blob-{name}"))}


def _tier(word: str) -> str:
    if word not in TIERS:
        message = f"The value '{word}' of the header x-ms-access-tier is none of {', '.join(TIERS)}."
        raise Refused(400, "InvalidHeaderValue", message)
    return word


def _tags(blob: Blob) -> Response:
    text = f'<?xml version="1.0" encoding="utf-8"?><Tags>{wire.tags_xml(blob.extra.get("tags", {}))}</Tags>'
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
