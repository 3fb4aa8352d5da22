"""The gRPC side of the provider: requests to plain Python, answers back to the wire."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from amlstack import rpc
from amlstack.provider import arm
from amlstack.provider.arm import ArmClient, ArmError, InterruptedWaitError
from amlstack.provider.arm.client import FUNCTION, FUNCTIONS, look_up
from amlstack.provider.resource import Call, Course, Difference, InputShape, Resource, Services, Values, package
from amlstack.provider.runs import Runs, WorkspaceMissingError
from amlstack.provider.stacks.guard import Guards, Keepers, Records
from amlstack.provider.types import versions
from amlstack.provider.types.jobs import JobRuns
from amlstack.provider.types.network import Isolations, ManagedNetworks
from amlstack.provider.types.schedules import Schedules

if TYPE_CHECKING:
    import grpc
    from azure.core.credentials import TokenCredential
    from google.protobuf.struct_pb2 import Struct

TYPES: dict[str, type[Resource]] = {
    "amlstack:code:Snapshot": versions.Snapshots,
    "amlstack:components:Version": versions.RegisteredComponents,
    "amlstack:data:Upload": versions.DataUploads,
    "amlstack:data:Version": versions.RegisteredData,
    "amlstack:environments:Version": versions.RegisteredEnvironments,
    "amlstack:jobs:Job": JobRuns,
    "amlstack:network:Isolation": Isolations,
    "amlstack:network:Managed": ManagedNetworks,
    "amlstack:runs:Guard": Guards,
    "amlstack:schedules:Schedule": Schedules,
    "amlstack:stack:Keeper": Keepers,
    "amlstack:stack:Record": Records,
}
SETTINGS = ("armEndpoint", *arm.VARIABLES)
"""The settings of the provider; all but the endpoint are azure-native's own settings."""
_CONFIG = "amlstack:config:"
_CODES = {
    0: rpc.ErrorCode.UNAVAILABLE,
    401: rpc.ErrorCode.UNAUTHENTICATED,
    403: rpc.ErrorCode.PERMISSION_DENIED,
    404: rpc.ErrorCode.NOT_FOUND,
}


_URN: contextvars.ContextVar[str] = contextvars.ContextVar("urn", default="")
"""Of the resource whose operation is under way."""


