"""Errors of a provider: a sentence for the reader, a code for the engine."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.rpc.secrecy import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import grpc
    from pulumi.runtime.proto import provider_pb2

    from amlstack.base.findings import Finding
    from amlstack.rpc.secrecy import Secrecy


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

    def add_finding(self, finding: Finding) -> None:
        """A finding as a check failure: its place as the property, its sentences and its code as the reason."""
        self.add(finding.where, f"{finding.message} [{finding.code}]")

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
