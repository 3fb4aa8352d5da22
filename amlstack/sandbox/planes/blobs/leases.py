"""Leases of blobs, and conditions of requests."""

from __future__ import annotations

import email.utils
import time
import uuid
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.store import Blob


def check_conditions(headers: Mapping[str, str], blob: Blob | None, *, reads: bool = False) -> None:
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


HEADER = "x-ms-lease-id"
_SECONDS = range(15, 61)
_ACTIONS = ("acquire", "renew", "change", "release", "break")


def check_lease(headers: Mapping[str, str], blob: Blob | None) -> None:
    """Judges a write or a deletion.

    Raises:
        Refused: 412; the blob is leased to somebody else, or the lease that the request names is over.
    """
    given, held = headers.get(HEADER), None if blob is None else _held(blob)
    if held is not None and given is None:
        message = "There is currently a lease on the blob and no lease ID was specified in the request."
        raise Refused(412, "LeaseIdMissing", message)
    if held is None and given is not None:
        message = "A lease ID was specified, but the lease for the blob has expired or there is none."
        lost = blob is not None and blob.extra.get("lease")
        raise Refused(412, "LeaseLost" if lost else "LeaseNotPresentWithBlobOperation", message)
    if held is not None and given != held["id"]:
        message = "The lease ID specified did not match the lease ID for the blob."
        raise Refused(412, "LeaseIdMismatchWithBlobOperation", message)


def state(blob: Blob) -> dict[str, str]:
    """The headers that tell of it."""
    held, ever = _held(blob), blob.extra.get("lease")
    if held is None:
        return {"x-ms-lease-status": "unlocked", "x-ms-lease-state": "expired" if ever else "available"}
    duration = "infinite" if held["until"] is None else "fixed"
    return {"x-ms-lease-status": "locked", "x-ms-lease-state": "leased", "x-ms-lease-duration": duration}


def change(context: KindContext, blob: Blob, headers: Mapping[str, str]) -> Response:
    """Answers a PUT of a lease: acquire, renew, change, release, break."""
    action = headers.get("x-ms-lease-action", "")
    if action not in _ACTIONS:
        message = f"The value '{action}' of the header x-ms-lease-action is none of {', '.join(_ACTIONS)}."
        raise Refused(400, "InvalidHeaderValue", message)
    with context.store.transaction():
        held, given = _held(blob), headers.get(HEADER)
        if action == "acquire":
            return _acquire(context, blob, headers)
        if action == "break":
            if held is None:
                message = "There is currently no lease on the blob."
                raise Refused(409, "LeaseNotPresentWithLeaseOperation", message)
            return _keep(context, blob, None, 202, {"x-ms-lease-time": "0"})
        known = blob.extra.get("lease")
        if known is None or given != known["id"]:
            message = "The lease ID specified did not match the lease ID for the blob."
            raise Refused(409, "LeaseIdMismatchWithLeaseOperation", message)
        if action == "release":
            return _keep(context, blob, None, 200, {})
        own = headers.get("x-ms-proposed-lease-id", known["id"]) if action == "change" else known["id"]
        until = None if known["seconds"] is None else time.time() + known["seconds"]
        return _keep(context, blob, {**known, "id": own, "until": until}, 200, {HEADER: own})


def _acquire(context: KindContext, blob: Blob, headers: Mapping[str, str]) -> Response:
    held, own = _held(blob), headers.get("x-ms-proposed-lease-id") or str(uuid.uuid4())
    if held is not None and held["id"] != own:
        raise Refused(409, "LeaseAlreadyPresent", "There is already a lease present.")
    text = headers.get("x-ms-lease-duration", "")
    if text != "-1" and not (text.isdecimal() and int(text) in _SECONDS):
        message = f"The value '{text}' of the header x-ms-lease-duration is invalid: 15 to 60 seconds, or -1."
        raise Refused(400, "InvalidHeaderValue", message)
    seconds = None if text == "-1" else int(text)
    until = None if seconds is None else time.time() + seconds
    return _keep(context, blob, {"id": own, "seconds": seconds, "until": until}, 201, {HEADER: own})


def _keep(
    context: KindContext, blob: Blob, lease: dict[str, Any] | None, status: int, more: dict[str, str]
) -> Response:
    rest = {name: value for name, value in blob.extra.items() if name != "lease"}
    extra = {**rest, "lease": lease} if lease else rest
    context.store.blobs.set_extra(blob.account, blob.container, blob.name, extra)
    return Response(status_code=status, headers={"etag": f'"{blob.etag}"', **more})


def _held(blob: Blob) -> dict[str, Any] | None:
    lease: dict[str, Any] | None = blob.extra.get("lease")
    return lease if lease and (lease["until"] is None or lease["until"] > time.time()) else None
