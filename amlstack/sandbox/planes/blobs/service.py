"""The calls of the blob service: who may make them, uploads, downloads and deletions."""

from __future__ import annotations

import base64
import hashlib
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from starlette.responses import Response

from amlstack.sandbox.files import storage
from amlstack.sandbox.planes.blobs import containers, content, paths, wire
from amlstack.sandbox.planes.blobs.wire import BlobPlace
from amlstack.sandbox.protocol import entra, requests
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.blobs import Blob

PREFIX = "/blob/"
NEEDS = {"GET": "r", "HEAD": "r", "PUT": "cw", "PATCH": "w", "DELETE": "d"}
LONGEST = 1024
"""Characters of a blob's name."""
STORAGE = containers.STORAGE
UNKNOWN = (
    *("x-ms-encryption-algorithm", "x-ms-encryption-scope", "x-ms-default-encryption-scope", "x-ms-if-tags"),
    *("snapshot", "versionid", "deletetype", "showonly"),
)
"""Headers and parameters that say of what a request is, or when: one with these is refused, not answered as without."""


async def answer(context: KindContext, request: Request, raw: str) -> Response:
    """Answers one call of the data plane.

    Args:
        context: State.
        request: Of the client.
        raw: Its path here, percent-encoded.

    Raises:
        Refused: See `refusal`.
    """
    words = [requests.decoded(word) for word in raw.removeprefix(PREFIX).split("/")]
    # azure-ai-ml puts the cloud's suffix behind the account's name; see `service/app.py`.
    place = BlobPlace(words[0].partition(".")[0], words[1] if len(words) > 1 else "", "/".join(words[2:]))
    for one in (words[0], place.container, place.name):
        requests.check_name(one)
    _authorize(context, request, place)
    if paths.addressed(words[0]):
        return _in_version(request, await paths.answer(context, request, place))
    return _in_version(request, await _route(context, request, place))


def refusal(request: Request, raw: str, refused: Refused) -> Response:
    """A refusal as the SDKs expect it: XML with ``x-ms-error-code``, JSON at the endpoint ``dfs``."""
    tree = paths.addressed(raw.split("/")[2])
    answer = paths.refusal(request.method, refused) if tree else wire.refusal(refused)
    if request.method == "HEAD":  # nothing follows whose type could be told
        del answer.headers["content-type"]
    return _in_version(request, answer)


def _in_version(request: Request, answer: Response) -> Response:
    """An answer under the version of the service that the client speaks."""
    answer.headers["x-ms-version"] = request.headers.get("x-ms-version", storage.VERSION)
    return answer


def _authorize(context: KindContext, request: Request, place: BlobPlace) -> None:
    accounts = context.store.resources.of_type(STORAGE, place.account)
    account = next((row for row in accounts if row.name == place.account), None)
    if account is None:
        raise Refused(404, "ResourceNotFound", f"The storage account '{place.account}' does not exist.")
    authorization = requests.authorization(request) or ""
    signed = authorization.lower().startswith("sharedkey")
    # A signature for a whole account comes of its key; one for a container, of somebody who signed in.
    by_key = signed or (not authorization and "srt" in request.query_params)
    if by_key and account.body["properties"].get("allowSharedKeyAccess", True) is False:
        message = "Key based authentication is not permitted on this storage account."
        raise Refused(403, "KeyBasedAuthenticationNotPermitted", message)
    if signed:
        wire.check(context.key, request, place.account)
    elif authorization:
        try:
            entra.check_bearer(context.key, authorization, entra.storage(place.account))
        except Refused as refused:
            raise Refused(refused.status, "InvalidAuthenticationInfo", refused.message) from None
    elif "sig" in request.query_params:
        listing = request.query_params.get("comp") == "list"
        needs = "l" if listing else NEEDS.get(request.method, "")
        if place.container == "" or request.query_params.get("resource") == "filesystem":
            needs = "l"
        storage.check_grant(context.key, request.query_params, place.account, place.container, needs)
    else:
        message = (
            "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
        )
        raise Refused(401, "NoAuthenticationInformation", message)


