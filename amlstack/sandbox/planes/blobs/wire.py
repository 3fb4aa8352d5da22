"""Common parts of the blob service: conditions of requests, leases, headers, times, signatures, and refusals as XML.

Source of requests that are signed with an account's key:
learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key (2026-11-25).
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import re
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from starlette.responses import Response

from amlstack.sandbox.files import storage
from amlstack.sandbox.files.storage import account_key
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.blobs import Blob


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


CONDITION: Final = "The condition specified using HTTP conditional header(s) is not met."
_NOUN: Final = {True: "blob", False: "container"}


def noun(blob: Blob | None) -> str:
    """The word for a thing with a lease: a container has no name within it."""
    return _NOUN[blob is None or bool(blob.name)]


def _failed(status: int = 412) -> Refused:
    return Refused(status, "ConditionNotMet", CONDITION)


LEASE_ID = "x-ms-lease-id"
GUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}")
_SECONDS = range(15, 61)
_ACTIONS = ("acquire", "renew", "change", "release", "break")


def check_lease(headers: Mapping[str, str], blob: Blob | None) -> None:
    """Judges a write or a deletion.

    Raises:
        Refused: 412; the blob is leased to somebody else, or the lease that the request names is over.
    """
    given, held, of = headers.get(LEASE_ID), None if blob is None else _held(blob), noun(blob)
    if given is not None and not GUID.fullmatch(given):
        message = "The value for one of the HTTP headers is not in the correct format."
        raise Refused(400, "InvalidHeaderValue", message, LEASE_ID, details=(given,))
    if held is not None and given is None:
        message = f"There is currently a lease on the {of} and no lease ID was specified in the request."
        raise Refused(412, "LeaseIdMissing", message)
    if held is None and given is not None:
        if blob is not None and blob.extra.get("lease"):
            raise Refused(412, "LeaseLost", f"A lease ID was specified, but the lease for the {of} has expired.")
        message = f"There is currently no lease on the {of}."
        raise Refused(412, f"LeaseNotPresentWith{of.capitalize()}Operation", message)
    if held is not None and given != held["id"]:
        message = f"The lease ID specified did not match the lease ID for the {of}."
        raise Refused(412, f"LeaseIdMismatchWith{of.capitalize()}Operation", message)


def check_write(headers: Mapping[str, str], blob: Blob | None) -> None:
    """Judges the lease of a write or a deletion, and then its conditions.

    Who holds the lease writes although the blob exists and ``If-None-Match: *`` was sent: azure-storage-blob,
    test_upload_blob_with_destination_lease (2022-07-21).
    """
    check_lease(headers, blob)
    if headers.get(LEASE_ID) and headers.get("if-none-match") == "*":
        headers = {name: value for name, value in headers.items() if name.lower() != "if-none-match"}
    check_conditions(headers, blob)


COUNT: Final = "x-ms-blob-committed-block-count"
"""The header that says how many blocks an append blob has."""
_MOST_APPENDED: Final = 50_000


def kind_of(blob: Blob) -> str:
    """The type of a blob, in the service's word."""
    return "AppendBlob" if "appended" in blob.extra else "BlockBlob"


def check_append(headers: Mapping[str, str], blob: Blob, size: int) -> int:
    """Judges the addition of so many bytes to a blob; how many blocks it has with them.

    Raises:
        Refused: 409 for a blob of another type, or one with as many blocks as it may have; 412 for a condition.
    """
    if "appended" not in blob.extra:
        raise Refused(409, "InvalidBlobType", "The blob type is invalid for this operation.")
    if blob.extra["appended"] >= _MOST_APPENDED:
        raise Refused(409, "BlockCountExceedsLimit", "The committed block count cannot exceed the maximum limit.")
    most, at = headers.get("x-ms-blob-condition-maxsize", ""), headers.get("x-ms-blob-condition-appendpos", "")
    if at.isdecimal() and int(at) != blob.size:
        raise Refused(412, "AppendPositionConditionNotMet", "The append position condition specified was not met.")
    if most.isdecimal() and blob.size + size > int(most):
        raise Refused(412, "MaxBlobSizeConditionNotMet", "The max blob size condition specified was not met.")
    return int(blob.extra["appended"]) + 1


