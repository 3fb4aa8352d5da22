"""A provider that takes every resource of every type: what the engine shows to a pack needs no more."""

from __future__ import annotations

# ruff: noqa: N802  the engine names the methods
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from amlstack.rpc import Host, Plugin, start

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = ("azure-native", "azure", "amlstack")


class Accepting(Plugin):
    """Echoes inputs as outputs; the output ``size`` of a Later is unknown until that exists."""

    version = "3.29.0"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.created: list[str] = []

    def schema(self) -> str:
        return "{}"

    def Check(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:
        changed = request.old_inputs != request.news
        diff = provider_pb2.DiffResponse
        return diff(changes=diff.DIFF_SOME if changed else diff.DIFF_NONE)

    def Create(self, request: Any, context: Any) -> Any:
        name = request.urn.rsplit("::", 1)[-1]
        answer = provider_pb2.CreateResponse(id="" if request.preview else name, properties=request.properties)
        if request.urn.split("::")[2].endswith(":Later"):
            answer.properties["size"] = UNKNOWN_STRING_VALUE if request.preview else request.properties["chosen"]
        if not request.preview:
            self.created.append(name)
        return answer

    def Read(self, request: Any, context: Any) -> Any:
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    def Delete(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()


@dataclass(frozen=True)
class Attached:
    """The provider, running: ``environ`` makes an engine use it for all packages of the scenarios."""

    environ: dict[str, str]
    plugin: Accepting = field(repr=False)

    @property
    def created(self) -> list[str]:
        """Names of the resources created so far, in order."""
        return self.plugin.created


@contextmanager
def attached() -> Iterator[Attached]:
    """Serves the provider on loopback until the context ends."""
    host = Host("")
    plugin = Accepting(host)
    server, port = start(plugin)
    try:
        yield Attached({"PULUMI_DEBUG_PROVIDERS": ",".join(f"{name}:{port}" for name in PACKAGES)}, plugin)
    finally:
        server.stop(grace=1).wait()
        host.close()
