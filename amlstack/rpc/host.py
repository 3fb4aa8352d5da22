"""The engine as a plugin sees it: its log, and errors with a sentence for the reader and a code for it."""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from amlstack.base import text
from amlstack.base.credentials import scrub
from amlstack.rpc.values import NOTHING, Secrecy

if TYPE_CHECKING:
    import grpc
    from pulumi.runtime.proto import provider_pb2


class ErrorCode(enum.Enum):
    """gRPC's status codes, names and numbers: errors are also raised where no gRPC is loaded."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class ProviderError(Exception):
    """A failure with a message for the reader: what was seen, the rule, the remedy.

    The engine treats ``INTERNAL``, ``UNKNOWN`` and ``DATA_LOSS`` as "the resource may exist" and leaves a pending
    operation behind; every other code as "nothing happened". Hence the default.
    """

    def __init__(self, message: str, code: ErrorCode = ErrorCode.FAILED_PRECONDITION) -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    def status(self) -> Status:
        """The gRPC status to abort with."""
        return Status(_status_code(self.code), self.message, None)


class InitFailedError(ProviderError):
    """The resource exists, but did not become what was asked for: the engine keeps it with its id and state.

    The next ``up`` plans an update of it, never a second create.

    Args:
        resource_id: The id under which it exists.
        outputs: Its state as far as it is known.
        reasons: One sentence each; shown to the reader.
        inputs: The inputs to record; only `Read` uses them.
    """

    def __init__(
        self,
        resource_id: str,
        outputs: Mapping[str, Any],
        reasons: Iterable[str],
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons), ErrorCode.UNKNOWN)
        self.resource_id = resource_id
        self.outputs = outputs
        self.inputs = inputs

    def status(self) -> Status:
        """The gRPC status with the partial state as its detail."""
        from google.protobuf import any_pb2  # noqa: PLC0415 - as in all of this module: only a server loads gRPC
        from pulumi.runtime.proto import provider_pb2, status_pb2  # noqa: PLC0415

        from amlstack.rpc.wire import encode  # noqa: PLC0415

        detail = provider_pb2.ErrorResourceInitFailed(
            id=self.resource_id, properties=encode(self.outputs), reasons=self.reasons
        )
        if self.inputs is not None:
            detail.inputs.CopyFrom(encode(self.inputs))
        packed = any_pb2.Any()
        packed.Pack(detail)
        status = status_pb2.Status(code=self.code.value, message=self.message, details=[packed])
        return Status(_status_code(self.code), self.message, (("grpc-status-details-bin", status.SerializeToString()),))


class Status(NamedTuple):
    """A gRPC status in the shape that ``ServicerContext.abort_with_status`` asks for."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, bytes], ...] | None


def _status_code(code: ErrorCode) -> grpc.StatusCode:
    import grpc  # noqa: PLC0415

    return grpc.StatusCode[code.name]


@dataclass(slots=True)
class Failures:
    """Collects what is wrong with the inputs of one resource, so that all of it is shown together."""

    _list: list[tuple[str, str]] = field(default_factory=list)

    def add(self, property_path: str, reason: str) -> None:
        """One thing that is wrong at ``property_path`` (empty for the resource as a whole)."""
        self._list.append((property_path, reason))

    def __bool__(self) -> bool:
        return bool(self._list)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons, without the properties."""
        return tuple(reason for _, reason in self._list)

    def response(self, inputs: Mapping[str, Any], secrecy: Secrecy = NOTHING) -> provider_pb2.CheckResponse:
        """The answer to ``Check``: the inputs as they will be recorded, and the failures without what is secret."""
        from pulumi.runtime.proto import provider_pb2  # noqa: PLC0415

        from amlstack.rpc.wire import encode  # noqa: PLC0415

        failures = [
            provider_pb2.CheckFailure(property=secrecy.cut(path), reason=secrecy.redact(reason))
            for path, reason in self._list
        ]
        return provider_pb2.CheckResponse(inputs=encode(inputs, keep_unknowns=True), failures=failures)


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