def check_read(headers: Mapping[str, str], blob: Blob) -> None:
    """Judges the conditions of a read, and the lease that it names."""
    if LEASE_ID in headers:
        check_lease(headers, blob)
    check_conditions(headers, blob, reads=True)


def lease_state(blob: Blob) -> dict[str, str]:
    """The headers that tell of it."""
    held, ever = _held(blob), blob.extra.get("lease")
    if held is None:
        state = "available" if not ever else "broken" if ever.get("broken") else "expired"
        return {"x-ms-lease-status": "unlocked", "x-ms-lease-state": state}
    duration = "infinite" if held["until"] is None else "fixed"
    return {"x-ms-lease-status": "locked", "x-ms-lease-state": "leased", "x-ms-lease-duration": duration}


def change_lease(context: KindContext, blob: Blob, headers: Mapping[str, str]) -> Response:
    """Answers a PUT of a lease on a blob or container: acquire, renew, change, release, break."""
    action = headers.get("x-ms-lease-action", "")
    if action not in _ACTIONS:
        message = f"The value '{action}' of the header x-ms-lease-action is none of {', '.join(_ACTIONS)}."
        raise Refused(400, "InvalidHeaderValue", message)
    check_conditions(headers, blob)
    with context.store.transaction():
        held, given = _held(blob), headers.get(LEASE_ID)
        if action == "acquire":
            return _acquire(context, blob, headers)
        if action == "break":
            if held is None:
                message = f"There is currently no lease on the {noun(blob)}."
                raise Refused(409, "LeaseNotPresentWithLeaseOperation", message)
            return _keep(context, blob, {**held, "until": 0, "broken": True}, 202, {"x-ms-lease-time": "0"})
        known = blob.extra.get("lease")
        if known is None or given != known["id"]:
            message = f"The lease ID specified did not match the lease ID for the {noun(blob)}."
            raise Refused(409, "LeaseIdMismatchWithLeaseOperation", message)
        if action == "release":
            return _keep(context, blob, None, 200, {})
        own = headers.get("x-ms-proposed-lease-id", known["id"]) if action == "change" else known["id"]
        until = None if known["seconds"] is None else time.time() + known["seconds"]
        return _keep(context, blob, {**known, "id": own, "until": until}, 200, {LEASE_ID: own})


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
    return _keep(context, blob, {"id": own, "seconds": seconds, "until": until}, 201, {LEASE_ID: own})


def _keep(
    context: KindContext, blob: Blob, lease: dict[str, Any] | None, status: int, more: dict[str, str]
) -> Response:
    rest = {name: value for name, value in blob.extra.items() if name != "lease"}
    extra = {**rest, "lease": lease} if lease else rest
    context.store.blobs.set_extra(blob.account, blob.container, blob.name, extra)
    return Response(status_code=status, headers={**stamp(blob.etag, blob.changed), **more})


def _held(blob: Blob) -> dict[str, Any] | None:
    lease: dict[str, Any] | None = blob.extra.get("lease")
    return lease if lease and (lease["until"] is None or lease["until"] > time.time()) else None


MOST_BYTES: Final = 5_000 << 20
"""Of one upload, as Put Blob takes it."""


class BlobPlace(NamedTuple):
    """The address of a blob, or of a container when ``name`` is empty."""

    account: str
    container: str
    name: str


HEADER: Final = ("HeaderName", "HeaderValue")
MD5: Final = ("UserSpecifiedMd5", "ServerCalculatedMd5")
"""Elements of a refusal beside its message: for a header that is its target, or else of a sum that is another."""


