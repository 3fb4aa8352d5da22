"""The requests of a stack that Azure Policy is asked about, from its settings and without an engine.

The program itself runs, against a monitor that keeps what it is asked to register and answers as an engine does at a
preview. What only Azure gives (the id of a new identity's principal) is not known.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from logging.handlers import BufferingHandler
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format, struct_pb2
from pulumi import RunError
from pulumi.runtime import mocks
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import SETTINGS
from pulumi.runtime.stack import run_pulumi_func

from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget
from amlstack.base.pulumi_wire import UNKNOWN_TEXT, decode
from amlstack.cli import stack_files
from amlstack.rpc import ProviderError
from amlstack.sandbox.azure_native import shape
from infra.components import registration
from infra.components.stack import StackDeclaration, build
from infra.components.workspace.existing_workspace import FUNCTION as LOOK_UP
from policies.tenant.verdicts import DeclaredStack, indexed

if TYPE_CHECKING:
    from infra.names import Account
    from infra.settings import Settings

_PREFIX = "azure-native:"
_GROUP = "Microsoft.Resources/subscriptions/resourceGroups"
_WORKSPACES = "microsoft.machinelearningservices/workspaces"


def declared_stack(settings: Settings, who: Account, *, known: bool, stack: str) -> DeclaredStack:
    """The stack as a tenant's policies see it.

    Args:
        settings: The settings, with nothing wrong.
        who: Subscription and tenant.
        known: Whether the subscription is the stack's own, and not one of zeros.
        stack: The stack's name.
    """
    targets, unknown = requests(resources_of(settings, who, stack=stack))
    group = next((one for one in targets if one.type == _GROUP), None)
    name = group.name if group else _group_of(targets)
    location, tags = (group.body.get("location"), group.body.get("tags") or {}) if group else (None, None)
    place = PolicyPlace.in_group(who.subscription, name, location=location, tags=tags)
    if not known:
        place.subscription.clear()
    return DeclaredStack(tuple(targets), place, tuple(unknown))


def _group_of(targets: list[PolicyTarget]) -> str:
    """The resource group that somebody else owns."""
    of_workspace = (one.id.split("/") for one in targets if one.type.lower().startswith(_WORKSPACES))
    return next((parts[4] for parts in of_workspace), "")


def requests(registered: Iterable[RegisteredResource]) -> tuple[list[PolicyTarget], list[str]]:
    """The requests of registered resources of Azure, and the types of which none is known."""
    targets: list[PolicyTarget] = []
    unknown: dict[str, None] = {}
    for one in registered:
        if not one.token.startswith(_PREFIX):
            continue  # what runs in a workspace: Azure Policy judges none of it
        try:
            kind, version = shape.find(one.token)
        except ProviderError:
            unknown[one.token.removeprefix(_PREFIX)] = None
            continue
        body: Mapping[str, Any] = shape.body(kind, one.properties)
        type_ = _type_of(kind.path)
        targets.append(
            PolicyTarget(type_, kind.id_of(one.subscription, one.properties), body, version, indexed(type_, body))
        )
    return targets, list(unknown)


def _type_of(path: str) -> str:
    """``Microsoft.X/a/b`` of ``…/providers/Microsoft.X/a/{one}/b/{two}``."""
    before, found, below = path.rpartition("/providers/")
    if not found:
        return _GROUP
    namespace, _, rest = below.partition("/")
    # Types and names take turns; a name may be fixed, as in `blobServices/default/containers/{containerName}`.
    return "/".join([namespace, *rest.split("/")[::2]]) if before or namespace else _GROUP


@dataclass(frozen=True, slots=True)
class RegisteredResource:
    """One resource as the program registers it.

    Attributes:
        token: Its Pulumi type.
        name: Its name in the stack.
        properties: Its inputs, plain; `amlstack.base.pulumi_wire.UNKNOWN` for what only Azure gives.
        subscription: That of its provider.
    """

    token: str
    name: str
    properties: Mapping[str, Any]
    subscription: str


_STATE = (
    "callbacks", "dry_run", "engine", "monitor", "monitor_features", "organization", "project", "rpc_manager", "stack",
)  # fmt: skip
"""Of the SDK, what a run of the program sets."""


_OUTPUTS = {"amlstack:network:Isolation": {"mode": "wanted"}}
"""Of our provider, what it decides: a workspace that is made now gets the isolation that is wanted."""


class NotRenderedError(Exception):
    """The program refuses the stack; the message is what it shows."""


def resources_of(settings: Settings, who: Account, *, stack: str) -> tuple[RegisteredResource, ...]:
    """The custom resources of a stack, by type and name; its runs are left out.

    Args:
        settings: The settings, with nothing wrong.
        who: Subscription and tenant.
        stack: The stack's name.

    Raises:
        NotRenderedError: The program refuses the stack.
    """
    before = {name: getattr(SETTINGS, name) for name in _STATE}
    try:
        # The SDK keeps its state in context variables: those of a copy end with it.
        found = contextvars.copy_context().run(_run, settings, who, stack)
    finally:
        # Yet what is first set in any context becomes the default of all.
        for name, value in before.items():
            setattr(SETTINGS, name, value)
    # Registrations run beside each other, in another order each time.
    return tuple(sorted(found, key=lambda one: (one.token, one.name)))


def _run(settings: Settings, who: Account, stack: str) -> list[RegisteredResource]:
    shown = BufferingHandler(sys.maxsize)
    logger = logging.Logger("amlstack.rendered", logging.ERROR)
    logger.addHandler(shown)
    monitor = KeepingMonitor(who.subscription)

    async def declared() -> None:
        await build(StackDeclaration(settings, (), who))

    async def whole() -> None:
        project = stack_files.project_name()
        registration.leave_out_unread()
        mocks.set_mocks(NoMocks(), project=project, stack=stack, preview=True, logger=logger, monitor=monitor)
        await run_pulumi_func(declared)

    with asyncio.Runner() as runner:
        try:
            runner.run(whole())
        except RunError as error:
            raise NotRenderedError(" ".join(each.getMessage() for each in shown.buffer) or str(error)) from None
    return monitor.found


_GIVEN = ("clientId", "principalId", "tenantId")
"""Properties that only Azure gives and that the program passes on."""


class NoMocks(mocks.Mocks):
    """The mocks that the SDK requires beside a monitor; nobody asks them."""

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:
        """Nothing."""
        del args
        return {}, None

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """Nothing."""
        del args
        return "", {}


class KeepingMonitor(mocks.MockMonitor):
    """Keeps each custom resource; the SDK's own would leave an event loop open in each of its threads."""

    def __init__(self, subscription: str) -> None:
        """Make a monitor of a program whose default provider has this subscription."""
        super().__init__(NoMocks())
        self.found: list[RegisteredResource] = []
        self._subscription = subscription
        self._of_providers: dict[str, str] = {}

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - of the protocol
        """A resource that the program registers."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if not request.custom:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        inputs = decode(request.object)
        if request.type.startswith("pulumi:providers:"):
            self._of_providers[urn] = str(inputs.get("subscriptionId") or "")
        else:
            # A reference to a provider is its URN and its id.
            subscription = self._of_providers.get(request.provider.rpartition("::")[0]) or self._subscription
            self.found.append(RegisteredResource(request.type, request.name, inputs, subscription))
        answer = _answer(request.object, _OUTPUTS.get(request.type, {}))
        return resource_pb2.RegisterResourceResponse(urn=urn, id=UNKNOWN_TEXT, object=answer)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - of the protocol
        """A resource that exists: nothing of it is known."""
        urn = self.make_urn(request.parent, request.type, request.name)
        return resource_pb2.ReadResourceResponse(urn=urn, properties=request.properties)

    def Invoke(self, request: Any) -> Any:  # noqa: N802 - of the protocol
        """A function of a provider: nobody is asked, and what the settings give by `existing` is taken to be there."""
        answer = struct_pb2.Struct()
        if request.tok == LOOK_UP:
            answer.update({"status": 200, "properties": {}})
        found = resource_pb2.ResourceInvokeResponse()
        getattr(found, "return").CopyFrom(answer)
        return found


def _answer(inputs: struct_pb2.Struct, outputs: Mapping[str, str]) -> struct_pb2.Struct:
    """The provider's forecast: the inputs, a group's name, and values that only Azure gives as not known."""
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
