"""HTTP/1.1 as the sandbox takes it: what is no request, or comes too slowly, is refused in the services' own forms.

uvicorn alone waits for ever for the rest of a request. Here a head has a bounded time from its first byte on, and each
further such time has to bring a part of the body; while the service itself does not read, nothing is counted.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from amlstack.sandbox.arm.cloud import azure_hosts
from amlstack.sandbox.arm.refusals import Refused

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from starlette.responses import Response

VARIABLE: Final = "AMLSTACK_SANDBOX_REQUEST_SECONDS"
"""Seconds for a head, and for each part of a body, where 60 are not wanted; read when the server starts."""
SECONDS: Final = 60.0
"""As long as a client may take to shake hands over TLS (asyncio's own bound)."""
LEAST_BYTES: Final = 4096
"""Of a body in that time, unless its end comes."""
HEAD_BYTES: Final = 1 << 16
"""The most of a request's first line and headers."""
DISCARDED: Final = 16 << 20
"""Bytes that are read on after a refusal, and then no more."""
LINGER_SECONDS: Final = 2.0
"""As long as a refused connection stays for its client to read."""


def seconds() -> float:
    """The bound that the environment names, else `SECONDS`: for what is no number of seconds, too."""
    try:
        asked = float(os.environ.get(VARIABLE) or SECONDS)
    except ValueError:
        return SECONDS
    return asked if 0 < asked < math.inf else SECONDS


def protocol(refusal: Callable[[str, Refused], Response], bound: float) -> type[H11Protocol]:
    """The class that uvicorn makes of each connection.

    Args:
        refusal: Makes the answer, by the path that was asked for (encoded; empty where none was read).
        bound: Seconds; see the module.
    """
    return type("BoundedProtocol", (_Bounded,), {"refusal": staticmethod(refusal), "bound": bound})


class _Bounded(H11Protocol):
    refusal: Callable[[str, Refused], Response]
    bound: float
    _timer: asyncio.TimerHandle | None = None
    _of_body = False
    _came = 0
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._came += len(data)
        if not self._refused:
            super().data_received(data)
            self._look()
        elif self._came > DISCARDED:
            self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Called where h11 could make nothing of what came."""
        if self._between_requests() and len(self.conn.trailing_data[0]) > HEAD_BYTES:
            message = f"The head of the request is larger than {HEAD_BYTES} bytes."
            self._refuse(Refused(431, "RequestHeaderFieldsTooLarge", message))
        else:
            self._refuse(Refused(400, "BadRequest", f"{msg} It is no HTTP/1.1, or its body is not what its head says."))

    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        """Starts the clock for what has begun to come, stops it where nothing is awaited."""
        state = self.conn.their_state
        body = state is h11.SEND_BODY
        head = state is h11.IDLE and (self.cycle is None or bool(self.conn.trailing_data[0]))
        if self._refused or self.transport.is_closing():
            return
        if not (body or head):
            self._rest()
        elif self._timer is None or body is not self._of_body:
            self._start(body=body)

    def _start(self, *, body: bool) -> None:
        self._rest()
        self._of_body, self._came = body, 0
        self._timer = self.loop.call_later(self.bound, self._late)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if self._of_body and (self.flow.read_paused or self._came >= LEAST_BYTES):
            self._start(body=True)
            return
        what = f"not even {LEAST_BYTES} bytes of its body came" if self._of_body else "its head did not come"
        self._refuse(Refused(408, "RequestTimeout", f"The request was given up: {what} within {self.bound:g} s."))

    def _path(self) -> str:
        host = next((value for name, value in self.headers if name == b"host"), b"").decode("latin-1")
        return azure_hosts.path(host, self.scope["raw_path"].decode("ascii"))

    def _refuse(self, refused: Refused) -> None:
        """Answers where nothing was answered yet, and ends the connection; what works on the request learns of it."""
        self._rest()
        between = self._between_requests()
        if not between:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        answer = self.refusal("" if between else self._path(), refused)
        body = b"" if not between and self.scope["method"] == "HEAD" else bytes(answer.body)
        start = h11.Response(status_code=answer.status_code, headers=[*answer.raw_headers, (b"connection", b"close")])
        for event in (start, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        # A client that is still sending sees the answer only if what it sends is read on.
        self._refused, self._came = True, 0
        self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)
