"""What all answers of the blob service have in common: headers, times, and refusals as XML."""

from __future__ import annotations

import base64
import email.utils
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from starlette.responses import Response

from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.data import sas
from amlstack.sandbox.data.blobs import leases

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request

    from amlstack.sandbox.store.store import Blob


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """Which blob, or which container when ``name`` is empty."""

    account: str
    container: str
    name: str


def refusal(refused: Refused) -> Response:
    """A refusal in the blob service's form; 304 has no body."""
    headers = {"x-ms-error-code": refused.code, "x-ms-version": sas.VERSION}
    if refused.status == 304:
        return Response(status_code=304, headers=headers)
    text = (
        f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{refused.code}</Code>'
        f"<Message>{escape(refused.message)}</Message></Error>"
    )
    return Response(text, refused.status, headers, media_type="application/xml")


def common() -> dict[str, str]:
    """Headers of every answer."""
    return {"x-ms-version": sas.VERSION}


def metadata(headers: Mapping[str, str]) -> dict[str, str]:
    """What a client says of a blob or container in words of its own; header names are in lower-case letters."""
    return {key.removeprefix("x-ms-meta-"): value for key, value in headers.items() if key.startswith("x-ms-meta-")}


def metadata_xml(labels: Mapping[str, str]) -> str:
    """The same in a list."""
    return f"<Metadata>{''.join(f'<{name}>{escape(value)}</{name}>' for name, value in labels.items())}</Metadata>"


async def receive(request: Request, file: Path) -> str:
    """Writes the body of a request into a file.

    Returns:
        Its MD5, in base64.

    Raises:
        Refused: 400; it is another one than ``Content-MD5`` says.
    """
    digest = hashlib.md5(usedforsecurity=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        async for chunk in request.stream():
            digest.update(chunk)
            out.write(chunk)
    md5 = base64.b64encode(digest.digest()).decode()
    if request.headers.get("content-md5", md5) != md5:
        file.unlink()
        message = "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
        raise Refused(400, "Md5Mismatch", message)
    return md5


def stamp(etag: str, changed: float) -> dict[str, str]:
    """The headers that say which state of a blob or container this is."""
    return {**common(), "etag": f'"{etag}"', "last-modified": date(changed)}


def describe(blob: Blob) -> dict[str, str]:
    """The headers of a GET or HEAD of a blob."""
    return {
        **stamp(blob.etag, blob.changed),
        "accept-ranges": "bytes",
        "content-type": blob.type,
        "x-ms-blob-type": "BlockBlob",
        "x-ms-server-encrypted": "true",
        "x-ms-access-tier": blob.extra.get("tier", "Hot"),
        "x-ms-creation-time": date(blob.created),
        **leases.state(blob),
        **blob.extra.get("headers", {}),
        **blob.extra.get("copy", {}),
        **({"x-ms-tag-count": str(len(tags))} if (tags := blob.extra.get("tags")) else {}),
        **({"content-md5": blob.md5} if blob.md5 else {}),
        **{f"x-ms-meta-{key}": value for key, value in blob.metadata.items()},
    }


def date(at: float) -> str:
    """Seconds since the epoch as HTTP writes times."""
    return email.utils.formatdate(at, usegmt=True)
