"""Drives the provider over its wire as the engine does, and keeps what the engine would keep."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc

from amlstack.provider.arm import client, exchange
from amlstack.provider.server import Provider
from amlstack.rpc import Host, decode, encode, start
from amlstack.rpc.host import CHANNEL_OPTIONS
from amlstack.rpc.plugin import _Errors
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.near_arm import NearArm

if TYPE_CHECKING:
    from collections.abc import Callable

    from azure.core.pipeline.transport import RequestsTransport

    from tests.support.provider.fake_arm import FakeArm

LIMIT = 300.0
"""Seconds that a call may take before the test fails."""
URN = "urn:pulumi:dev::train::{type}::{name}"


class Log(engine_pb2_grpc.EngineServicer):
    """The engine's log, kept."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = "status" if request.ephemeral else engine_pb2.LogSeverity.Name(request.severity).lower()
        self.entries.append((kind, request.message))
        return empty_pb2.Empty()

    def messages(self, kind: str) -> list[str]:
        return [message for severity, message in self.entries if severity == kind]


class _Aborted(grpc.RpcError):  # type: ignore[misc]  # grpc ships no types
    """A status, as its caller sees it."""

    def __init__(self, status: Any) -> None:
        self.code, self.details, self.trailing_metadata = (lambda value=value: value for value in status)


