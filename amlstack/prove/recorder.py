"""A relay on this machine that every request of a proof passes: it signs in, forwards, and records what was said.

Engine, providers and clients get the variables of a sandbox (`Endpoint.environ`), which lead here. They sign in here
with a token of this relay, which is worth nothing elsewhere; only the relay signs in to Azure. No token is recorded,
because a request is recorded without its headers, and credentials in bodies and addresses are masked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from amlstack.base.credentials import scrub
from amlstack.sandbox import processes
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.server import daemon
from amlstack.sandbox.service import cloud

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from starlette.requests import Request

_METHODS: Final = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"]
_HOP: Final = frozenset({
    "host", "connection", "content-length", "accept-encoding", "transfer-encoding", "content-encoding", "keep-alive",
    "server", "date",
})  # fmt: skip
_SECRETS: Final = re.compile(r'(?i)("[a-z_]*(?:key|secret|token|password|sas|connectionstring)\d?"\s*:\s*")[^"]{8,}(")')
_SIGNED: Final = re.compile(r"(?i)([?&](?:sig|skoid|sktid|se|st|ske|skt)=|AccountKey=)[^&;\"\s\\]+")
KEPT: Final = frozenset({
    "location", "azure-asyncoperation", "retry-after", "x-ms-error-code", "www-authenticate", "content-type", "etag",
})  # fmt: skip
"""Headers of an answer that clients act on."""
_MOST: Final = 1 << 18
"""Bytes of a body that are recorded at most; code and data are larger, and no answer of the resource manager is."""
_SECONDS: Final = 120
_PLANE: Final = re.compile(
    r"https://([a-z0-9-]+\.(?:api\.azureml\.(?:ms|us|cn)|(?:blob|dfs)\.core\.windows\.net))(?![a-z0-9.-])"
)
"""Hosts of data planes, reached as ``/~HOST`` here; workspaces' take the resource manager's tokens."""
_STORAGE: Final = re.compile(r"/blob/|/~[a-z0-9-]+\.(?:blob|dfs)\.")
"""Paths here that lead to a storage account, which takes tokens of its own."""


def masked(text: str, subscription: str) -> str:
    """A text without credentials and without the subscription's id."""
    text = _SIGNED.sub(r"\1MASKED", _SECRETS.sub(r"\1MASKED\2", text))
    return re.sub(re.escape(subscription), "SUBSCRIPTION", scrub(text), flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProvenAzure:
    """The Azure that a walk reaches, and as whom.

    Attributes:
        upstream: Resource manager, ``https://host``.
        subscription: Id of the subscription; masked in all that is recorded.
        credential: As whom the relay signs in.
        tenant: Id of the directory.
        ca: PEM file of the authorities to trust; those of the environment when not given.
    """

    upstream: str
    subscription: str
    credential: TokenCredential
    tenant: str
    ca: str | None = None


class Recorder:
    """The relay, served by a thread of this process until the context ends.

    Args:
        folder: Gets its certificate, token and ``exchanges.jsonl``.
        target: Where requests go.

    Attributes:
        step: Name of the step that is under way, recorded with each exchange.
    """

    def __init__(self, folder: Path, target: ProvenAzure) -> None:
        import requests  # noqa: PLC0415 - a tenth of a second

        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder, self._upstream, self._subscription = folder, target.upstream, target.subscription
        self._credential = target.credential
        self._bearer = secrets.token_urlsafe(32)
        self._session = requests.Session()
        self._session.auth = lambda request: request
        self._session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=32))
        if target.ca is not None:
            self._session.verify, self._session.trust_env = target.ca, False
        self._log = (folder / "exchanges.jsonl").open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self.step = ""
        self._tenant = target.tenant

    def __enter__(self) -> daemon.Endpoint:
        """Serve; the endpoint whose variables lead clients here."""
        import uvicorn  # noqa: PLC0415 - of a server alone

        pem = daemon.prepare(self._folder)
        bundle, token = daemon.bundle(self._folder), self._folder / "token"
        secret = entra.secret_file(token)
        self._secret = secret
        # The protocol is named because asyncio sets TCP_NODELAY only then.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        port = listener.getsockname()[1]
        self.base = f"https://127.0.0.1:{port}"
        config = uvicorn.Config(self._app(), ssl_certfile=str(pem), log_level="critical", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # of no use to a thread
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(listener)), daemon=True)
        self._thread.start()
        pid = os.getpid()
        return daemon.Endpoint(
            self._folder, self.base, pid, processes.started(pid) or 0, self._folder / "ca.pem", bundle, token,
            self._tenant, entra.CLIENT, self._subscription,
        )  # fmt: skip

    def __exit__(self, *ended: object) -> None:
        """End the server, and close connections and the record."""
        self._server.should_exit = True
        self._thread.join(10)
        self._session.close()
        self._log.close()

    async def _serve(self, listener: socket.socket) -> None:
        await self._server.serve(sockets=[listener])
        # Clients keep idle connections, and do not answer when TLS would end one.
        for connection in list(self._server.server_state.connections):
            if (transport := getattr(connection, "transport", None)) is not None:
                transport.abort()
        await asyncio.sleep(0)

    def _app(self) -> Starlette:
        async def handle(request: Request) -> Response:
            path = request.scope["raw_path"].decode("latin-1").partition("?")[0]
            if path.endswith("/oauth2/v2.0/token"):
                return await self._signed_in(request)
            if (known := cloud.answer(self.base, path, request.query_params)) is not None:
                return JSONResponse(known)
            given = request.headers.get("authorization", "")
            signed = "sig=" in request.url.query
            if not signed and given != f"Bearer {self._bearer}":
                return JSONResponse({"error": {"code": "AuthenticationFailed", "message": "sign in here"}}, 401)
            body = await request.body()
            query = request.scope["query_string"].decode("latin-1")
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
            target = f"{path}?{query}" if query else path
            return await run_in_threadpool(self._forward, request.method, target, headers, body)

        return Starlette(routes=[Route("/{path:path}", handle, methods=_METHODS)])

    async def _signed_in(self, request: Request) -> Response:
        form = (await request.body()).decode()
        if self._secret not in form:
            return JSONResponse({"error": "invalid_client", "error_description": "another token"}, 401)
        return JSONResponse({"token_type": "Bearer", "expires_in": 86000, "access_token": self._bearer})

    def _forward(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        import requests  # noqa: PLC0415 - see above

        text = _is_text(headers.get("content-type", ""))
        sent = self._outwards(body.decode()).encode() if text else body
        headers = {**headers, "Accept-Encoding": "identity"}
        for name in ("authorization", "x-azureml-token"):
            if name in headers:
                token = self._credential.get_token(f"{_audience(target, self._upstream)}/.default").token
                headers[name] = f"Bearer {token}" if name == "authorization" else token
        began, url = time.time(), self._outwards(f"{self.base}{target}")
        try:
            answer = self._session.request(
                method, url, data=sent or None, headers=headers, timeout=_SECONDS, allow_redirects=False
            )
        except requests.RequestException as error:
            self._record((method, target, sent if text else b""), 0, {}, type(error).__name__.encode(), began)
            return JSONResponse({"error": {"code": "BadGateway", "message": "the service does not answer"}}, 502)
        content = answer.content
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
        textual = _is_text(kept.get("Content-Type", kept.get("content-type", "")))
        self._record(
            (method, target, sent if text else b""), answer.status_code, kept, content if textual else b"", began
        )
        kept = {name: self._inwards(value) for name, value in kept.items()}
        if textual:
            content = self._inwards(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        return Response(content, answer.status_code, kept)

    def _inwards(self, text: str) -> str:
        """A text with addresses that lead here in the place of the service's."""
        return _PLANE.sub(lambda found: f"{self.base}/~{found[1]}", text.replace(self._upstream, self.base))

    def _outwards(self, text: str) -> str:
        """A text with the service's own addresses."""
        return text.replace(f"{self.base}/~", "https://").replace(self.base, self._upstream)

    def _record(
        self, asked: tuple[str, str, bytes], status: int, headers: dict[str, str], got: bytes, began: float
    ) -> None:
        method, target, sent = asked
        row = {
            "step": self.step,
            "method": method,
            "path": target,
            "status": status,
            "headers": {name.lower(): value for name, value in headers.items() if name.lower() in KEPT},
            "request": _body(sent),
            "body": _body(got),
            "at": round(began, 3),
        }
        line = masked(json.dumps(row).replace(self._upstream, "https://AZURE"), self._subscription)
        with self._lock, contextlib.suppress(ValueError):  # closed: an exchange that outlives the walk
            self._log.write(line + "\n")
            self._log.flush()


def _audience(target: str, upstream: str) -> str:
    """Whom the token of a request is for."""
    return "https://storage.azure.com" if _STORAGE.match(target) else upstream


def _is_text(kind: str) -> bool:
    return "json" in kind or kind.startswith("text/")


def _body(content: bytes) -> Any:
    if not content or len(content) > _MOST:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")
