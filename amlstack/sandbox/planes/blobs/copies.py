"""Put Blob From URL and Copy Blob: a new blob with the bytes of another one, which never pass through the client.

The source of the first is authorized on its own: by the SAS in its URL, or by a bearer token in
``x-ms-copy-source-authorization``. Copy Blob takes one of the same account with the request's own token too; Azure may
take its time with it, and here it is done when it is answered.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from amlstack.sandbox.files import registered_code, sas
from amlstack.sandbox.planes.blobs.wire import MOST_BYTES
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol import requests as bodies
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request

    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.store import Blob


def fetch(context: KindContext, request: Request, file: Path, account: str | None = None) -> tuple[Blob, str]:
    """Writes the bytes of a request's source into a file.

    Args:
        context: State.
        request: With ``x-ms-copy-source``.
        file: A new one.
        account: Of Copy Blob: whose blobs the request's own token opens.

    Returns:
        The source, and the MD5 of its bytes in base64.

    Raises:
        Refused: 401 or 403 for a source that may not be read, 404 for one that is not there, 400 for another content
            than ``x-ms-source-content-md5`` and 413 for too much.
    """
    url = request.headers["x-ms-copy-source"]
    place = registered_code.locate(url.partition("?")[0])
    if place is None or not place[2]:
        message = "The source URL of the copy is no blob of this sandbox."
        raise Refused(400, "InvalidHeaderValue", message)
    try:
        if place[0] != account:
            _authorize(context, request, place, dict(parse_qsl(urlsplit(url).query)))
    except Refused as refused:
        raise Refused(refused.status, "CannotVerifyCopySource", refused.message) from None
    blob = context.store.blobs.get(*place)
    if blob is None:
        # As Azurite 3 answers within an account, where nobody had to be asked.
        code = "BlobNotFound" if place[0] == account else "CannotVerifyCopySource"
        raise Refused(404, code, "The specified blob does not exist.")
    if blob.size > MOST_BYTES:
        raise Refused(413, "RequestBodyTooLarge", "The source is larger than Put Blob From URL takes.")
    with blob.path.open("rb") as source:
        md5 = base64.b64encode(
            hashlib.file_digest(source, lambda: hashlib.md5(usedforsecurity=False)).digest()
        ).decode()
    if request.headers.get("x-ms-source-content-md5", md5) != md5:
        message = "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
        raise Refused(400, "Md5Mismatch", message)
    shutil.copyfile(blob.path, file)
    return blob, md5


def _authorize(context: KindContext, request: Request, place: tuple[str, str, str], query: dict[str, str]) -> None:
    account, container, _ = place
    if token := bodies.authorization(request, "x-ms-copy-source-authorization"):
        entra.check_bearer(context.key, token, entra.storage(account))
    elif "sig" in query:
        sas.check(context.key, query, account, container, "r")
    else:
        raise Refused(404, "CannotVerifyCopySource", "The specified resource does not exist.")
