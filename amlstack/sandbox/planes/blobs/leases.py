"""Leases of blobs: while one holds, only who names it may write or delete."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.store import Blob

HEADER = "x-ms-lease-id"
_SECONDS = range(15, 61)
_ACTIONS = ("acquire", "renew", "change", "release", "break")


def check(headers: Mapping[str, str], blob: Blob | None) -> None:
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