class _Near:
    """A channel to a servicer of this process: its methods get bytes, as from gRPC, in the thread of the caller.

    Most of what a call over gRPC takes are four threads that wake each other.
    """

    def __init__(self, register: Callable[[Any, Any], None], servicer: Any, *interceptors: Any) -> None:
        self.interceptors = interceptors
        register(servicer, self)

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        (self.handler,) = handlers

    def add_registered_method_handlers(self, *_: Any) -> None:
        """The generic handler knows the same methods."""

    def unary_unary(self, method: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        details = SimpleNamespace(method=method)

        def call(request: Any, timeout: float | None = None) -> Any:
            find = self.handler.service
            for one in self.interceptors:
                find = functools.partial(one.intercept_service, find)
            found = find(details)
            sent = found.request_deserializer(request_serializer(request))
            answer = contextvars.Context().run(found.unary_unary, sent, self)
            return response_deserializer(found.response_serializer(answer))

        return call

    unary_stream = unary_unary  # made with a stub, and called by no test

    @staticmethod
    def abort_with_status(status: Any) -> None:
        raise _Aborted(status)

    def close(self) -> None:
        """Nothing is open."""


class Refused(Exception):  # noqa: N818
    """The messages that the engine would show."""

    def __init__(self, error: grpc.RpcError) -> None:
        super().__init__(error.details())
        self.code = error.code()
        self.partial: provider_pb2.ErrorResourceInitFailed | None = None
        from pulumi.runtime.proto import status_pb2

        for name, value in error.trailing_metadata() or ():
            if name == "grpc-status-details-bin":
                self.partial = provider_pb2.ErrorResourceInitFailed()
                status_pb2.Status.FromString(value).details[0].Unpack(self.partial)


@dataclass
class Resource:
    """One resource as the engine drives it: check, diff, then create, update, replace or nothing; state kept."""

    wire: Wire
    type: str
    name: str = "a"
    urn: str = ""
    id: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    init_failed: bool = False

    def __post_init__(self) -> None:
        self.urn = self.urn or URN.format(type=self.type, name=self.name)

    def check(self, inputs: dict[str, Any]) -> dict[str, Any]:
        request = provider_pb2.CheckRequest(
            urn=self.urn, olds=encode(self.inputs), news=encode(inputs, keep_unknowns=True)
        )
        response = self.wire.call("Check", request)
        assert not response.failures, [(one.property, one.reason) for one in response.failures]
        return decode(response.inputs)

    def failures(self, inputs: dict[str, Any]) -> dict[str, str]:
        request = provider_pb2.CheckRequest(urn=self.urn, news=encode(inputs, keep_unknowns=True))
        return {one.property: one.reason for one in self.wire.call("Check", request).failures}

    def diff(self, inputs: dict[str, Any]) -> Any:
        request = provider_pb2.DiffRequest(
            id=self.id, urn=self.urn, olds=encode(self.outputs), old_inputs=encode(self.inputs),
            news=encode(inputs, keep_unknowns=True),
        )  # fmt: skip
        return self.wire.call("Diff", request)

    def preview(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The outputs that a preview of the creation foretells."""
        request = provider_pb2.CreateRequest(
            urn=self.urn, properties=encode(self.check(inputs), keep_unknowns=True), preview=True
        )
        response = self.wire.call("Create", request)
        assert response.id == ""
        return decode(response.properties)

    def up(self, inputs: dict[str, Any], *, timeout: float = 0, same_deployment: bool = False) -> str:
        """Brings the resource to ``inputs`` as the engine does; the operation's name."""
        if not same_deployment:
            self.wire.configure()
        checked = self.check(inputs)
        if not self.id:
            self._create(checked, timeout)
            return "create"
        diff = self.diff(checked)
        if diff.replaces:
            old = (self.id, self.inputs, self.outputs)
            if diff.deleteBeforeReplace:
                self._delete(*old)
                self._create(checked, timeout)
            else:
                self._create(checked, timeout)
                self._delete(*old)
            return "replace"
        if diff.changes == diff.DIFF_SOME or self.init_failed:
            self._update(checked)
            return "update"
        self.inputs = checked
        return "same"

    def _create(self, inputs: dict[str, Any], timeout: float) -> None:
        request = provider_pb2.CreateRequest(urn=self.urn, properties=encode(inputs), timeout=timeout)
        try:
            response = self.wire.call("Create", request)
        except Refused as error:
            self._keep_partial(error, inputs)
            raise
        self.id, self.inputs, self.outputs = response.id, inputs, decode(response.properties)
        self.init_failed = False

    def _update(self, inputs: dict[str, Any]) -> None:
        request = provider_pb2.UpdateRequest(
            id=self.id, urn=self.urn, olds=encode(self.outputs), old_inputs=encode(self.inputs), news=encode(inputs)
        )
        try:
            response = self.wire.call("Update", request)
        except Refused as error:
            self._keep_partial(error, inputs)
            raise
        self.inputs, self.outputs, self.init_failed = inputs, decode(response.properties), False

    def _keep_partial(self, error: Refused, inputs: dict[str, Any]) -> None:
        if error.partial is not None:
            self.id, self.inputs, self.init_failed = error.partial.id, inputs, True
            self.outputs = decode(error.partial.properties)

    def refresh(self) -> None:
        self.wire.configure()
        request = provider_pb2.ReadRequest(
            id=self.id, urn=self.urn, properties=encode(self.outputs), inputs=encode(self.inputs)
        )
        try:
            response = self.wire.call("Read", request)
        except Refused as error:
            if error.partial is None:
                raise
            # The engine shows a warning and keeps the failure for the next up.
            self.outputs, self.init_failed = decode(error.partial.properties), True
            self.inputs = decode(error.partial.inputs)
            return
        self.id, self.outputs, self.init_failed = response.id, decode(response.properties), False

    def _delete(self, id_: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        self.wire.call(
            "Delete",
            provider_pb2.DeleteRequest(id=id_, urn=self.urn, properties=encode(outputs), old_inputs=encode(inputs)),
        )

    def remove(self) -> None:
        self.wire.configure()
        self._delete(self.id, self.inputs, self.outputs)
        self.id = ""


_MADE = exchange.make_transport


class _Connections:
    """Connections that outlive a deployment: else most of the time of a thousand of them goes into handshakes."""

    def __init__(self, made: RequestsTransport) -> None:
        self.made = made

    def __enter__(self) -> RequestsTransport:
        return self.made

    def __exit__(self, *_: object) -> None:
        """They end with the process, see `Wire.stop`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)


class Wire:
    """A provider process's worth of state behind a channel; `restart` forgets it as a new process does.

    Args:
        log: The engine's; by default one that nobody reads.
        real: Both talk over gRPC; else only their bytes are its.
        near: The fake ARM that is asked without sockets.
    """

    def __init__(self, log: Log | None = None, *, real: bool = False, near: FakeArm | None = None) -> None:
        self.log, self.real, self.near = log or Log(), real, near
        self.transports: dict[str | None, _Connections] = {}
        self.start()

    def start(self) -> None:
        self.patches = contextlib.ExitStack()
        for module in (exchange, client):  # both know it by a name of their own
            self.patches.enter_context(mock.patch.object(module, "make_transport", self._transport))
        self.plugin = Provider(Host())
        self.servers: list[grpc.Server] = []
        if self.real:
            engine = grpc.server(ThreadPoolExecutor(4))
            engine_pb2_grpc.add_EngineServicer_to_server(self.log, engine)
            self.plugin.host.attach(f"127.0.0.1:{engine.add_insecure_port('127.0.0.1:0')}")
            engine.start()
            server, port = start(self.plugin, workers=8)
            self.servers = [server, engine]
            self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS)
        else:
            self.plugin.host._channel = _Near(engine_pb2_grpc.add_EngineServicer_to_server, self.log)
            register = provider_pb2_grpc.add_ResourceProviderServicer_to_server
            self.channel = _Near(register, self.plugin, _Errors(self.plugin.host))
        self.stub = provider_pb2_grpc.ResourceProviderStub(self.channel)
        self.configure()

    def configure_for_a_program(self) -> None:
        """As `configure`, after a program has registered the provider."""
        self.stub.CheckConfig(provider_pb2.CheckRequest(), timeout=LIMIT)
        self.configure()

    def configure(self) -> None:
        """The engine does so once in each deployment."""
        self.stub.Configure(provider_pb2.ConfigureRequest(), timeout=LIMIT)

    def _transport(self, ca: str | None = None) -> _Connections:
        if ca not in self.transports:
            made = _MADE(ca)
            if self.near is not None:
                made.session.mount(self.near.url, NearArm(self.near))
            self.transports[ca] = _Connections(made)
        return self.transports[ca]

    def stop(self) -> None:
        self._end()
        for one in self.transports.values():
            one.made.session.close()  # what a client of a test still asks opens them again

    def _end(self) -> None:
        self.channel.close()
        for server in self.servers:
            server.stop(None).wait()
        self.plugin.host.close()
        self.patches.close()

    def restart(self) -> None:
        self._end()
        self.start()

    def call(self, method: str, request: Any) -> Any:
        try:
            return getattr(self.stub, method)(request, timeout=LIMIT)
        except grpc.RpcError as error:
            raise Refused(error) from None

    def job(self, name: str = "a", **more: Any) -> Resource:
        return Resource(self, "amlstack:jobs:Job", name, **more)

    def snapshot(self) -> Resource:
        return Resource(self, "amlstack:code:Snapshot", "code")

    def data(self) -> Resource:
        """Data of this machine in a datastore."""
        return Resource(self, "amlstack:data:Upload", "data")

    def data_version(self) -> Resource:
        return Resource(self, "amlstack:data:Version", "raw")

    def environment(self) -> Resource:
        return Resource(self, "amlstack:environments:Version", "env")

    def component(self) -> Resource:
        return Resource(self, "amlstack:components:Version", "component")

    def schedule(self, name: str = "nightly", **more: Any) -> Resource:
        return Resource(self, "amlstack:schedules:Schedule", name, **more)


def job_inputs(**changes: Any) -> dict[str, Any]:
    """Inputs of a job; ``properties`` are merged into the body's."""
    properties = {
        "jobType": "Command",
        "command": "python train.py",
        "environmentId": "azureml://registries/azureml/environments/acpt/versions/1",
        "computeId": f"{WORKSPACE}/computes/rdma",
        "experimentName": "mnist",
        "environmentVariables": {"NCCL_DEBUG": "INFO"},
        **changes.pop("properties", {}),
    }
    inputs = {
        "workspace": WORKSPACE,
        "name": "mnist",
        "declaration": {"command": "python train.py", "lr": 0.1},
        "codeHash": "0" * 64,
        "body": {"properties": properties},
    }
    return {**inputs, **changes}
