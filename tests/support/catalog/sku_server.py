"""A TLS server on loopback that answers as Azure does when asked for sizes: SKUs in pages, Azure ML's own list."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.support.loopback import Loopback, reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path


@dataclass
class Azure:
    """The rows that it answers with, and the questions that it was asked."""

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

    def handle(http: BaseHTTPRequestHandler, _: bytes) -> None:
        parts = urlsplit(http.path)
        if not parts.path.endswith("/token") and http.headers.get("Authorization") != "Bearer t":
            reply(http, 401, {"error": {"code": "Unauthorized", "message": "no token"}})
        else:
            reply(http, *azure.answer(parts.path, parse_qs(parts.query)))

    server = Loopback(folder, handle)
    azure.url = server.url
    try:
        yield server.environ()
    finally:
        server.close()
