"""The engine as a plugin sees it: somewhere to send messages."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Literal

from amlstack.base import text
from amlstack.base.credentials import scrub
from amlstack.rpc.secrecy import NOTHING

if TYPE_CHECKING:
    import grpc

    from amlstack.rpc.secrecy import Secrecy

CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", 400 * 1024 * 1024),
    ("grpc.max_send_message_length", 400 * 1024 * 1024),
    # Everything here is loopback; a proxy from the environment would only get in the way.
    ("grpc.enable_http_proxy", 0),
)


class Host:
    """Sends messages to the engine's log. A lost message never fails an operation.

    Args:
        address: ``127.0.0.1:port`` of the engine; empty when the plugin was started by hand and waits for `attach`.
    """

    def __init__(self, address: str = "") -> None:
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._stub: Any = None
        self._secrets: dict[str, Secrecy] = {}
        self.address = ""
        if address:
            self.attach(address)

    def attach(self, address: str) -> None:
        """Talk to the engine at ``address`` from now on."""
        with self._lock:
            if address == self.address:
                return
            if self._channel is not None:
                self._channel.close()
            import grpc  # noqa: PLC0415 - who has no engine needs no gRPC

            self._channel, self._stub = grpc.insecure_channel(address, options=CHANNEL_OPTIONS), None
            self.address = address

    def close(self) -> None:
        """Let the connection go."""
        with self._lock:
            if self._channel is not None:
                self._channel.close()
            self._channel, self._stub, self.address = None, None, ""

    def conceal(self, urn: str, secrecy: Secrecy) -> None:
        """From now on, no message about this resource shows what ``secrecy`` notes."""
        if secrecy.places:
            with self._lock:
                self._secrets[urn] = self._secrets.get(urn, NOTHING) | secrecy

    def clean(self, message: str, urn: str = "") -> str:
        """A message as people may see it: without credentials and the resource's secrets, and nothing acts in it."""
        with self._lock:
            secrecy = self._secrets.get(urn, NOTHING)
        return text.output(scrub(secrecy.redact(message)))

    def debug(self, message: str, urn: str = "") -> None:
        """Shown with ``--debug`` only."""
        self._log("DEBUG", message, urn)

    def info(self, message: str, urn: str = "") -> None:
        """A line in the diagnostics of the resource."""
        self._log("INFO", message, urn)

    def warning(self, message: str, urn: str = "") -> None:
        """A warning in the diagnostics of the resource."""
        self._log("WARNING", message, urn)

    def status(self, message: str, urn: str = "") -> None:
        """Progress: shown beside the resource while it works, replaced by the next one, kept nowhere."""
        self._log("INFO", message, urn, ephemeral=True)

    def _log(
        self, severity: Literal["DEBUG", "INFO", "WARNING"], message: str, urn: str, *, ephemeral: bool = False
    ) -> None:
        with self._lock:
            channel, stub = self._channel, self._stub
        if channel is None:
            return
        import grpc  # noqa: PLC0415
        from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc  # noqa: PLC0415

        if stub is None:  # making one takes as long as a message does
            stub = engine_pb2_grpc.EngineStub(channel)
            with self._lock:
                if self._channel is channel:
                    self._stub = stub

        level = engine_pb2.LogSeverity.Value(severity)
        request = engine_pb2.LogRequest(severity=level, message=self.clean(message, urn), urn=urn, ephemeral=ephemeral)
        # ValueError: the channel was closed meanwhile.
        with contextlib.suppress(grpc.RpcError, ValueError):
            stub.Log(request, timeout=10)
