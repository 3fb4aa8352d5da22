"""A TLS server on loopback that stands in for Azure: certificate, token file, environment, answers."""

from __future__ import annotations

import functools
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import trustme

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@functools.cache
def _certificate() -> tuple[bytes, ssl.SSLContext]:
    """The authority's certificate, and the context of every server."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return authority.cert_pem.bytes(), context


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no error of the service; anything else is."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Loopback:
    """Gives every request, with its content, to a function until it is closed."""

    def __init__(self, folder: Path, handle: Callable[[BaseHTTPRequestHandler, bytes], None]) -> None:
        authority, context = _certificate()
        self.ca, self.token = folder / "ca.pem", folder / "token"
        self.ca.write_bytes(authority)
        self.token.write_text("federated")

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits 40 ms for the client's delayed acknowledgement

            def log_message(self, *args: object) -> None:
                pass

            def do(self) -> None:
                handle(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = do_HEAD = do  # noqa: N815

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def environ(self) -> dict[str, str]:
        """The variables that make a client of Azure a client of this server."""
        return {
            "AMLSTACK_ARM_ENDPOINT": self.url,
            "AZURE_AUTHORITY_HOST": self.url,
            "AZURE_TENANT_ID": "tenant",
            "AZURE_CLIENT_ID": "client",
            "AZURE_FEDERATED_TOKEN_FILE": str(self.token),
            "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential",
            "REQUESTS_CA_BUNDLE": str(self.ca),
            "NO_PROXY": "127.0.0.1",
        }


def reply(http: BaseHTTPRequestHandler, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
    """Answers with JSON; None for no content."""
    data = b"" if body is None else json.dumps(body).encode()
    http.send_response(status)
    usual = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    for name, value in (usual | dict(headers or {})).items():
        http.send_header(name, value)
    http.end_headers()
    http.wfile.write(data)
