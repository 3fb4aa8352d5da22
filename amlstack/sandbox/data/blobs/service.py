"""The calls of the blob service: who may make them, uploads, downloads and deletions."""

from __future__ import annotations

import base64
import hashlib
import uuid
from typing import TYPE_CHECKING
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from starlette.responses import Response

from amlstack.sandbox.arm import entra
from amlstack.sandbox.arm import request_body as bodies
from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.data import sas
from amlstack.sandbox.data.blobs import conditions, containers, copies, downloads, wire
from amlstack.sandbox.data.blobs.wire import BlobPlace
from amlstack.sandbox.data.downloads import artifacts

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request

    from amlstack.sandbox.kinds.base import KindContext
    from amlstack.sandbox.store.store import Blob

NEEDS = {"GET": "r", "HEAD": "r", "PUT": "cw", "DELETE": "d"}
STORAGE = "Microsoft.Storage/storageAccounts"


async def answer(context: KindContext, request: Request, raw: str) -> Response:
    """Answers one call of the data plane; refusals are XML with ``x-ms-error-code``, as the SDKs expect."""
    try:
        words = [unquote(word) for word in raw.removeprefix("/blob/").split("/")]
        # azure-ai-ml puts the cloud's suffix behind the account's name; see `datastore_address`.
        place = BlobPlace(words[0].partition(".")[0], words[1] if len(words) > 1 else "", "/".join(words[2:]))
        _authorize(context, request, place)
        return await _route(context, request, place)
    except Refused as refused:
        return wire.refusal(refused)


def _authorize(context: KindContext, request: Request, place: BlobPlace) -> None:
    account = next((row for row in context.store.resources.of_type(STORAGE) if row.name == place.account), None)
    if account is None:
        raise Refused(404, "ResourceNotFound", f"The storage account '{place.account}' does not exist.")
    authorization = bodies.authorization(request) or ""
    if authorization.lower().startswith("sharedkey"):
        if account.body["properties"].get("allowSharedKeyAccess", True) is False:
            message = "Key based authentication is not permitted on this storage account."
            raise Refused(403, "KeyBasedAuthenticationNotPermitted", message)
        message = "The sandbox does not emulate shared keys. Use a SAS or an Entra ID token."
        raise Refused(501, "SandboxNotEmulated", message)
    if authorization:
        try:
            entra.check_bearer(context.key, authorization, entra.storage(place.account))
        except Refused as refused:
            raise Refused(refused.status, "InvalidAuthenticationInfo", refused.message) from None
    elif "sig" in request.query_params:
        listing = request.query_params.get("comp") == "list"
        needs = "l" if listing else NEEDS.get(request.method, "")
        sas.check(context.key, request.query_params, place.account, place.container, needs)
    else:
        message = (
            "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
        )
        raise Refused(401, "NoAuthenticationInformation", message)


async def _route(context: KindContext, request: Request, place: BlobPlace) -> Response:
    method, query = request.method, request.query_params
    comp = query.get("comp", "")
    if method in {"GET", "HEAD"}:
        artifacts.ensure(context.store, place.account, place.container, place.name or query.get("prefix", ""))
    if not place.name:
        if query.get("restype") == "container" and method == "GET" and comp == "list":
            return containers.listing(context, place, query)
        if query.get("restype") == "container" and not comp and method in {"PUT", "GET", "HEAD"}:
            return containers.make(context, place) if method == "PUT" else containers.show(context, place)
        raise _unknown(f"{method} of a container with comp='{comp}'")
    containers.check(context, place)
    if method == "PUT":
        writers = {"": _put_blob, "block": _put_block, "blocklist": _put_blocks, "metadata": _put_metadata}
        if comp not in writers:
            raise _unknown(f"PUT of a blob with comp='{comp}'")
        return await writers[comp](context, request, place)
    if comp:
        raise _unknown(f"{method} of a blob with comp='{comp}'")
    blob = _found(context, place)
    conditions.check(request.headers, blob, reads=method in {"GET", "HEAD"})
    if method == "HEAD":
        return Response(headers={**wire.describe(blob), "content-length": str(blob.size)})
    if method == "GET":
        return downloads.answer(request, blob)
    if method == "DELETE":
        context.store.blobs.delete(blob)
        return Response(status_code=202, headers=wire.common())
    raise _unknown(f"{method} of a blob")


def _no_xml() -> Refused:
    return Refused(400, "InvalidXmlDocument", "XML specified is not syntactically valid.")


def _unknown(what: str) -> Refused:
    return Refused(501, "SandboxNotEmulated", f"The sandbox's blob service does not emulate {what}.")


