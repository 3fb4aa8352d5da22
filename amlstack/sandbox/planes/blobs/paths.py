"""Data Lake Storage Gen2: the same blobs as files and directories, at the endpoint ``dfs`` of an account.

https://learn.microsoft.com/rest/api/storageservices/datalakestoragegen2/path (2026-11-22). A directory is a blob with
the metadata ``hdi_isfolder``, as the blob service of an account with a hierarchical namespace shows it. Whether the
account has one is not looked at: both endpoints see what either wrote.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response

from amlstack.sandbox.planes.blobs import containers, content, wire
from amlstack.sandbox.protocol import requests
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.store.blobs import FOLDER, Blob

if TYPE_CHECKING:
    from starlette.requests import Request

    from amlstack.sandbox.planes.blobs.wire import BlobPlace
    from amlstack.sandbox.protocol.kind import Body, KindContext

PAGE = 5000
UNKNOWN: Final = (
    *("x-ms-encryption-algorithm", "x-ms-encryption-context", "x-ms-lease-action", "x-ms-proposed-lease-id"),
    *("x-ms-permissions", "x-ms-umask", "x-ms-owner", "x-ms-group", "x-ms-acl", "x-ms-expiry-option"),
)
"""Headers of what the file systems of the sandbox have not: a request with one is refused, not answered as without."""
TO_1601: Final = 11_644_473_600
"""Seconds from the year 1601, from which the service counts tenths of microseconds, to the epoch."""
LARGEST = 1 << 44
"""Bytes of a file: more than Azure's own bound for an append, and few enough to be counted."""


def addressed(account: str) -> bool:
    """True where a request is for this endpoint: ``<account>.dfs.<suffix>``."""
    return account.partition(".")[2].lower().startswith("dfs.")


JSON: Final = "application/json; charset=utf-8"


def refusal(method: str, refused: Refused) -> Response:
    """A refusal in this endpoint's form; of what only a new path may be, the code depends on what was done to it."""
    code, message, status = refused.code, refused.message, refused.status
    if code == "BlobAlreadyExists" and method == "PATCH":
        status, code, message = 412, "ConditionNotMet", wire.CONDITION
    elif code == "BlobAlreadyExists":
        code, message = "PathAlreadyExists", "The specified path already exists."
    told = f"{message}\nRequestId:{uuid.uuid4()}\nTime:{datetime.now(UTC).strftime('%Y-%m-%dT%H:%M:%S.%f0Z')}"
    if status == 501:  # the sandbox's own word
        told = message
    headers = {**wire.common(), "x-ms-error-code": code}
    return JSONResponse({"error": {"code": code, "message": told}}, status, headers, media_type=JSON)


async def answer(context: KindContext, request: Request, place: BlobPlace) -> Response:
    """Answers one call."""
    method, query = request.method, request.query_params
    _check_known(request)
    if not place.name:
        if query.get("resource") == "filesystem" and method == "GET":
            return _list(context, request, place)
        if query.get("resource") == "filesystem" and method in {"PUT", "HEAD", "DELETE"}:
            answered = containers.answer(context, method, place, {}, request.headers)
            if answered is not None:
                return answered
        raise _unknown(f"{method} of a file system")
    containers.check(context, place)
    if method == "PUT" and "x-ms-rename-source" in request.headers:
        return _rename(context, request, place)
    if method == "PUT" and query.get("resource") in {"file", "directory"}:
        return _make(context, request, place, folder=query["resource"] == "directory")
    if method == "PATCH" and query.get("action") == "append":
        return await _append(context, request, place)
    if method == "PATCH" and query.get("action") == "flush":
        return _flush(context, request, place)
    if method == "HEAD" and "action" not in query:
        return Response(headers=_describe(_found(context, place)))
    if method == "GET":
        return content.download(request, _found(context, place))
    if method == "DELETE":
        return _delete(context, request, place)
    raise _unknown(f"{method} of a path with action='{query.get('action', '')}'")


def _check_known(request: Request) -> None:
    if unknown := next((name for name in UNKNOWN if name in request.headers), None):
        raise _unknown(f"requests with {unknown}")


def _unknown(what: str) -> Refused:
    return Refused(501, "SandboxNotEmulated", f"The sandbox's file systems do not emulate {what}.")


def _found(context: KindContext, place: BlobPlace) -> Blob:
    blob = context.store.blobs.get(place.account, place.container, place.name.rstrip("/"))
    if blob is None:
        raise Refused(404, "PathNotFound", "The specified path does not exist.")
    return blob


