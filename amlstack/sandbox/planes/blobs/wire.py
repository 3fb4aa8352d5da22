"""Common parts of the blob service's answers: headers, times, and refusals as XML."""

from __future__ import annotations

import base64
import email.utils
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from starlette.responses import Response

from amlstack.sandbox.files import datastores
from amlstack.sandbox.planes.blobs import leases
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request

    from amlstack.sandbox.store.store import Blob

MOST_BYTES: Final = 5_000 << 20
"""Of one upload, as Put Blob takes it."""


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """The address of a blob, or of a container when ``name`` is empty."""

    account: str
    container: str
    name: str


def refusal(refused: Refused) -> Response:
    """A refusal in the blob service's form; 304 has no body."""
    headers = {"x-ms-error-code": refused.code, "x-ms-version": datastores.VERSION}
    if refused.status == 304:
        return Response(status_code=304, headers=headers)
    text = (
        f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{refused.code}</Code>'
        f"<Message>{escape(refused.message)}</Message></Error>"
    )
    return Response(text, refused.status, headers, media_type="application/xml")


def read_xml(text: bytes) -> ET.Element:
    """The document in a request's body.

    Raises:
        Refused: 400; it is none in UTF-8, or has a document type, which no request of the service has.
    """
    try:
        plain = text.decode("utf-8-sig")
        if "<!" not in plain:
            return ET.fromstring(plain)  # noqa: S314 - without a document type there is nothing to expand
    except (UnicodeDecodeError, ValueError, ET.ParseError):
        pass
    raise Refused(400, "InvalidXmlDocument", "XML specified is not syntactically valid.") from None


def common() -> dict[str, str]:
    """Headers of every answer."""
    return {"x-ms-version": datastores.VERSION}


def metadata(headers: Mapping[str, str]) -> dict[str, str]:
    """The metadata that a client gives a blob or container; header names are in lower-case letters."""
    return {key.removeprefix("x-ms-meta-"): value for key, value in headers.items() if key.startswith("x-ms-meta-")}


def metadata_xml(labels: Mapping[str, str]) -> str:
    """The same in a list."""
    return f"<Metadata>{''.join(f'<{name}>{escape(value)}</{name}>' for name, value in labels.items())}</Metadata>"


async def receive(request: Request, file: Path) -> str:
    """Writes the body of a request into a file.

    Returns:
        Its MD5, in base64.

    Raises:
        Refused: 400; it is another one than ``Content-MD5`` says. 413; it is larger than the service takes.
        ClientDisconnect: It did not come to its end. Of what is raised nothing is left in the file.
    """
    digest, size = hashlib.md5(usedforsecurity=False), 0
    try:
        _check_size(request.headers.get("content-length", ""))
        with file.open("wb") as out:
            async for chunk in request.stream():
                digest.update(chunk)
                size += len(chunk)
                _check_size(str(size))
                out.write(chunk)
        return _checked_md5(request, digest.digest())
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def _checked_md5(request: Request, digest: bytes) -> str:
    md5 = base64.b64encode(digest).decode()
    if request.headers.get("content-md5", md5) != md5:
        message = "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
        raise Refused(400, "Md5Mismatch", message)
    return md5


def _check_size(text: str) -> None:
    # The digits are counted first: a number of a thousand of them is refused unread.
    if text.isdecimal() and (len(text.lstrip("0")) > len(str(MOST_BYTES)) or int(text) > MOST_BYTES):
        message = f"The request body is too large and exceeds the maximum permissible limit of {MOST_BYTES} bytes."
        raise Refused(413, "RequestBodyTooLarge", message)


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
