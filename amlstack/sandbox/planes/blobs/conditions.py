"""Conditional requests: what is done only to the state of a blob that the client has seen."""

from __future__ import annotations

import email.utils
from typing import TYPE_CHECKING

from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.store.store import Blob


def check(headers: Mapping[str, str], blob: Blob | None, *, reads: bool = False) -> None:
    """Judges If-Match, If-None-Match, If-Modified-Since and If-Unmodified-Since.

    Args:
        headers: Of the request.
        blob: The blob as it is now; None when there is none.
        reads: The request changes nothing, so that an unchanged blob is 304 and no failure.

    Raises:
        Refused: 412 ConditionNotMet; 304 for a read; 409 BlobAlreadyExists for what only a new blob may be written to.
    """
    wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
    if wanted is not None and (blob is None or not _names(wanted, blob)):
        raise _failed()
    if unwanted is not None and blob is not None and _names(unwanted, blob):
        if unwanted.strip() == "*" and not reads:
            raise Refused(409, "BlobAlreadyExists", "The specified blob already exists.")
        raise _failed(304 if reads else 412)
    if blob is None:
        return
    since, until = _time(headers, "if-modified-since"), _time(headers, "if-unmodified-since")
    changed = int(blob.changed)  # the header that a client has seen knows whole seconds
    # Each entity tag overrules the time beside it (RFC 9110, 13.2.2).
    if until is not None and wanted is None and changed > until:
        raise _failed()
    if since is not None and unwanted is None and changed <= since:
        raise _failed(304 if reads else 412)


def _names(tags: str, blob: Blob) -> bool:
    return any(tag.strip().strip('"') in {"*", blob.etag} for tag in tags.split(","))


def _time(headers: Mapping[str, str], name: str) -> float | None:
    text = headers.get(name)
    if text is None:
        return None
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except ValueError:
        message = f"The value '{text}' of the HTTP header {name} is not in the correct format."
        raise Refused(400, "InvalidHeaderValue", message) from None


def _failed(status: int = 412) -> Refused:
    message = "The condition specified using HTTP conditional header(s) is not met."
    return Refused(status, "ConditionNotMet", message)
