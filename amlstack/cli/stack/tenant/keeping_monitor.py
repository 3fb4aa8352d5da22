"""A monitor for the SDK that keeps what a program registers, and answers as an engine does at a preview."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import json_format, struct_pb2
from pulumi.runtime import mocks
from pulumi.runtime.proto import resource_pb2

from amlstack.base.pulumi_wire import UNKNOWN_TEXT, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Keep = Callable[[str, str, dict[str, Any], str, str], None]

_GIVEN = ("clientId", "principalId", "tenantId")
"""Properties that only Azure gives and that the program passes on."""


class NoMocks(mocks.Mocks):
    """What the SDK wants beside a monitor; nobody asks it."""

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:
        """Nothing."""
        del args
        return {}, None

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """Nothing."""
        del args
        return "", {}


class KeepingMonitor(mocks.MockMonitor):
    """Hands each custom resource to a function; the SDK's own would leave an event loop open in each of its threads."""

    def __init__(
        self, keep: Keep, answers: Mapping[str, Mapping[str, Any]], outputs: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Make a monitor.

        Args:
            keep: Takes each resource.
            answers: What functions of providers answer, by their tokens; others answer nothing.
            outputs: By a resource's token: output → the input whose value it has.
        """
        super().__init__(NoMocks())
        self._keep, self._answers, self._outputs = keep, answers, outputs

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - of the protocol
        """A resource that the program registers."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if not request.custom:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        inputs = decode(request.object)
        self._keep(request.type, request.name, inputs, urn, request.provider)
        answer = _answer(request.object, self._outputs.get(request.type, {}))
        return resource_pb2.RegisterResourceResponse(urn=urn, id=UNKNOWN_TEXT, object=answer)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - of the protocol
        """A resource that exists: nothing of it is known."""
        urn = self.make_urn(request.parent, request.type, request.name)
        return resource_pb2.ReadResourceResponse(urn=urn, properties=request.properties)

    def Invoke(self, request: Any) -> Any:  # noqa: N802 - of the protocol
        """A function of a provider: nobody is asked."""
        answer = struct_pb2.Struct()
        answer.update(self._answers.get(request.tok, {}))
        found = resource_pb2.ResourceInvokeResponse()
        getattr(found, "return").CopyFrom(answer)
        return found


def _answer(inputs: struct_pb2.Struct, outputs: Mapping[str, str]) -> struct_pb2.Struct:
    """What the provider foresees: the inputs, a group's name, and what only Azure gives as not known."""
    given: dict[str, Any] = json_format.MessageToDict(inputs)
    found = {**dict.fromkeys(_GIVEN, UNKNOWN_TEXT), **given}
    if "resourceGroupName" in given:
        found.setdefault("name", given["resourceGroupName"])
    if isinstance(identity := given.get("identity"), dict):
        found["identity"] = {**dict.fromkeys(_GIVEN, UNKNOWN_TEXT), **identity}
    found |= {name: given[source] for name, source in outputs.items() if source in given}
    answer = struct_pb2.Struct()
    answer.update(found)
    return answer