def _found(context: KindContext, place: BlobPlace) -> Blob:
    blob = context.store.blobs.get(place.account, place.container, place.name)
    if blob is None:
        raise Refused(404, "BlobNotFound", "The specified blob does not exist.")
    return blob


async def _put_blob(context: KindContext, request: Request, place: BlobPlace) -> Response:
    kind = request.headers.get("x-ms-blob-type", "")
    if not kind and "x-ms-copy-source" in request.headers:
        return _copy_blob(context, request, place)
    if kind != "BlockBlob":
        raise _unknown(f"x-ms-blob-type '{kind}', only BlockBlob uploads and copies")
    file = context.store.blobs.fresh()
    if "x-ms-copy-source" in request.headers:
        return _made(context, request, place, file, copies.fetch(context, request, file)[1])
    md5 = await _receive(request, file)
    return _made(context, request, place, file, md5)


def _copy_blob(context: KindContext, request: Request, place: BlobPlace) -> Response:
    file = context.store.blobs.fresh()
    bearer = bodies.authorization(request) is not None
    source, md5 = copies.fetch(context, request, file, place.account if bearer else None)
    answer = _made(context, request, place, file, md5, like=source)
    answer.status_code = 202
    answer.headers.update({"x-ms-copy-id": str(uuid.uuid4()), "x-ms-copy-status": "success"})
    return answer


async def _put_block(context: KindContext, request: Request, place: BlobPlace) -> Response:
    folder = _blocks(context, place)
    if not request.query_params.get("blockid"):
        message = "A query parameter that's mandatory for this request is not specified: blockid."
        raise Refused(400, "MissingRequiredQueryParameter", message)
    folder.mkdir(parents=True, exist_ok=True)
    md5 = await _receive(request, folder / _block_name(request.query_params["blockid"]))
    return Response(status_code=201, headers={**wire.common(), "content-md5": md5})


async def _put_blocks(context: KindContext, request: Request, place: BlobPlace) -> Response:
    folder = _blocks(context, place)
    text = await bodies.read(request)
    if b"<!" in text:  # a block list has neither document type nor entities
        raise _no_xml()
    try:
        wanted = ET.fromstring(text)  # noqa: S314 - without a document type there is nothing to expand
    except ET.ParseError:
        raise _no_xml() from None
    file = context.store.blobs.fresh()
    with file.open("wb") as out:
        for entry in wanted:
            block = folder / _block_name(entry.text or "")
            if not block.exists():
                raise Refused(400, "InvalidBlockList", "The specified block list is invalid.")
            out.write(block.read_bytes())
    answer = _made(context, request, place, file, None)
    for block in folder.iterdir() if folder.exists() else ():
        block.unlink()
    return answer


def _made(
    context: KindContext, request: Request, place: BlobPlace, file: Path, md5: str | None, *, like: Blob | None = None
) -> Response:
    """A new blob from a file; one that is a copy has the type of ``like``, and its metadata when it is given none."""
    # Judged where the blob is replaced, in one transaction: of two that saw the same state one alone may write.
    with context.store.transaction():
        try:
            conditions.check(request.headers, context.store.blobs.get(place.account, place.container, place.name))
        except Refused:
            file.unlink()
            raise
        blob = context.store.blobs.put(
            place.account,
            place.container,
            place.name,
            file,
            md5=request.headers.get("x-ms-blob-content-md5", md5),
            type=like.type if like else request.headers.get("x-ms-blob-content-type", "application/octet-stream"),
            metadata=_metadata(request) or (like.metadata if like else {}),
        )
    headers = {**wire.stamp(blob.etag, blob.changed), "x-ms-request-server-encrypted": "true"}
    return Response(status_code=201, headers=headers)


async def _put_metadata(context: KindContext, request: Request, place: BlobPlace) -> Response:
    with context.store.transaction():
        blob = _found(context, place)
        conditions.check(request.headers, blob)
        context.store.blobs.set_metadata(blob, _metadata(request))
        blob = _found(context, place)
    return Response(headers=wire.stamp(blob.etag, blob.changed))


async def _receive(request: Request, file: Path) -> str:
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


def _blocks(context: KindContext, place: BlobPlace) -> Path:
    words = f"{place.account}\n{place.container}\n{place.name}"
    return context.store.blobs.root / "blocks" / hashlib.sha256(words.encode()).hexdigest()[:32]


def _block_name(block_id: str) -> str:
    return hashlib.sha256(block_id.encode()).hexdigest()[:32]


def _metadata(request: Request) -> dict[str, str]:
    return {
        key.removeprefix("x-ms-meta-"): value for key, value in request.headers.items() if key.startswith("x-ms-meta-")
    }