async def _route(context: KindContext, request: Request, place: BlobPlace) -> Response:
    method, query = request.method, request.query_params
    comp = query.get("comp", "")
    _check_known(request)
    if method in {"GET", "HEAD"}:
        storage.ensure_artifacts(context.store, place.account, place.container, place.name or query.get("prefix", ""))
    if (query.get("restype"), comp) == ("account", "properties") and method in {"GET", "HEAD"}:
        return Response(headers=wire.common() | containers.account_information(context, place.account))
    if not place.container and method == "GET" and comp == "list":
        return containers.all_of(context, place.account, query)
    if not place.name:
        answered = None
        if query.get("restype") == "container":
            answered = containers.answer(context, method, place, query, request.headers)
        return answered or _refuse(f"{method} of a container or account with comp='{comp}'")
    if len(place.name) > LONGEST:
        message = f"The specified resource name is too long: {len(place.name)} characters, {LONGEST} at most."
        raise Refused(400, "InvalidResourceName", message)
    containers.check(context, place)
    writers = {"": _put_blob, "block": _put_block, "blocklist": _put_blocks, "metadata": _put_metadata}
    writers["appendblock"] = _append
    if method == "PUT" and comp in writers:
        return await writers[comp](context, request, place)
    if comp:
        answered = await _part(context, request, place, comp)
        return answered or _refuse(f"{method} of a blob with comp='{comp}'")
    blob = _found(context, place)
    if method in {"GET", "HEAD"}:
        return _read(context, request, blob)
    if method == "DELETE":
        wire.check_write(request.headers, blob)
        if request.headers.get("x-ms-delete-snapshots") == "only":
            _refuse("snapshots, which would be deleted alone")
        context.store.blobs.delete(blob)
        return Response(status_code=202, headers=wire.common())
    raise _unknown(f"{method} of a blob")


def _read(context: KindContext, request: Request, blob: Blob) -> Response:
    """Answers a GET or HEAD; an account with a hierarchical namespace tells files and directories apart."""
    wire.check_read(request.headers, blob)
    if request.method == "GET":
        answer = content.download(request, blob)
    else:
        answer = Response(headers={**wire.describe(blob), **wire.tier(blob), "content-length": str(blob.size)})
    if answer.status_code < 400 and containers.has_tree(context, blob.account):
        answer.headers["x-ms-resource-type"] = "directory" if blob.folder else "file"
    return answer


async def _part(context: KindContext, request: Request, place: BlobPlace, comp: str) -> Response | None:
    """One part of a blob, read or changed; None for what the sandbox does not emulate."""
    if comp == "blocklist" and request.method == "GET":
        return content.listing(context, place, request.query_params.get("blocklisttype", "committed"))
    if comp == "lease" and request.method == "PUT":
        return wire.change_lease(context, _found(context, place), request.headers)
    if comp in content.PARTS:
        return await content.answer_part(context, request, _found(context, place), comp)
    return None


def _unknown(what: str) -> Refused:
    return Refused(501, "SandboxNotEmulated", f"The sandbox's blob service does not emulate {what}.")


def _check_known(request: Request) -> None:
    if unknown := next((one for one in UNKNOWN if one in request.headers or one in request.query_params), None):
        _refuse(f"requests with {unknown}")


def _refuse(what: str) -> NoReturn:
    raise _unknown(what)


def _found(context: KindContext, place: BlobPlace) -> Blob:
    blob = context.store.blobs.get(*place)
    if blob is None:
        raise Refused(404, "BlobNotFound", "The specified blob does not exist.")
    return blob


async def _put_blob(context: KindContext, request: Request, place: BlobPlace) -> Response:
    kind = request.headers.get("x-ms-blob-type", "")
    if not kind and "x-ms-copy-source" in request.headers:
        return _copy_blob(context, request, place)
    if kind not in {"BlockBlob", "AppendBlob"}:
        raise _unknown(f"x-ms-blob-type '{kind}', only BlockBlob and AppendBlob uploads and copies")
    file = context.store.blobs.fresh()
    if kind == "AppendBlob":
        await wire.receive(request, file)
        return _made(context, request, place, file, None, extra={"appended": 0})
    if "x-ms-copy-source" in request.headers:
        answer = _made(context, request, place, file, content.fetch(context, request, file)[1])
        if "x-ms-source-content-md5" not in request.headers:
            del answer.headers["content-md5"]
        return answer
    md5 = await wire.receive(request, file)
    wire.check_md5(request.headers.get("x-ms-blob-content-md5", md5), md5)
    return _made(context, request, place, file, md5)