def refusal(refused: Refused) -> Response:
    """A refusal in the blob service's form; 304 has no body."""
    headers = {"x-ms-error-code": refused.code, "x-ms-version": storage.VERSION}
    if refused.status == 304:
        return Response(status_code=304, headers=headers)
    names = HEADER if refused.target else MD5
    more = "".join(
        f"<{name}>{escape(str(value))}</{name}>"
        for name, value in zip(names, (*filter(None, [refused.target]), *refused.details), strict=False)
    )
    text = (
        f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{refused.code}</Code>'
        f"<Message>{escape(refused.message)}</Message>{more}</Error>"
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
    return {"x-ms-version": storage.VERSION}


ENCRYPTED: Final = {"x-ms-request-server-encrypted": "true"}
"""The header of an answer to an upload or to other metadata."""


def tier(blob: Blob) -> dict[str, str]:
    """The headers of its access tier, which a HEAD tells alone."""
    given = blob.extra.get("tier")
    if "appended" in blob.extra:
        return {}
    if not given:
        return {"x-ms-access-tier": "Hot", "x-ms-access-tier-inferred": "true"}
    changed = date(blob.extra.get("tiered", blob.changed))
    return {"x-ms-access-tier": given, "x-ms-access-tier-change-time": changed}


def metadata(headers: Mapping[str, str]) -> dict[str, str]:
    """The metadata that a client gives a blob or container; header names are in lower-case letters."""
    return {key.removeprefix("x-ms-meta-"): value for key, value in headers.items() if key.startswith("x-ms-meta-")}


def metadata_xml(labels: Mapping[str, str]) -> str:
    """The same in a list."""
    return f"<Metadata>{''.join(f'<{name}>{escape(value)}</{name}>' for name, value in labels.items())}</Metadata>"


def tags_xml(tags: Mapping[str, str]) -> str:
    """The tags of a blob."""
    rows = (f"<Tag><Key>{escape(key)}</Key><Value>{escape(value)}</Value></Tag>" for key, value in tags.items())
    return f"<TagSet>{''.join(rows)}</TagSet>"


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
    check_md5(request.headers.get("content-md5", md5), md5)
    return md5


def check_md5(given: str, md5: str) -> None:
    """Refuses (400) what is not what the client says that it is."""
    if given != md5:
        message = "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
        raise Refused(400, "Md5Mismatch", message, details=(given, md5))


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
        **({"content-type": blob.type} if blob.type else {}),
        "x-ms-blob-type": kind_of(blob),
        **({COUNT: str(blob.extra["appended"])} if "appended" in blob.extra else {}),
        "x-ms-server-encrypted": "true",
        "x-ms-creation-time": date(blob.created),
        **lease_state(blob),
        **blob.extra.get("headers", {}),
        **blob.extra.get("copy", {}),
        **({"x-ms-tag-count": str(len(tags))} if (tags := blob.extra.get("tags")) else {}),
        **({"content-md5": blob.md5} if blob.md5 else {}),
        **{f"x-ms-meta-{key}": value for key, value in blob.metadata.items()},
    }


def date(at: float) -> str:
    """Seconds since the epoch as HTTP writes times."""
    return email.utils.formatdate(at, usegmt=True)


SCHEME: Final = "SharedKey "
_HEADERS: Final = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


def check(key: str, request: Request, account: str) -> None:
    """Refuses a request whose signature is none by the account's key.

    Args:
        key: The sandbox's signing key.
        request: Of the client; its header ``Authorization`` is ``SharedKey ACCOUNT:SIGNATURE``.
        account: Name of the account that the path leads to.

    Raises:
        Refused: 403.
    """
    name, _, given = request.headers.get("authorization", "")[len(SCHEME) :].partition(":")
    secret = base64.b64decode(account_key(key, account))
    wanted = base64.b64encode(hmac.digest(secret, _signed_text(request, name).encode(), hashlib.sha256))
    if name != account or not hmac.compare_digest(wanted, given.encode()):
        message = (
            "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
            "correctly including the signature."
        )
        raise Refused(403, "AuthenticationFailed", message)


def _signed_text(request: Request, account: str) -> str:
    """The text that the client has signed: method, headers, the path as the client has it, and the query."""
    headers = request.headers
    standard = [headers.get(name, "") for name in _HEADERS]
    if headers.get("content-length") == "0":
        standard[_HEADERS.index("content-length")] = ""
    if "x-ms-date" in headers:
        standard[_HEADERS.index("date")] = ""
    own = sorted((name, value.strip()) for name, value in headers.items() if name.startswith("x-ms-"))
    path, _, query = request.scope["raw_path"].decode("latin-1").partition("?")
    query = query or request.scope["query_string"].decode("latin-1")
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        values.setdefault(name.lower(), []).append(value)
    resource = [f"/{account}{path}", *(f"{name}:{','.join(sorted(values[name]))}" for name in sorted(values))]
    return "\n".join((request.method, *standard, *(f"{name}:{value}" for name, value in own), *resource))
