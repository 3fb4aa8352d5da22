"""The one endpoint: Entra ID, the resource manager, blobs, run history and discovery behind one TLS port."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from amlstack.base.files import sentence
from amlstack.sandbox.kinds.machine_learning.job_answers import RUN, own_output
from amlstack.sandbox.planes import blobs, run_history, vault_keys
from amlstack.sandbox.planes.mlflow import app
from amlstack.sandbox.protocol import addresses, entra, requests
from amlstack.sandbox.protocol.refusals import Refused, not_emulated
from amlstack.sandbox.service import cloud, manager
from amlstack.sandbox.store.database import StateError

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from amlstack.sandbox.protocol.kind import KindContext, Reply

# azure-ai-ml makes the address of a datastore's blobs of `accountName` and the cloud's suffix
# (`https://<accountName>.blob.core.windows.net`), and takes no other. A name below which this machine answers would
# need a resolver of names; so the client alone gets `127.0.0.1:PORT/blob/<account>` for the account of a datastore that
# lies here, and what it sends back is read again.
_CLIENT = re.compile(r"\bazure-ai-ml/", re.IGNORECASE)
_DATASTORES = re.compile(r"/workspaces/[^/]+/datastores(/[^/]+)?/?", re.IGNORECASE)
_JOBS = re.compile(r"/workspaces/[^/]+/jobs(/[^/]+)?/?", re.IGNORECASE)
_WHOLE = re.compile(r"/subscriptions/[^/]+/providers/[^/]+/[^/]+/?")
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+/blob/(?P<account>[^/]+)")


def _is_led(request: Request) -> bool:
    """True where a client reaches Azure's own host names here (`Endpoint.azure_names`), and needs no other ones."""
    return request.headers.get("host", "").partition(":")[0] == addresses.NAME


def _asks_for(places: re.Pattern[str], path: str, user_agent: str | None) -> bool:
    """True where an answer at this path is read by that client."""
    return bool(user_agent and _CLIENT.search(user_agent) and places.search(path))


def _without_own_outputs(body: Any) -> Any:
    """Jobs without the output of their own files: that client would sign addresses in it with a SAS as if with a key.

    It downloads what lies there without being told.
    """
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("value"), list):
        return {**body, "value": [_without_own_outputs(each) for each in body["value"]]}
    properties = body.get("properties") or {}
    own, kept = own_output(str(body.get("name"))), properties.get("outputs") or {}
    if kept.get(RUN, {}).get("uri") != own["uri"]:
        return body
    return {**body, "properties": {**properties, "outputs": {key: kept[key] for key in kept if key != RUN}}}


def _with_addresses(base: str, body: Any, accounts: Collection[str]) -> Any:
    """An answer with the addresses of the accounts that lie here."""
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("value"), list):
        return {**body, "value": [_with_addresses(base, each, accounts) for each in body["value"]]}
    properties = body.get("properties")
    if not isinstance(properties, dict) or properties.get("accountName") not in accounts:
        return body
    name = f"{base.removeprefix('https://')}/blob/{properties['accountName']}"
    return {**body, "properties": {**properties, "accountName": name}}


def _without_addresses(body: Any) -> Any:
    """A body of that client with the plain names of its accounts."""
    properties = body.get("properties") if isinstance(body, dict) else None
    if not isinstance(properties, dict):
        return body
    found = _ADDRESS.fullmatch(str(properties.get("accountName")))
    return body if found is None else {**body, "properties": {**properties, "accountName": found["account"]}}


class GrowingFile(FileResponse):
    """Sends as many bytes as its headers announce.

    Starlette announces the length that the file has at first and then sends it to its end. What is written meanwhile
    would follow the announced bytes, and a client takes that for a broken download.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a range of it likewise."""
        left = 0

        async def within(message: Message) -> None:
            nonlocal left
            if message["type"] == "http.response.start":
                left = int(dict(message["headers"])[b"content-length"])
            elif message["type"] == "http.response.body":
                body = message.get("body", b"")[:left]
                left -= len(body)
                message = {**message, "body": body}
            await send(message)

        await super().__call__(scope, receive, within)