def _describe(blob: Blob) -> dict[str, str]:
    labels = ((name, value) for name, value in blob.metadata.items() if name != FOLDER)
    encoded = ",".join(f"{name}={base64.b64encode(value.encode()).decode()}" for name, value in labels)
    kind = "directory" if blob.folder else "file"
    return {
        **wire.describe(blob),
        "content-length": str(blob.size),
        "x-ms-resource-type": kind,
        "x-ms-properties": encoded,
    }


def _labels(request: Request) -> dict[str, str]:
    """``x-ms-properties: name=base64,…``."""
    found = {}
    for part in filter(None, request.headers.get("x-ms-properties", "").split(",")):
        name, _, value = part.partition("=")
        try:
            found[name.strip().lower()] = base64.b64decode(value, validate=True).decode()
        except ValueError:
            message = "The value of the header x-ms-properties is none: names, each with a value in base64."
            raise Refused(400, "InvalidHeaderValue", message) from None
    return found


def _make(context: KindContext, request: Request, place: BlobPlace, *, folder: bool) -> Response:
    name = place.name.strip("/")
    file = context.store.blobs.fresh()
    file.touch()
    labels = {**_labels(request), **({FOLDER: "true"} if folder else {})}
    with context.store.transaction():
        before = context.store.blobs.get(place.account, place.container, name)
        try:
            wire.check_write(request.headers, before)
            _check_kind(before, folder=folder)
            _make_above(context, place, name)
        except Refused:
            file.unlink()
            raise
        if before is not None and folder:  # a directory keeps what lies in it
            file.unlink()
            made = before
        else:
            extra = content.given(request.headers, before)
            made = context.store.blobs.put(place.account, place.container, name, file, metadata=labels, extra=extra)
    _staged(context, place).unlink(missing_ok=True)
    return Response(status_code=201, headers={**wire.stamp(made.etag, made.changed), **wire.ENCRYPTED})


def _check_kind(before: Blob | None, *, folder: bool) -> None:
    if before is not None and before.folder is not folder:
        message = "The specified path already exists, as a directory where a file is to be made or the other way round."
        raise Refused(409, "PathAlreadyExists" if folder else "ResourceTypeMismatch", message)


def _make_above(context: KindContext, place: BlobPlace, name: str) -> None:
    """The directories above a path, where there are none yet."""
    words = name.split("/")
    for depth in range(1, len(words)):
        above = "/".join(words[:depth])
        found = context.store.blobs.get(place.account, place.container, above)
        if found is None:
            file = context.store.blobs.fresh()
            file.touch()
            labels = {FOLDER: "true"}  # of a directory that nobody asked for, and without a type
            context.store.blobs.put(place.account, place.container, above, file, type="", metadata=labels)
        elif not found.folder:
            raise Refused(409, "PathConflict", f"The path '{above}' above it is a file.")


async def _append(context: KindContext, request: Request, place: BlobPlace) -> Response:
    blob = _found(context, place)
    wire.check_lease(request.headers, blob)
    at = _position(request)
    staged = _staged(context, place)
    if not staged.exists():
        staged.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(blob.path, staged)
        staged.chmod(0o600)
    # What is cut off leaves nothing behind: parts are written where they belong once they are whole.
    part = context.store.blobs.fresh()
    await wire.receive(request, part)
    try:
        with part.open("rb") as source, staged.open("r+b") as out:
            out.seek(at)
            shutil.copyfileobj(source, out)
    finally:
        part.unlink()
    stamp = wire.common()
    if request.query_params.get("flush") == "true":
        kind = request.headers.get("content-type", blob.type)
        blob = _commit(context, request, place, None, kind)
        stamp = wire.stamp(blob.etag, blob.changed)
    return Response(status_code=202, headers={**stamp, **wire.ENCRYPTED})


def _flush(context: KindContext, request: Request, place: BlobPlace) -> Response:
    blob = _commit(context, request, place, _position(request), request.headers.get("x-ms-content-type"))
    # The bytes came with the appends: nothing was left to be encrypted (test_append_empty_data, 2022-08-31).
    return Response(headers={**wire.stamp(blob.etag, blob.changed), "x-ms-request-server-encrypted": "false"})


