"""A TLS server on loopback that answers as Azure does when asked for sizes: SKUs in pages, Azure ML's own list."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import trustme

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Azure:
    """What it answers, and what it was asked."""

    skus: list[dict[str, Any]]
    listed: list[dict[str, Any]]
    asked: list[str] = field(default_factory=list)
    url: str = ""
    refuses: bool = False
    page: int = 2

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        if path.endswith("/oauth2/v2.0/token"):
            return 200, {"access_token": "t", "token_type": "Bearer", "expires_in": 3600}
        if self.refuses:
            return 403, {"error": {"code": "AuthorizationFailed", "message": "The client may not read SKUs"}}
        self.asked.append(f"{path}?{query.get('$filter', [''])[0]}")
        if path.endswith("/Microsoft.Compute/skus"):
            start = int(query.get("$skiptoken", ["0"])[0])
            body: dict[str, Any] = {"value": self.skus[start : start + self.page]}
            if start + self.page < len(self.skus):
                body["nextLink"] = f"{self.url}{path}?api-version=2021-07-01&$skiptoken={start + self.page}"
            return 200, body
        if path.endswith("/vmSizes"):
            return 200, {"value": self.listed}
        return 404, {"error": {"code": "NotFound", "message": path}}


@contextmanager
def served(azure: Azure, folder: Path) -> Iterator[dict[str, str]]:
    """Serves until the context ends; yields the environment of a client."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def reply(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            if not parts.path.endswith("/token") and self.headers.get("Authorization") != "Bearer t":
                status, body = 401, {"error": {"code": "Unauthorized", "message": "no token"}}
            else:
                status, body = azure.answer(parts.path, parse_qs(parts.query))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = reply  # noqa: N815

    authority = trustme.CA()
    context = SSLContext(PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    (folder / "token").write_text("assertion")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    azure.url = f"https://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {
            "AMLSTACK_ARM_ENDPOINT": azure.url,
            "AZURE_AUTHORITY_HOST": azure.url,
            "AZURE_TENANT_ID": "tenant",
            "AZURE_CLIENT_ID": "client",
            "AZURE_FEDERATED_TOKEN_FILE": str(folder / "token"),
            "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential",
            "REQUESTS_CA_BUNDLE": str(folder / "ca.pem"),
            "NO_PROXY": "127.0.0.1",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
