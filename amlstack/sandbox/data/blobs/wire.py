"""What all answers of the blob service have in common: headers, times, and refusals as XML."""

from __future__ import annotations

import email.utils
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from starlette.responses import Response

from amlstack.sandbox.data import sas

if TYPE_CHECKING:
    from amlstack.sandbox.arm.refusals import Refused
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
        "x-ms-creation-time": date(blob.created),
        "x-ms-lease-status": "unlocked",
        "x-ms-lease-state": "available",
        **({"content-md5": blob.md5} if blob.md5 else {}),
        **{f"x-ms-meta-{key}": value for key, value in blob.metadata.items()},
    }


def date(at: float) -> str:
    """Seconds since the epoch as HTTP writes times."""
    return email.utils.formatdate(at, usegmt=True)