class Provider(rpc.Plugin):
    """The provider ``amlstack``.

    Args:
        host: The engine's log.
        credential: For tests and the command line; Entra ID's default chain otherwise.
    """

    def __init__(self, host: rpc.Host, credential: TokenCredential | None = None) -> None:
        super().__init__(host)
        self._credential = credential
        self._lock = threading.Lock()
        self._resources: dict[str, Resource] = {}
        self._client: ArmClient | None = None
        self._course = Course()
        self._registered = False

    def schema(self) -> str:
        """The package schema of schema.json, with the version of this provider."""
        return json.dumps({**package(), "version": self.version})

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        failures = rpc.Failures()
        # Only a program registers a provider, and an update with targets registers it too.
        self._registered = True
        # The stack's settings share the namespace `amlstack:` and arrive here too; they are none of the provider's.
        news = {key: value for key, value in rpc.decode(request.news).items() if key in SETTINGS}
        try:
            _signing_in(_texts(news))
        except ArmError as error:
            at_fault = "environment" if error.code == "EnvironmentInvalid" else "armEndpoint"
            failures.add(at_fault, error.message)
        return failures.response(news)

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        variables = {name: request.variables.get(f"{_CONFIG}{name}") for name in SETTINGS}
        given = _texts({**rpc.decode(request.args), **{name: value for name, value in variables.items() if value}})
        try:
            endpoint, sign_in = _signing_in(given)
        except ArmError as error:
            raise rpc.ProviderError(error.message, rpc.ErrorCode.INVALID_ARGUMENT) from None
        client = ArmClient(
            endpoint, self._credential, sign_in=sign_in, cancelled=self.cancelled, announce=self._announce
        )
        with self._lock:
            # Configured again, it is another deployment; `CheckConfig` of this one came before.
            self._course = Course(program=self._registered)
            self._registered = False
        services = Services(client, Runs(client), self.host, self.cancelled, self._course)
        with self._lock:
            self._client = client
            self._resources = {token: make(services) for token, make in TYPES.items()}
        return self.configured()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        with self._lock:
            client = self._client
        if client is None:
            raise rpc.ProviderError("the provider is not configured")
        self._course.program = True
        args = rpc.bare(rpc.decode(request.args))
        try:
            if request.tok == FUNCTION:
                answer = look_up(client, args)
            elif request.tok in FUNCTIONS:
                answer = FUNCTIONS[request.tok](client, args, self.cancelled)
            else:
                known = ", ".join((FUNCTION, *FUNCTIONS))
                raise rpc.ProviderError(
                    f"there is no function {request.tok}; there are {known}", rpc.ErrorCode.NOT_FOUND
                )
        except InterruptedWaitError as error:
            raise rpc.ProviderError(_interrupted(error), rpc.ErrorCode.ABORTED) from None
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(rpc.encode(answer))  # a word of Python
        return response

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        failures = rpc.Failures()
        self._course.program = True
        try:
            secrecy, _, (inputs, given) = self._opened(request.urn, request.olds, request.news)
        except rpc.ValueRefusedError as error:
            failures.add(error.path, error.reason)
            return failures.response({})
        inputs.pop("__defaults", None)
        resource = self._resource(request.urn)
        _warn_of_ids(self.host, request.urn, resource.shape, secrecy)
        checked = resource.check(Call(request.urn, secrecy=secrecy), inputs, failures)
        return failures.response(resource.shape.sealed(checked, given), secrecy)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        secrecy, (old_inputs, _), (old, _), (new, wanted) = self._opened(
            request.urn, request.old_inputs, request.olds, request.news
        )
        resource = self._resource(request.urn)
        with _as_answers(request.urn, request.id, resource.shape, secrecy):
            difference = resource.diff(Call(request.urn, secrecy=secrecy), request.id, old_inputs, old, new)
        if not difference.replaces and wanted.places:
            # What has become secret lies in the clear in the state until that is written again.
            difference = dataclasses.replace(
                difference, updates=(*difference.updates, *resource.shape.bared(rpc.decode(request.olds), wanted))
            )
        return _diff_response(difference, secrecy)

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        secrecy, (inputs, _) = self._opened(request.urn, request.properties)
        resource, call = self._resource(request.urn), _call(request, secrecy, preview=request.preview)
        with _as_answers(request.urn, request.urn.rsplit("::", 1)[-1], resource.shape, secrecy):
            resource_id, state = resource.create(call, inputs)
        # A preview shows all that there will be; programs get inputs back from the SDK in any case.
        known = resource.shape.sealed if request.preview else resource.shape.recorded
        properties = rpc.encode(known(state, secrecy), keep_unknowns=request.preview)
        return provider_pb2.CreateResponse(id=resource_id, properties=properties)

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        secrecy, (inputs, given), (old, _) = self._opened(request.urn, request.inputs, request.properties)
        resource = self._resource(request.urn)
        with _as_answers(request.urn, request.id, resource.shape, secrecy):
            resource_id, state = resource.read(_call(request, secrecy), request.id, inputs, old)
        if not resource_id:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=resource_id,
            properties=rpc.encode(resource.shape.recorded(state, secrecy)),
            inputs=rpc.encode(resource.shape.sealed(inputs, given)),
        )

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        secrecy, _, (old, _), (new, _) = self._opened(request.urn, request.old_inputs, request.olds, request.news)
        resource, call = self._resource(request.urn), _call(request, secrecy, preview=request.preview)
        with _as_answers(request.urn, request.id, resource.shape, secrecy):
            state = resource.update(call, request.id, old, new)
        known = resource.shape.sealed if request.preview else resource.shape.recorded
        properties = rpc.encode(known(state, secrecy), keep_unknowns=request.preview)
        return provider_pb2.UpdateResponse(properties=properties)

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        secrecy, (inputs, _), (old, _) = self._opened(request.urn, request.old_inputs, request.properties)
        resource = self._resource(request.urn)
        with _as_answers(request.urn, request.id, resource.shape, secrecy):
            resource.delete(_call(request, secrecy), request.id, inputs, old)
        return empty_pb2.Empty()

    def _announce(self, message: str) -> None:
        """Show a message of a waiting request, beside the resource that it is for."""
        self.host.status(message, _URN.get())

    def _opened(self, urn: str, *structs: Struct) -> Any:
        """The secrets in any values of one resource, then each of the values, plain, with the secrets in it.

        No message about the resource shows that from here on.
        """
        several = [rpc.opened(rpc.decode(struct)) for struct in structs]
        secrecy = rpc.all_of(*(each for _, each in several))
        self.host.conceal(urn, secrecy)
        return secrecy, *several

    def _resource(self, urn: str) -> Resource:
        token = urn.split("::")[2].rsplit("$", 1)[-1] if urn.count("::") >= 3 else urn
        if token not in TYPES:
            known = ", ".join(TYPES)
            raise rpc.ProviderError(f"there is no resource type {token}; there are {known}", rpc.ErrorCode.NOT_FOUND)
        with self._lock:
            if not self._resources:
                raise rpc.ProviderError("the provider is not configured")
            return self._resources[token]


