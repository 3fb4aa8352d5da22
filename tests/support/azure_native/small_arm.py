"""A TLS server of a few lines that says what a test tells it: for the answers that a healthy sandbox never gives."""

from __future__ import annotations

import json
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import trustme

from amlstack.sandbox.azure_native.target import Target

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Said:
    """One answer to come."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    hangs_up: bool = False


class SmallArm:
    """Answers tokens by itself and everything else from a script; remembers what it was asked."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self._ca = folder / "ca.pem"
        authority.cert_pem.write_to_path(str(self._ca))
        self._secret = folder / "token"
        self._secret.write_text("federated")
        self.asked: list[tuple[str, str, Any]] = []
        self.tokens = 0
        self.expires_in = 3600
        self._script: dict[tuple[str, str], list[Said]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def says(self, method: str, path: str, *answers: Said) -> None:
        """The answers to a call, in order; the last one stays."""
        self._script[method, path] = list(answers)

    def calls(self, method: str) -> list[str]:
        return [path for asked, path, _ in self.asked if asked == method]

    def environ(self) -> dict[str, str]:
        return {
            "AMLSTACK_ARM_ENDPOINT": self.url,
            "AZURE_AUTHORITY_HOST": self.url,
            "AZURE_TENANT_ID": "tenant",
            "AZURE_CLIENT_ID": "client",
            "ARM_SUBSCRIPTION_ID": "sub",
            "AZURE_FEDERATED_TOKEN_FILE": str(self._secret),
            "SSL_CERT_FILE": str(self._ca),
        }

    def target(self) -> Target:
        return Target.of(self.environ(), {})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, method: str, path: str, body: Any) -> Said:
        if path == "/tenant/oauth2/v2.0/token":
            self.tokens += 1
            return Said(200, {"access_token": f"token-{self.tokens}", "expires_in": self.expires_in})
        self.asked.append((method, path, body))
        answers = self._script.get((method, path))
        if not answers:
            return Said(404, {"error": {"code": "ResourceNotFound", "message": f"nothing at {path}"}})
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        arm = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits 40 ms for the client's delayed acknowledgement

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                typed = self.headers.get("Content-Type", "")
                said = arm._answer(
                    self.command, self.path.partition("?")[0], json.loads(raw) if "json" in typed else raw
                )
                if said.hangs_up:
                    self.close_connection = True
                    return
                content = b"" if said.body is None else json.dumps(said.body).encode()
                self.send_response(said.status)
                for name, value in {**said.headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_DELETE = do_POST = answer  # noqa: N815

            def log_message(self, *words: object) -> None:
                return

        return Handler
