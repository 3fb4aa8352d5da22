"""The fake ARM without sockets: a request is handed to it in the thread that sends it."""

from __future__ import annotations

import io
from http.client import RemoteDisconnected
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm


class _Exchange:
    """The part of an HTTP handler that `FakeArm.handle` and `reply` use."""

    close_connection = False

    def __init__(self, request: requests.PreparedRequest) -> None:
        self.command, self.path, self.headers = request.method, request.path_url, request.headers
        self.wfile = io.BytesIO()
        self.answered: dict[str, str] = {}
        self.connection = self

    def send_response(self, status: int) -> None:
        self.status = status

    def send_header(self, name: str, value: str) -> None:
        self.answered[name] = value

    def end_headers(self) -> None:
        """They are kept in a mapping."""

    def shutdown(self, _how: int) -> None:
        """`FakeArm` sets `close_connection` too."""


class NearArm(HTTPAdapter):  # type: ignore[misc]  # requests ships no types
    """An adapter for the address of a fake ARM."""

    def __init__(self, arm: FakeArm) -> None:
        super().__init__()
        self.arm = arm

    def send(self, request: requests.PreparedRequest, *words: Any, **more: Any) -> requests.Response:
        if self.arm.closed:
            return super().send(request, *words, **more)
        body: Any = request.body or b""
        sent = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else body.read()
        exchange: Any = _Exchange(request)
        self.arm.handle(exchange, sent)
        if exchange.close_connection:
            gone = RemoteDisconnected("Remote end closed connection without response")
            raise requests.ConnectionError(ProtocolError("Connection aborted.", gone), request=request)
        exchange.wfile.seek(0)
        raw = HTTPResponse(exchange.wfile, exchange.answered, exchange.status, preload_content=False)
        return self.build_response(request, raw)
