"""The plugin: what the engine asks, answered over ARM REST."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from amlstack.base import paths
from amlstack.base.api_versions import RESOURCES
from amlstack.rpc import UNKNOWN, ErrorCode, Host, InitFailedError, Plugin, ProviderError, bare, decode, encode
from amlstack.sandbox.azure_native import shape
from amlstack.sandbox.azure_native.arm import AcceptedError, Arm, Patience, SandboxTarget

if TYPE_CHECKING:
    import grpc
    from google.protobuf.struct_pb2 import Struct

    from amlstack.sandbox.azure_native.shape import ResourceType


class Claims:
    """Resources that this stack began to create and has not yet recorded, as the notes of one backend.

    The real plugin refuses to create what exists, and so does this one. But a plugin or an engine that is killed
    between the service's answer and the state file leaves a resource that no state knows, and then the refusal would be
    final. So the stand-in notes, before it creates, which URN is about to own which id. The note goes as soon as the
    engine shows that it has the resource in its state. A create that finds the resource and its own note goes on where
    the killed one stopped. Stacks of the same name in two backends are two stacks.

    Args:
        environ: The plugin's environment, which it has from the engine.
        folder: Where the notes lie; the sandbox's home by default, so that they go with it.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> None:
        self._backend = environ.get("PULUMI_BACKEND_URL", "")
        self._folder = folder or paths.home() / "sandbox" / "azure-native"

    def make(self, urn: str, resource_id: str) -> None:
        """Notes that ``urn`` is about to own ``resource_id``."""
        path = self._path(urn)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"urn": urn, "id": resource_id}), "utf-8")
        fresh.replace(path)

    def holds(self, urn: str, resource_id: str) -> bool:
        """True where an earlier create of ``urn`` began on ``resource_id`` and may have been cut off."""
        try:
            noted = json.loads(self._path(urn).read_text("utf-8"))["id"]
        except (OSError, ValueError, KeyError):
            return False
        return str(noted).lower() == resource_id.lower()

    def settle(self, urn: str) -> None:
        """The engine knows the resource (or it was never made): nothing is left to heal."""
        with contextlib.suppress(FileNotFoundError):
            self._path(urn).unlink()

    def _path(self, urn: str) -> Path:
        name = hashlib.sha256(f"{self._backend}\n{urn}".encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"


OPERATION_SECONDS = 7200.0
"""The longest time of an operation, unless the program gives another; the real plugin has the same."""


class AzureNative(Plugin):
    """A resource provider that looks like azure-native to the engine and speaks to a sandbox."""

    version = metadata.version("pulumi-azure-native")

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._config: dict[str, str] = {}
        self._arm: Arm | None = None
        self._claims = Claims()
        self._places: dict[str, str] = {}

    def schema(self) -> str:
        """Refused: programs use the installed azure-native SDK."""
        raise ProviderError("the sandbox's stand-in for azure-native carries no schema", ErrorCode.UNIMPLEMENTED)

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        super().Handshake(request, context)
        return provider_pb2.ProviderHandshakeResponse()

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        prefix = "azure-native:config:"
        self._config = {key.removeprefix(prefix): value for key, value in request.variables.items()}
        self._arm = Arm(SandboxTarget.of(os.environ, self._config))
        # As the real one: the engine keeps secrets to itself and marks what it gets back.
        return provider_pb2.ConfigureResponse(supportsPreview=True, supports_autonaming_configuration=True)

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        raise ProviderError(f"the sandbox does not stand in for the function {request.tok}", ErrorCode.UNIMPLEMENTED)

    def Call(self, request: Any, context: grpc.ServicerContext) -> Any:
        raise ProviderError(f"the sandbox does not stand in for the method {request.tok}", ErrorCode.UNIMPLEMENTED)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        kind, version = _kind(request.urn)
        old, new = _inputs(request.olds), _inputs(request.news)
        if kind.autonamed not in new:
            asked = request.autonaming if request.HasField("autonaming") else None
            proposal = (asked.mode, asked.proposed_name) if asked else None
            logical = request.urn.rpartition("::")[2]
            new |= shape.name(kind, logical, request.randomSeed, old, proposal)
        if "location" in kind.top and "location" not in new:
            place = shape.location(old, new, self._config, self._place_of_group)
            new |= {"location": place} if place is not None else {}
        new.setdefault(shape.API_VERSION, version)
        return shape.failures(kind, new).response(new)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        kind, _ = _kind(request.urn)
        self._claims.settle(request.urn)
        state = _inputs(request.olds)
        old = _inputs(request.old_inputs)
        # A state written before the version was an input: no change by that alone.
        old.setdefault(shape.API_VERSION, state.get(shape.API_VERSION))
        return shape.diff(kind, old, _inputs(request.news), state)

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        kind, version = _kind(request.urn)
        inputs = _inputs(request.properties)
        if request.preview:
            known = shape.preview(kind, inputs, {}, version)
            return provider_pb2.CreateResponse(properties=encode(known, keep_unknowns=True))
        patience = self._patience(request.urn, request.timeout)
        wanted = kind.id_of(self.arm.subscription, inputs)
        found = self.arm.read(wanted, version, patience)
        if found is not None and not shape.is_untouched(kind, found):
            if not self._claims.holds(request.urn, wanted):
                raise ProviderError(f"cannot create already existing resource '{wanted}'", ErrorCode.ALREADY_EXISTS)
            self.host.info(f"{wanted} was made by an update that was cut off; going on from there", request.urn)
        self._claims.make(request.urn, wanted)
        resource_id, state = self._put(kind, version, inputs, current=None, patience=patience)
        return provider_pb2.CreateResponse(id=resource_id, properties=encode(state))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        kind, version = _kind(request.urn)
        inputs = _inputs(request.news)
        if request.preview:
            known = shape.preview(kind, inputs, _inputs(request.olds), version)
            return provider_pb2.UpdateResponse(properties=encode(known, keep_unknowns=True))
        self._claims.settle(request.urn)
        patience = self._patience(request.urn, request.timeout)
        current = self.arm.read(request.id, version, patience) if kind.keeps else None
        _, state = self._put(kind, version, inputs, current=current, patience=patience)
        return provider_pb2.UpdateResponse(properties=encode(state))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        kind, version = _kind(request.urn)
        answer = self.arm.read(request.id, version, self._patience(request.urn))
        if answer is None:
            return provider_pb2.ReadResponse()
        self._claims.settle(request.urn)
        state = shape.outputs(kind, answer, version)
        now = shape.writable(kind, state)
        if request.HasField("inputs") and request.inputs.fields:
            then = shape.writable(kind, _inputs(request.properties))
            inputs = shape.merged(_inputs(request.inputs), then, now)
        else:
            inputs = shape.significant(
                {**kind.parse(str(answer.get("id", request.id))), **now, shape.API_VERSION: version}
            )
        return provider_pb2.ReadResponse(id=request.id, properties=encode(state), inputs=encode(inputs))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        kind, version = _kind(request.urn)
        self._claims.settle(request.urn)
        patience = self._patience(request.urn, request.timeout)
        if kind.default is not None:
            if self.arm.read(request.id, version, patience) is not None:
                self.arm.put(request.id, version, {"properties": kind.default}, patience)
        elif kind.deletes:
            self.arm.delete(request.id, version, kind.delete_query, patience)
        return empty_pb2.Empty()

    @property
    def arm(self) -> Arm:
        """The client, once the engine has configured the plugin."""
        if self._arm is None:
            raise ProviderError("the provider's configuration is not known yet")
        return self._arm

    def _put(
        self,
        kind: ResourceType,
        version: str,
        inputs: dict[str, Any],
        *,
        current: dict[str, Any] | None,
        patience: Patience,
    ) -> tuple[str, dict[str, Any]]:
        path = kind.id_of(self.arm.subscription, inputs)
        body = shape.body(kind, inputs)
        shape.keep(kind, body, current)
        try:
            resource_id = self.arm.put(path, version, body, patience, shape.put_query(kind, inputs))
        except AcceptedError as accepted:
            # Its own patience: the one of the operation may just have run out.
            found = self.arm.read(path, version, self._patience(""))
            known = shape.outputs(kind, found or {}, version)
            raise InitFailedError(accepted.resource_id, known, [accepted.cause.message], inputs) from None
        answer = self.arm.read(resource_id, version, patience)
        if answer is None:
            raise ProviderError(f"{resource_id} was accepted and is not there", ErrorCode.UNKNOWN)
        return resource_id, shape.outputs(kind, answer, version)

    def _place_of_group(self, group: str) -> str | None:
        if group not in self._places:
            path = f"/subscriptions/{self.arm.subscription}/resourceGroups/{group}"
            found = self.arm.read(path, RESOURCES, self._patience(""))
            if found is None:
                return None
            self._places[group] = str(found["location"])
        return self._places[group]

    def _patience(self, urn: str, seconds: float = 0) -> Patience:
        return Patience(self.cancelled, seconds or OPERATION_SECONDS, lambda text: self.host.status(text, urn))


def _kind(urn: str) -> tuple[ResourceType, str]:
    return shape.find(shape.token_of(urn))


def _inputs(struct: Struct) -> dict[str, Any]:
    """Plain values without nulls at the top, unknowns kept."""
    values: dict[str, Any] = bare(decode(struct))
    return {name: value for name, value in values.items() if value is UNKNOWN or value is not None}