METHODS = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"]
DATA_PLANES = ("api", "history", "experimentation", "modelmanagement", "mlflow")
ENTRA_ROUTE = "/oauth2/v2.0/token"


def make(context: KindContext, federated: str) -> Starlette:
    """The ASGI application.

    Args:
        context: State and address.
        federated: The text of the token file that opens this sandbox.
    """

    async def handle(request: Request) -> Response:
        # Starlette's path is decoded already; a blob's name may hold an encoded slash or question mark.
        raw = request.scope["raw_path"].decode("latin-1").partition("?")[0]
        raw = addresses.path_at_host(request.headers.get("host", ""), raw)
        try:
            if raw.startswith(blobs.PREFIX):
                return await blobs.answer(context, request, raw)
            return await _answer(context, federated, request, requests.addresses_read(raw))
        except Refused as refused:
            answer = refusal(request, raw, refused)
            if refused.status == 401 and raw.startswith(vault_keys.PREFIX):
                answer.headers["WWW-Authenticate"] = vault_keys.CHALLENGE
            elif refused.status == 401:
                answer.headers["WWW-Authenticate"] = f'Bearer authorization_uri="{context.base}/{entra.TENANT}"'
            return answer
        except (StateError, OSError) as error:
            told = str(error) if isinstance(error, StateError) else sentence(error)
            if not told:
                raise
            # Of no use to ask again before somebody has looked at the disk.
            return refusal(request, raw, Refused(507, "InsufficientStorage", told))
        except ClientDisconnect:  # or it was cut off: nothing was stored, and nobody reads this
            return Response(status_code=400)

    def broken(request: Request, error: Exception) -> Response:
        # The traceback goes to the log: Starlette raises it again after this answer.
        text = f"{request.method} {request.url.path}: {type(error).__name__}. The sandbox's serve.log tells more."
        return JSONResponse({"error": {"code": "InternalServerError", "message": text}}, 500)

    def unsupported(request: Request, error: Exception) -> Response:
        del error
        code, text = "MethodNotAllowed", f"The requested resource does not support the HTTP method '{request.method}'."
        path = request.url.path
        answer = refusal(
            request, path, Refused(405, "UnsupportedHttpVerb" if path.startswith(blobs.PREFIX) else code, text)
        )
        answer.headers["Allow"] = ", ".join(METHODS)
        return answer

    def unnamed(request: Request, error: Exception) -> Response:
        # The one route takes every path but those with a line break.
        del error
        text = "The path of the request holds a control character."
        return refusal(request, request.url.path, Refused(400, "InvalidUri", text))

    handlers = {Exception: broken, 404: unnamed, 405: unsupported}
    return Starlette(routes=[Route("/{path:path}", handle, methods=METHODS)], exception_handlers=handlers)


def refusal(request: Request, raw: str, refused: Refused) -> Response:
    """A refusal in the form of the service that a path leads to: XML of the blob service, Entra ID's, else ARM's."""
    if raw.startswith(blobs.PREFIX):
        return blobs.refusal(request, raw, refused)
    headers = {"x-ms-request-id": str(uuid.uuid4())}
    if raw.endswith(ENTRA_ROUTE):
        description = f"AADSTS90023: {refused.message}"
        return JSONResponse({"error": "invalid_request", "error_description": description}, refused.status, headers)
    if not refused.code:
        return Response(status_code=refused.status, headers=headers)
    return JSONResponse(refused.body, refused.status, headers, manager.JSON)


