"""The stand-in as the engine has it: a process started by its executable, spoken to over gRPC."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from amlstack.rpc import decode, encode
from tests.support.harness import STAND_IN

if TYPE_CHECKING:
    from collections.abc import Mapping

EXECUTABLE = STAND_IN / "pulumi-resource-azure-native"


class StandIn:
    """One plugin process; ``inputs`` and outputs are plain Python."""

    def __init__(self, environ: Mapping[str, str], config: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [str(EXECUTABLE), "127.0.0.1:1"], stdout=subprocess.PIPE, text=True, env=dict(environ)
        )
        assert self.process.stdout is not None
        port = int(self.process.stdout.readline())
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_http_proxy", 0)])
        self.stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self._config = {f"azure-native:config:{key}": value for key, value in (config or {}).items()}

    def configure(self) -> StandIn:
        self.stub.Configure(provider_pb2.ConfigureRequest(variables=self._config))
        return self

    def check(self, urn: str, new: Mapping[str, Any], old: Mapping[str, Any] | None = None, **more: Any) -> Any:
        news = encode(new, keep_unknowns=True)
        request = provider_pb2.CheckRequest(urn=urn, news=news, olds=encode(old or {}), randomSeed=b"seed", **more)
        return self.stub.Check(request)

    def inputs(self, urn: str, new: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.check(urn, new)
        assert not answer.failures, answer.failures
        return decode(answer.inputs)

    def create(self, urn: str, inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        answer = self.stub.Create(provider_pb2.CreateRequest(urn=urn, properties=encode(self.inputs(urn, inputs))))
        return answer.id, decode(answer.properties)

    def preview(self, urn: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        properties = encode(inputs, keep_unknowns=True)
        return decode(
            self.stub.Create(provider_pb2.CreateRequest(urn=urn, properties=properties, preview=True)).properties
        )

    def update(self, urn: str, id_: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        request = provider_pb2.UpdateRequest(urn=urn, id=id_, olds=encode(old), news=encode(new))
        return decode(self.stub.Update(request).properties)

    def diff(self, urn: str, id_: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Any:
        return self.stub.Diff(
            provider_pb2.DiffRequest(urn=urn, id=id_, olds=encode({}), old_inputs=encode(old), news=encode(new))
        )

    def read(
        self, urn: str, id_: str, inputs: Mapping[str, Any] | None = None, state: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any], dict[str, Any]]:
        known = {"inputs": encode(inputs)} if inputs else {}
        answer = self.stub.Read(provider_pb2.ReadRequest(urn=urn, id=id_, properties=encode(state or {}), **known))
        return answer.id, decode(answer.inputs), decode(answer.properties)

    def delete(self, urn: str, id_: str) -> None:
        self.stub.Delete(provider_pb2.DeleteRequest(urn=urn, id=id_))

    def kill(self) -> None:
        self._channel.close()
        self.process.kill()
        self._reap()

    def stop(self) -> None:
        self._channel.close()
        self.process.terminate()
        self._reap()

    def _reap(self) -> None:
        self.process.wait(300)
        assert self.process.stdout is not None
        self.process.stdout.close()


def urn(token: str, name: str, parent: str = "") -> str:
    chain = f"{parent}$" if parent else ""
    return f"urn:pulumi:test::scenario::{chain}azure-native:{token}::{name}"


def refusal(error: grpc.RpcError) -> tuple[grpc.StatusCode, str]:
    return error.code(), error.details()