def _copy_blob(context: KindContext, request: Request, place: BlobPlace) -> Response:
    file = context.store.blobs.fresh()
    bearer = requests.authorization(request) is not None
    source, md5 = content.fetch(context, request, file, place.account if bearer else None)
    done = {"x-ms-copy-id": str(uuid.uuid4()), "x-ms-copy-status": "success"}
    copied = {
        **done,
        "x-ms-copy-source": request.headers["x-ms-copy-source"].partition("?")[0],
        "x-ms-copy-progress": f"{source.size}/{source.size}",
        "x-ms-copy-completion-time": wire.date(time.time()),
    }
    extra = {"copy": copied, **{key: value for key, value in source.extra.items() if key == "appended"}}
    answer = _made(context, request, place, file, md5, like=source, extra=extra)
    answer.status_code = 202
    del answer.headers["content-md5"]
    if request.headers.get("x-ms-requires-sync", "").lower() != "true":
        del answer.headers["x-ms-request-server-encrypted"]
    answer.headers.update(done)
    return answer


async def _put_block(context: KindContext, request: Request, place: BlobPlace) -> Response:
    staged, file = content.staged(context, place, request.query_params.get("blockid", "")), context.store.blobs.fresh()
    url = "x-ms-copy-source" in request.headers
    md5 = content.fetch(context, request, file)[1] if url else await wire.receive(request, file)
    staged.parent.mkdir(parents=True, exist_ok=True)
    file.replace(staged)
    told = {"content-md5": md5} if {"content-md5", "x-ms-source-content-md5"} & {*request.headers} else {}
    return Response(status_code=201, headers={**wire.ENCRYPTED, **told})


async def _append(context: KindContext, request: Request, place: BlobPlace) -> Response:
    """Adds a block to the end of an append blob."""
    _found(context, place)
    part, whole = context.store.blobs.fresh(), context.store.blobs.fresh()
    url = "x-ms-copy-source" in request.headers
    try:
        md5 = content.fetch(context, request, part)[1] if url else await wire.receive(request, part)
    except Refused as refused:
        refused.details = ()  # here it does not tell the two sums
        raise
    try:
        with context.store.transaction():
            blob = _found(context, place)
            wire.check_write(request.headers, blob)
            count = wire.check_append(request.headers, blob, part.stat().st_size)
            content.concatenate((blob.path, part), whole)
            kept: dict[str, Any] = {"type": blob.type, "metadata": blob.metadata}
            made = context.store.blobs.put(*place, whole, **kept, extra={**blob.extra, "appended": count})
    finally:
        part.unlink()
    told = {"content-md5": md5} if {"content-md5", "x-ms-source-content-md5"} & {*request.headers} else {}
    counted = {"x-ms-blob-append-offset": str(blob.size), wire.COUNT: str(count)}
    return Response(
        status_code=201, headers={**wire.stamp(made.etag, made.changed), **wire.ENCRYPTED, **counted, **told}
    )


async def _put_blocks(context: KindContext, request: Request, place: BlobPlace) -> Response:
    text = await requests.read(request)
    if (given := request.headers.get("content-md5")) is not None:  # of the list, and told again
        wire.check_md5(given, base64.b64encode(hashlib.md5(text, usedforsecurity=False).digest()).decode())
    file = context.store.blobs.fresh()
    listed = content.join(context, place, text, file)
    answer = _made(context, request, place, file, None, extra={"blocks": listed})
    content.forget(context, place)
    answer.headers.update({} if given is None else {"content-md5": given})
    return answer


def _made(
    context: KindContext,
    request: Request,
    place: BlobPlace,
    file: Path,
    md5: str | None,
    *,
    like: Blob | None = None,
    extra: dict[str, Any] | None = None,
) -> Response:
    """A new blob from a file; one that is a copy has the type of ``like``, and its metadata when it is given none."""
    # Judged where the blob is replaced, in one transaction: of two that saw the same state one alone may write.
    with context.store.transaction():
        try:
            before = context.store.blobs.get(*place)
            wire.check_write(request.headers, before)
        except Refused:
            file.unlink()
            raise
        blob = context.store.blobs.put(
            *place,
            file,
            md5=request.headers.get("x-ms-blob-content-md5", md5),
            type=like.type if like else request.headers.get("x-ms-blob-content-type", "application/octet-stream"),
            metadata=wire.metadata(request.headers) or (like.metadata if like else {}),
            extra={**content.given(request.headers, before), **(extra or {})},
        )
    headers = {**wire.stamp(blob.etag, blob.changed), **wire.ENCRYPTED}
    return Response(status_code=201, headers={**headers, **({"content-md5": md5} if md5 else {})})


async def _put_metadata(context: KindContext, request: Request, place: BlobPlace) -> Response:
    with context.store.transaction():
        blob = _found(context, place)
        wire.check_write(request.headers, blob)
        context.store.blobs.set_metadata(blob, wire.metadata(request.headers))
        blob = _found(context, place)
    return Response(headers={**wire.stamp(blob.etag, blob.changed), **wire.ENCRYPTED})
