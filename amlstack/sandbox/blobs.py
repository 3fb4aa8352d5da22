"""The blob data plane, as azure-storage-blob speaks it: ``/blob/<account>/<container>/<name>`` on the one door."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from starlette.responses import FileResponse, Response

from amlstack.sandbox import identity, sas
from amlstack.sandbox.intake import body as bodies
from amlstack.sandbox.refusals import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request

    from amlstack.sandbox.kinds.base import Context
    from amlstack.sandbox.store import Blob

NEEDS = {"GET": "r", "HEAD": "r", "PUT": "cw", "DELETE": "d"}
STORAGE = "Microsoft.Storage/storageAccounts"


@dataclass(frozen=True, slots=True)
class Place:
    """Which blob, or which container when ``name`` is empty."""

    account: str
    container: str
    name: str


async def answer(context: Context, request: Request, raw: str) -> Response:
    """Answers one call of the data plane; refusals are XML with ``x-ms-error-code``, as the SDKs expect."""
    try:
        words = [unquote(word) for word in raw.removeprefix("/blob/").split("/")]
        place = Place(words[0], words[1] if len(words) > 1 else "", "/".join(words[2:]))
        _authorize(context, request, place)
        return await _route(context, request, place)
    except Refused as refused:
        return refusal(refused)


def refusal(refused: Refused) -> Response:
    """A refusal in the blob service's form."""
    text = (
        f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{refused.code}</Code>'
        f"<Message>{escape(refused.message)}</Message></Error>"
    )
    headers = {"x-ms-error-code": refused.code, "x-ms-version": sas.VERSION}
    return Response(text, refused.status, headers, media_type="application/xml")


def _authorize(context: Context, request: Request, place: Place) -> None:
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
        identity.check_bearer(context.key, authorization)
    elif "sig" in request.query_params:
        listing = request.query_params.get("comp") == "list"
        needs = "l" if listing else NEEDS.get(request.method, "")
        sas.check(context.key, request.query_params, place.account, place.container, needs)
    else:
        message = (
            "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
        )
        raise Refused(401, "NoAuthenticationInformation", message)


async def _route(context: Context, request: Request, place: Place) -> Response:
    method, query = request.method, request.query_params
    comp = query.get("comp", "")
    if not place.name:
        if query.get("restype") == "container" and method == "GET" and comp == "list":
            return _list(context, request, place)
        if query.get("restype") == "container" and not comp and method in {"PUT", "GET", "HEAD"}:
            # Containers are implicit: they hold what was put into them.
            return Response(status_code=201 if method == "PUT" else 200, headers=_common())
        raise _unknown(f"{method} of a container with comp='{comp}'")
    if method == "PUT":
        writers = {"": _put_blob, "block": _put_block, "blocklist": _put_blocks, "metadata": _put_metadata}
        if comp not in writers:
            raise _unknown(f"PUT of a blob with comp='{comp}'")
        return await writers[comp](context, request, place)
    if comp:
        raise _unknown(f"{method} of a blob with comp='{comp}'")
    blob = _found(context, place)
    if method == "HEAD":
        return Response(headers={**_describe(blob), "content-length": str(blob.size)})
    if method == "GET":
        return _download(request, blob)
    if method == "DELETE":
        context.store.blobs.delete(blob)
        return Response(status_code=202, headers=_common())
    raise _unknown(f"{method} of a blob")


def _unknown(what: str) -> Refused:
    return Refused(501, "SandboxNotEmulated", f"The sandbox's blob service does not emulate {what}.")


def _found(context: Context, place: Place) -> Blob:
    blob = context.store.blobs.get(place.account, place.container, place.name)
    if blob is None:
        raise Refused(404, "BlobNotFound", "The specified blob does not exist.")
    return blob


async def _put_blob(context: Context, request: Request, place: Place) -> Response:
    kind = request.headers.get("x-ms-blob-type", "")
    if kind != "BlockBlob" or "x-ms-copy-source" in request.headers:
        raise _unknown(f"x-ms-blob-type '{kind}' or a copy, only BlockBlob uploads")
    _check_conditions(context, request, place)
    file = context.store.blobs.fresh()
    md5 = await _receive(request, file)
    return _made(context, request, place, file, md5)


async def _put_block(context: Context, request: Request, place: Place) -> Response:
    folder = _blocks(context, place)
    folder.mkdir(parents=True, exist_ok=True)
    md5 = await _receive(request, folder / _block_name(request.query_params["blockid"]))
    return Response(status_code=201, headers={**_common(), "content-md5": md5})