@contextlib.contextmanager
def _as_answers(urn: str, what: str, shape: InputShape, secrecy: rpc.Secrecy) -> Iterator[None]:
    """Answer a refusal of the service in its own words, with a code that leaves no pending operation."""
    under_way = _URN.set(urn)
    try:
        yield
    except rpc.InitFailedError as error:
        inputs = None if error.inputs is None else shape.sealed(error.inputs, secrecy)
        reasons = [secrecy.redact(reason) for reason in error.reasons]
        raise rpc.InitFailedError(error.resource_id, shape.recorded(error.outputs, secrecy), reasons, inputs) from None
    except ArmError as error:
        raise rpc.ProviderError(
            f"{what}: {error}", _CODES.get(error.status, rpc.ErrorCode.FAILED_PRECONDITION)
        ) from None
    except WorkspaceMissingError as error:
        raise rpc.ProviderError(f"{what}: {error}") from None
    except InterruptedWaitError as error:
        raise rpc.ProviderError(f"{what}: {_interrupted(error)}", rpc.ErrorCode.ABORTED) from None
    finally:
        _URN.reset(under_way)


def _interrupted(error: InterruptedWaitError) -> str:
    """The facts that are known of a request that was interrupted."""
    if error.uncertain:
        return (
            f"interrupted at {error.request}, which may have taken effect; the next `up` looks and goes on from there"
        )
    return f"interrupted{f' at {error.request}' if error.request else ''}, which changed nothing; the next `up` goes on"


def _call(request: Any, secrecy: rpc.Secrecy, *, preview: bool = False) -> Call:
    return Call(request.urn, preview, request.timeout or None, secrecy)


def _warn_of_ids(host: rpc.Host, urn: str, shape: InputShape, secrecy: rpc.Secrecy) -> None:
    for name, rule in shape.fields.items():
        if rule.in_id and (name,) in secrecy.places:
            host.warning(
                f"{name} is a secret, and it becomes part of the resource's id, which the engine keeps in clear text. "
                "Take a value that everybody may see",
                urn,
            )


def _texts(values: Values) -> dict[str, str]:
    """The settings that are known and are text."""
    plain = {name: rpc.bare(value) for name, value in values.items()}
    return {name: value for name, value in plain.items() if isinstance(value, str)}


def _signing_in(settings: dict[str, str]) -> tuple[str, arm.SignIn]:
    """The resource manager's address, and the way to sign in."""
    sign_in = arm.SignIn.read(settings)
    return arm.endpoint(settings.get("armEndpoint"), sign_in.cloud), sign_in


def _diff_response(difference: Difference, secrecy: rpc.Secrecy) -> Any:
    kinds = provider_pb2.PropertyDiff
    detailed = {secrecy.cut(path): kinds(kind=kinds.UPDATE, inputDiff=True) for path in difference.updates}
    detailed |= {secrecy.cut(path): kinds(kind=kinds.UPDATE_REPLACE, inputDiff=True) for path in difference.replaces}
    response = provider_pb2.DiffResponse
    return response(
        changes=response.DIFF_SOME if detailed else response.DIFF_NONE,
        replaces=sorted({_top(path) for path in difference.replaces}),
        diffs=sorted({_top(path) for path in detailed}),
        deleteBeforeReplace=difference.delete_first,
        detailedDiff=detailed,
        hasDetailedDiff=bool(detailed),
    )


def _top(path: str) -> str:
    return path.split(".", 1)[0].split("[", 1)[0]