async def _answer(context: KindContext, federated: str, request: Request, path: str) -> Response:
    if (free := await _without_token(context, federated, request, path)) is not None:
        return free
    if path.startswith(vault_keys.PREFIX):
        body = requests.parse(await requests.read(request))
        return _reply(request, vault_keys.answer(context, request.method, path, requests.authorization(request), body))
    audiences = entra.resource_manager(context.base)
    if not path.lower().startswith((*cloud.ABOVE, "/providers/")):  # the data plane takes either
        audiences = (*audiences, *entra.machine_learning(context.base))
    entra.check_bearer(context.key, requests.authorization(request), audiences)
    body = requests.parse(await requests.read(request))
    if (download := run_history.answer_download(context, request.method, path, body)) is not None:
        return _reply(request, download)
    if path.startswith("/mlflow/"):
        return _reply(request, app.answer(context, request.method, path, request.query_params, body))
    if path.startswith("/history/"):
        return _reply(request, run_history.answer(context, request.method, path, body))
    version = request.query_params.get("api-version", "")
    if (registry := cloud.answer_of_a_registry(context, request.method, path, version)) is not None:
        return _reply(request, registry)
    if request.method == "GET" and (listed := cloud.above(path.rstrip("/"), version)) is not None:
        return _reply(request, listed)
    if path.lower().startswith("/subscriptions/"):
        if request.method == "PUT":
            requests.check_identity(context, path.rstrip("/"), body, request.headers.get(requests.HEADER))
        agent = request.headers.get("user-agent")
        addressed = not _is_led(request) and _asks_for(_DATASTORES, path, agent)
        body = _without_addresses(body) if addressed else body
        query = dict(request.query_params)
        reply = manager.answer(context, request.method, path.rstrip("/"), query, body, headers=request.headers)
        if addressed:
            accounts = {row.name for row in context.store.resources.of_type(blobs.STORAGE)}
            reply = replace(reply, body=_with_addresses(context.base, reply.body, accounts))
        own = _asks_for(_JOBS, path, agent)
        return _reply(request, replace(reply, body=_without_own_outputs(reply.body)) if own else reply)
    raise not_emulated(f"{request.method} {path}")


async def _without_token(context: KindContext, federated: str, request: Request, path: str) -> Response | None:
    """Answer what a client asks before it has a token, or cannot send one with; None for everything else."""
    if path.endswith(ENTRA_ROUTE) and request.method == "POST":
        form = requests.form(await requests.read(request))
        if form is None:
            text = "AADSTS900144: The request body must be form fields in ASCII, percent-encoded where they are not."
            return JSONResponse({"error": "invalid_request", "error_description": text}, 400)
        tenant = path.removesuffix(ENTRA_ROUTE).strip("/")
        status, answer = entra.token_answer(context.key, federated, tenant, form)
        return JSONResponse(answer, status)
    if request.method != "GET":
        return None
    if path == "/healthz":
        return JSONResponse({"status": "ready"})
    if path.startswith("/artifacts/"):
        return GrowingFile(run_history.artifact(context, path, request.query_params), media_type="text/plain")
    if path.startswith("/discovery"):
        # azure-ai-ml asks without a token, and learns nothing but the address that it has just called.
        return JSONResponse(dict.fromkeys(DATA_PLANES, context.base))
    base = addresses.by_name(context.base) if _is_led(request) else context.base
    document = cloud.answer(base, path, request.query_params)
    return None if document is None else JSONResponse(document)


def _reply(request: Request, reply: Reply) -> Response:
    headers = {**reply.headers, "x-ms-request-id": str(uuid.uuid4())}
    if client := request.headers.get("x-ms-client-request-id"):
        headers["x-ms-client-request-id"] = client
    path = request.url.path.lower()
    # Storage writes another type than the others; the list of a whole subscription is the resource manager's own.
    whole = request.method == "GET" and _WHOLE.fullmatch(path)
    storage = "/providers/microsoft.storage/" in path and not whole
    if reply.body is None:
        content = "null" if "Content-Type" in headers else None
        return Response(content, reply.status, headers, media_type="text/plain" if storage else None)
    return JSONResponse(reply.body, reply.status, headers, "application/json" if storage else manager.JSON)
