"""The life of a provider plugin: start, print the port, serve until the engine has gone."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from amlstack import __version__
from amlstack.rpc.host import CHANNEL_OPTIONS, ErrorCode, Host, ProviderError
from amlstack.rpc.values import ValueRefusedError

_WORKERS = 1024
"""More than the engine's parallelism anywhere, started as needed: waiting operations must not starve ``Cancel``."""


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """The parts of a resource provider that do not depend on its resources.

    Subclasses implement Configure, Check, Diff, Create, Read, Update and Delete and raise `ProviderError`s; the server
    turns those into statuses. Secrets are accepted (inputs arrive as `Secret`), resource references and output values
    are not.

    Attributes:
        version: The version reported to the engine.
        host: The engine's log.
        cancelled: Set when the engine wants running operations to end; whatever waits must watch it.
    """

    version: ClassVar[str] = __version__

    def __init__(self, host: Host) -> None:
        self.host = host
        self.cancelled = threading.Event()

    def schema(self) -> str:
        """The Pulumi package schema, JSON text."""
        raise NotImplementedError

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.GetSchemaResponse(schema=self.schema())

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version=self.version)

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        if request.engine_address:
            self.host.attach(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.host.attach(request.address)
        return empty_pb2.Empty()

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        return self.configured()

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        changed = request.old_inputs != request.news
        diff = provider_pb2.DiffResponse
        return diff(changes=diff.DIFF_SOME if changed else diff.DIFF_NONE)

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.cancelled.set()
        return empty_pb2.Empty()

    @staticmethod
    def configured() -> provider_pb2.ConfigureResponse:
        """The answer to ``Configure``: secrets are accepted, previews are supported."""
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)


class _Errors(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc ships no types
    """Turns exceptions into statuses, so that no traceback ever reaches a reader."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        handler = continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        inner = handler.unary_unary

        def guarded(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                return inner(request, context)
            except NotImplementedError:
                raise  # the generated base class has set UNIMPLEMENTED
            except ProviderError as error:
                failure: ProviderError = error
            except ValueRefusedError as error:
                failure = ProviderError(str(error), ErrorCode.INVALID_ARGUMENT)
            except Exception as error:  # noqa: BLE001  the last line of defence
                self._host.debug("".join(traceback.format_exception(error)), getattr(request, "urn", ""))
                failure = ProviderError(f"unexpected {type(error).__name__}: {error}", ErrorCode.INTERNAL)
            failure.message = self._host.clean(failure.message, getattr(request, "urn", ""))
            return context.abort_with_status(failure.status())

        return grpc.unary_unary_rpc_method_handler(
            guarded, request_deserializer=handler.request_deserializer, response_serializer=handler.response_serializer
        )


def start(plugin: Plugin, *, workers: int = _WORKERS) -> tuple[grpc.Server, int]:
    """Serves ``plugin`` on a free loopback port.

    Returns:
        The running server and its port.
    """
    server = grpc.server(
        ThreadPoolExecutor(max_workers=workers, thread_name_prefix="rpc"),
        interceptors=(_Errors(plugin.host),),
        options=CHANNEL_OPTIONS,
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    port = server.add_insecure_port("127.0.0.1:0")
    if not port:
        raise OSError("no free loopback port for the provider")
    server.start()
    return server, port


def serve(make: Callable[[Host], Plugin], argv: Sequence[str] | None = None) -> int:
    """The ``main`` of a plugin executable: serves until SIGINT, SIGTERM or until the process that started it is gone.

    The engine passes its own address as the first argument that is no flag and reads the port from the first line of
    standard output. Nothing else may ever be printed there.

    Args:
        make: Builds the plugin, given the engine's log.
        argv: Command line without the program's name; ``sys.argv[1:]`` by default.

    Returns:
        The exit code.
    """
    arguments = sys.argv[1:] if argv is None else argv
    address = next((word for word in arguments if not word.startswith("-")), "")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    # The engine interrupts its plugins once all their work is done, and kills what has not gone five seconds later. A
    # Ctrl-C does not come here: plugins run in process groups of their own, and the engine calls Cancel instead.
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    parent = os.getppid()
    plugin = make(Host(address))
    server, port = start(plugin)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    # An engine that was killed cannot say goodbye: its children see it by their new parent.
    while not stop.wait(0.5):
        if os.getppid() != parent:
            break
    plugin.cancelled.set()
    server.stop(grace=1).wait()
    plugin.host.close()
    return 0