def _commit(context: KindContext, request: Request, place: BlobPlace, at: int | None, kind: str | None) -> Blob:
    """The file with what was appended to it, up to a length that is told."""
    staged = _staged(context, place)
    with context.store.transaction():
        blob = _found(context, place)
        wire.check_write(request.headers, blob)
        size = staged.stat().st_size if staged.exists() else blob.size
        if at not in {None, size}:
            message = f"The uploaded data is not contiguous or the position {at} is not the length {size} of the file."
            raise Refused(400, "InvalidFlushPosition", message)
        if staged.exists():
            file = context.store.blobs.fresh()
            staged.replace(file)
            md5 = request.headers.get("x-ms-content-md5")
            where = blob.account, blob.container, blob.name
            kind = kind or blob.type
            blob = context.store.blobs.put(*where, file, md5=md5, type=kind, metadata=blob.metadata, extra=blob.extra)
    return blob


def _position(request: Request) -> int:
    text = request.query_params.get("position", "")
    if not text.isdecimal() or len(text) > len(str(LARGEST)) or int(text) > LARGEST:
        message = f"The value '{text[:100]}' of the query parameter position is no whole number up to {LARGEST}."
        raise Refused(400, "InvalidQueryParameterValue", message)
    return int(text)


def _staged(context: KindContext, place: BlobPlace) -> Path:
    words = f"{place.account}\n{place.container}\n{place.name.strip('/')}"
    return context.store.blobs.root / "appends" / hashlib.sha256(words.encode()).hexdigest()[:32]


def _delete(context: KindContext, request: Request, place: BlobPlace) -> Response:
    with context.store.transaction():
        blob = _found(context, place)
        wire.check_write(request.headers, blob)
        below = context.store.blobs.under(place.account, place.container, f"{blob.name}/") if blob.folder else ()
        if below and request.query_params.get("recursive") != "true":
            message = "The recursive query parameter value must be true to delete a non-empty directory."
            raise Refused(409, "DirectoryNotEmpty", message)
        for one in (*below, blob):
            context.store.blobs.delete(one)
    return Response(headers=wire.common())


def _rename(context: KindContext, request: Request, place: BlobPlace) -> Response:
    source_name = requests.decoded(request.headers["x-ms-rename-source"].partition("?")[0]).strip("/")
    words = requests.check_name(source_name).split("/")
    name = place.name.strip("/")
    if words[0] != place.container and not request.headers.get("authorization"):
        message = "This request is not authorized to perform this operation: its signature is of another file system."
        raise Refused(403, "AuthorizationPermissionMismatch", message)
    with context.store.transaction():
        source = _found(context, wire.BlobPlace(place.account, words[0], "/".join(words[1:])))
        wire.check_conditions(request.headers, context.store.blobs.get(place.account, place.container, name))
        _make_above(context, place, name)
        below = context.store.blobs.under(place.account, source.container, f"{source.name}/") if source.folder else ()
        for one in (source, *below):
            file = context.store.blobs.fresh()
            shutil.copyfile(one.path, file)
            goal = name + one.name.removeprefix(source.name)
            context.store.blobs.delete(one)
            goal_of = place.account, place.container, goal
            context.store.blobs.put(*goal_of, file, md5=one.md5, type=one.type, metadata=one.metadata, extra=one.extra)
        made = _found(context, place)
    return Response(status_code=201, headers=wire.stamp(made.etag, made.changed))


def _list(context: KindContext, request: Request, place: BlobPlace) -> Response:
    containers.check(context, place)
    query = request.query_params
    top, deep = query.get("directory", "").strip("/"), query.get("recursive", "false").lower() == "true"
    if top:
        _found(context, wire.BlobPlace(place.account, place.container, top))
    text = query.get("maxResults", "")
    most = min(int(text), PAGE) if text.isdecimal() and len(text) < 10 and int(text) else PAGE
    prefix = f"{top}/" if top else ""
    after = containers.place_of(query.get("continuation", ""), "continuation")
    rows: list[Body] = []
    headers = wire.common()
    for blob in context.store.blobs.listed(place.account, place.container, prefix, after):
        if not deep and "/" in blob.name[len(prefix) :]:
            continue
        if len(rows) == most:
            headers["x-ms-continuation"] = base64.urlsafe_b64encode(rows[-1]["name"].encode()).decode()
            break
        rows.append(_row(blob))
    return JSONResponse({"paths": rows}, headers=headers, media_type=JSON)


def _row(blob: Blob) -> Body:
    row = {
        "name": blob.name,
        "contentLength": str(blob.size),
        "creationTime": str(int((blob.created + TO_1601) * 10**7)),
        "expiryTime": "0",
        "etag": blob.etag,
        "lastModified": wire.date(blob.changed),
        "owner": "$superuser",
        "group": "$superuser",
        "permissions": "rwxr-x---" if blob.folder else "rw-r-----",
    }
    return {**row, **({"isDirectory": "true"} if blob.folder else {})}
