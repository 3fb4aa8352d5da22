"""What a provider answers when it cannot: a sentence for the reader, a code for the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
from google.protobuf import any_pb2
from pulumi.runtime.proto import provider_pb2, status_pb2

from amlstack.rpc.values import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.findings import Finding

Code = grpc.StatusCode


class ProviderError(Exception):
    """A failure with a message for the reader: what was seen, the rule, the remedy.

    The engine treats ``INTERNAL``, ``UNKNOWN`` and ``DATA_LOSS`` as "the resource may exist" and leaves a pending
    operation behind; every other code as "nothing happened". Hence the default.
    """

    def __init__(self, message: str, code: grpc.StatusCode = Code.FAILED_PRECONDITION) -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    def status(self) -> Status:
        """The gRPC status to abort with."""
        return Status(self.code, self.message, None)


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
        super().__init__("; ".join(self.reasons), Code.UNKNOWN)
        self.resource_id = resource_id
        self.outputs = outputs
        self.inputs = inputs

    def status(self) -> Status:
        """The gRPC status with the partial state as its detail."""
        detail = provider_pb2.ErrorResourceInitFailed(
            id=self.resource_id, properties=encode(self.outputs), reasons=self.reasons
        )
        if self.inputs is not None:
            detail.inputs.CopyFrom(encode(self.inputs))
        packed = any_pb2.Any()
        packed.Pack(detail)
        status = status_pb2.Status(code=self.code.value[0], message=self.message, details=[packed])
        return Status(self.code, self.message, (("grpc-status-details-bin", status.SerializeToString()),))


class Status(NamedTuple):
    """A gRPC status in the shape that ``ServicerContext.abort_with_status`` asks for."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, bytes], ...] | None


@dataclass(slots=True)
class Failures:
    """Collects what is wrong with the inputs of one resource, so that all of it is shown together."""

    _list: list[provider_pb2.CheckFailure] = field(default_factory=list)

    def add(self, property_path: str, reason: str) -> None:
        """One thing that is wrong at ``property_path`` (empty for the resource as a whole)."""
        self._list.append(provider_pb2.CheckFailure(property=property_path, reason=reason))

    def add_finding(self, finding: Finding) -> None:
        """A finding as a check failure: its place as the property, its sentences and its code as the reason."""
        self.add(finding.where, f"{finding.message} [{finding.code}]")

    def __bool__(self) -> bool:
        return bool(self._list)

    def response(self, inputs: Mapping[str, Any]) -> provider_pb2.CheckResponse:
        """The answer to ``Check``: the inputs as they will be recorded, and the failures."""
        return provider_pb2.CheckResponse(inputs=encode(inputs, keep_unknowns=True), failures=self._list)