async def _put_blocks(context: Context, request: Request, place: Place) -> Response:
    _check_conditions(context, request, place)
    folder = _blocks(context, place)
    text = await request.body()
    if b"<!" in text:  # a block list has neither document type nor entities
        raise Refused(400, "InvalidXmlDocument", "XML specified is not syntactically valid.")
    file = context.store.blobs.fresh()
    with file.open("wb") as out:
        for entry in ET.fromstring(text):  # noqa: S314 - without a document type there is nothing to expand
            block = folder / _block_name(entry.text or "")
            if not block.exists():
                raise Refused(400, "InvalidBlockList", "The specified block list is invalid.")
            out.write(block.read_bytes())
    for block in folder.iterdir() if folder.exists() else ():
        block.unlink()
    return _made(context, request, place, file, None)


def _made(context: Context, request: Request, place: Place, file: Path, md5: str | None) -> Response:
    blob = context.store.blobs.put(
        place.account,
        place.container,
        place.name,
        file,
        md5=request.headers.get("x-ms-blob-content-md5", md5),
        type=request.headers.get("x-ms-blob-content-type", "application/octet-stream"),
        metadata=_metadata(request),
    )
    headers = {**_common(), "etag": f'"{blob.etag}"', "last-modified": _date(blob.changed)}
    return Response(status_code=201, headers={**headers, "x-ms-request-server-encrypted": "true"})


async def _put_metadata(context: Context, request: Request, place: Place) -> Response:
    context.store.blobs.set_metadata(_found(context, place), _metadata(request))
    blob = _found(context, place)
    return Response(headers={**_common(), "etag": f'"{blob.etag}"', "last-modified": _date(blob.changed)})


def _check_conditions(context: Context, request: Request, place: Place) -> None:
    if request.headers.get("if-none-match") == "*":
        blob = context.store.blobs.get(place.account, place.container, place.name)
        if blob is not None:
            raise Refused(409, "BlobAlreadyExists", "The specified blob already exists.")


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


def _blocks(context: Context, place: Place) -> Path:
    words = f"{place.account}\n{place.container}\n{place.name}"
    return context.store.blobs.root / "blocks" / hashlib.sha256(words.encode()).hexdigest()[:32]


def _block_name(block_id: str) -> str:
    return hashlib.sha256(block_id.encode()).hexdigest()[:32]


def _metadata(request: Request) -> dict[str, str]:
    return {
        key.removeprefix("x-ms-meta-"): value for key, value in request.headers.items() if key.startswith("x-ms-meta-")
    }


def _download(request: Request, blob: Blob) -> Response:
    wanted = request.headers.get("x-ms-range") or request.headers.get("range")
    headers = _describe(blob)
    if not wanted:
        return FileResponse(blob.path, headers=headers, media_type=blob.type)
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
    if found is None or int(found[1]) >= blob.size:
        raise Refused(416, "InvalidRange", "The range specified is invalid for the current size of the resource.")
    first = int(found[1])
    last = min(int(found[2] or blob.size), blob.size - 1)
    with blob.path.open("rb") as stream:
        stream.seek(first)
        data = stream.read(last - first + 1)
    # A range has the whole blob's digest under another name.
    headers["x-ms-blob-content-md5"] = headers.pop("content-md5", "")
    headers["content-range"] = f"bytes {first}-{last}/{blob.size}"
    return Response(data, 206, headers, media_type=blob.type)


def _list(context: Context, request: Request, place: Place) -> Response:
    prefix, delimiter = request.query_params.get("prefix", ""), request.query_params.get("delimiter", "")
    entries, folders = [], dict[str, None]()
    for blob in context.store.blobs.under(place.account, place.container, prefix):
        head, cut, _ = blob.name[len(prefix) :].partition(delimiter) if delimiter else (blob.name, "", "")
        if cut:
            folders[prefix + head + cut] = None
            continue
        md5 = f"<Content-MD5>{blob.md5}</Content-MD5>" if blob.md5 else ""
        entries.append(
            f"<Blob><Name>{escape(blob.name)}</Name><Properties><Last-Modified>{_date(blob.changed)}</Last-Modified>"
            f"<Etag>{blob.etag}</Etag><Content-Length>{blob.size}</Content-Length>"
            f"<Content-Type>{escape(blob.type)}</Content-Type>{md5}<BlobType>BlockBlob</BlobType></Properties></Blob>"
        )
    entries += [f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>" for folder in folders]
    text = (
        f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="{escape(place.container)}">'
        f"<Prefix>{escape(prefix)}</Prefix><Blobs>{''.join(entries)}</Blobs><NextMarker/></EnumerationResults>"
    )
    return Response(text, headers=_common(), media_type="application/xml")


def _common() -> dict[str, str]:
    return {"x-ms-version": sas.VERSION}


def _describe(blob: Blob) -> dict[str, str]:
    return {
        **_common(),
        "etag": f'"{blob.etag}"',
        "last-modified": _date(blob.changed),
        "accept-ranges": "bytes",
        "content-type": blob.type,
        "x-ms-blob-type": "BlockBlob",
        **({"content-md5": blob.md5} if blob.md5 else {}),
        **{f"x-ms-meta-{key}": value for key, value in blob.metadata.items()},
    }


def _date(at: float) -> str:
    return email.utils.formatdate(at, usegmt=True)
