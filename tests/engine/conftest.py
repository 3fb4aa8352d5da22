"""A machine without an engine, and a place that releases are fetched from."""

from __future__ import annotations

import http.server
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tests.support.engine.engine_machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.engine.engine_machine import Answer, Serve


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens: refused at once
        yield Machine(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a release server on loopback; a file's answer is its bytes, or status, headers and body."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def start(files: dict[str, Answer | bytes]) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = files.get(self.path.lstrip("/"), (404, {}, b""))
                status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
