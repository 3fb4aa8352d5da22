"""Registration of resources with Pulumi's SDK: tokens of azure-native, order by names, places in state and preview.

The SDK is used with registrations at less cost, a quick end, sign-in, and secret inputs. It has no settings for the
first two. Where a later SDK has other functions, nothing is left out and nothing else changes;
`tests/infra/test_the_engine_sees_what_typed_classes_register.py` sees it.
"""

from __future__ import annotations

import asyncio
import copy
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from functools import cache
from importlib import metadata
from typing import Any, NoReturn, TypeVar

import pulumi
from pulumi import _types
from pulumi.resource import DependencyResource
from pulumi.runtime import config as engine_config
from pulumi.runtime import resource as sdk
from pulumi.runtime import rpc
from pulumi.runtime.proto import source_pb2

from amlstack.base import text
from amlstack.base.findings import Finding, Level, in_file_order
from infra import resource_types

DEBUG = "AMLSTACK_DEBUG"
"""Any value has the SDK send its debug messages, which `pulumi up --debug` prints, and where each resource is made."""

_READ: Mapping[str, frozenset[str]] = {
    resource_types.JOB: frozenset({"jobId", "status"}),
    resource_types.COMPUTE: frozenset({"identity"}),
}
"""The properties that the program reads of resources that come by the thousand, by their type."""

_transfer: Callable[[pulumi.Resource, pulumi.Inputs, bool], Any] = rpc.transfer_properties


def leave_out_unread() -> None:
    """Have the SDK leave out what nothing reads, from here on."""
    rpc.transfer_properties = _transfer_what_is_read
    if not os.environ.get(DEBUG):
        pulumi.log.debug = _without_words
        # Where a resource was made is a dozen lines of ours and of the SDK's in the state, which the engine writes
        # after every step. A resource comes from a setting or a job file, and those lines do not name it.
        sdk._get_stack_trace = source_pb2.StackTrace  # noqa: SLF001


def config() -> Mapping[str, str]:
    """The engine's configuration, ``namespace:key`` → value."""
    return {**engine_config.get_config_env(), **engine_config.CONFIG.get()}


def _transfer_what_is_read(res: pulumi.Resource, props: pulumi.Inputs, custom: bool) -> Any:
    # The SDK makes an output of every property, eight objects each: of ten thousand jobs they were most of 1.5 GB.
    read = _READ.get(res.pulumi_resource_type)
    if read is not None:
        props = {name: value for name, value in props.items() if name in read}
    return _transfer(res, props, custom)


def _without_words(*_: object, **__: object) -> None:
    # The SDK sends four debug messages for each resource, and waits for each: a fifth of a large preview. The engine
    # does not let the program know whether anybody reads them.
    return


_INTERRUPTED = 130


def leave_at_once() -> None:
    """Have this process end without a wait where the engine, or a signal, has ended the program.

    The engine's Python host runs registrations in threads and, whatever ended the program, waits for all of them. After
    a Ctrl-C the engine answers none of them any more, and kills the host after five seconds of that. What was in flight
    is the engine's to record.

    To be called while the program runs. Where the SDK has another way of running it, nothing changes.
    """
    executor = getattr(asyncio.get_running_loop(), "_default_executor", None)
    if executor is not None:
        executor.shutdown = _leaving(executor.shutdown)


def _leaving(shutdown: Callable[..., Any]) -> Callable[..., Any]:
    def left(*args: Any, **kwargs: Any) -> Any:
        # A signal is a KeyboardInterrupt; an engine that is ending, a SystemExit of the SDK. An error that the program
        # has shown was handled by now: what is under way then goes on, and is waited for.
        ended = sys.exc_info()[1]
        if isinstance(ended, KeyboardInterrupt | SystemExit):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_INTERRUPTED)
        return shutdown(*args, **kwargs)

    return left


SIGN_IN = (
    "environment",
    "tenantId",
    "clientId",
    "clientSecret",
    "clientCertificatePath",
    "clientCertificatePassword",
    "useOidc",
    "oidcToken",
    "oidcTokenFilePath",
    "oidcRequestToken",
    "oidcRequestUrl",
    "oidcAudience",
    "useMsi",
    "useDefaultAzureCredential",
    "disableInstanceDiscovery",
    "auxiliaryTenantIds",
)
"""Of azure-native; ``amlstack/provider/schema.json`` describes each."""
SIGN_IN_SECRETS = ("clientSecret", "clientCertificatePassword", "oidcToken", "oidcRequestToken")
_NAMESPACE = "azure-native:"


def register_provider(config: Mapping[str, str], arm_endpoint: str | None) -> pulumi.ProviderResource | None:
    """Has every resource of our provider made by one that signs in with azure-native's settings, if there are any.

    Args:
        config: The engine's configuration, ``namespace:key`` → value.
        arm_endpoint: The stack's own resource manager.

    Returns:
        That provider, for what no transformation reaches; None where the engine makes one.
    """
    secret = [key for key in config if engine_config.is_config_secret(key)]
    settings = sign_in_settings(config, secret)
    if not settings:
        return None
    if arm_endpoint:
        settings["armEndpoint"] = arm_endpoint
    provider = pulumi.ProviderResource("amlstack", "amlstack", settings)

    def assign(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not args.type_.startswith("amlstack:") or not isinstance(args.resource, pulumi.CustomResource):
            return None
        opts = copy.copy(args.opts)
        opts.provider = provider
        return pulumi.ResourceTransformationResult(props=args.props, opts=opts)

    pulumi.runtime.register_stack_transformation(assign)
    return provider


def sign_in_settings(config: Mapping[str, str], secret: Collection[str] = ()) -> dict[str, pulumi.Input[str]]:
    """azure-native's settings for signing in; what is secret in the stack, or always is, stays secret.

    Args:
        config: The engine's configuration, ``namespace:key`` → value.
        secret: Keys whose values are secret in it.
    """
    found: dict[str, pulumi.Input[str]] = {}
    for name in SIGN_IN:
        key = f"{_NAMESPACE}{name}"
        if key in config:
            hidden = name in SIGN_IN_SECRETS or key in secret
            found[name] = pulumi.Output.secret(config[key]) if hidden else config[key]
    return found


def seal(
    secret: Collection[str],
) -> Callable[[pulumi.ResourceTransformationArgs], pulumi.ResourceTransformationResult | None]:
    """A stack transformation: every input that is one of these texts is secret, however deep it lies.

    A setting that can be secret is passed on as it is, so that it is found by its value, in resources to come as well.
    """

    def marked(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        return pulumi.ResourceTransformationResult(props=_marked(args.props, secret), opts=args.opts)

    return marked


def _marked(value: Any, secret: Collection[str]) -> Any:
    if isinstance(value, str):
        return pulumi.Output.secret(value) if value in secret else value
    if _types.is_input_type(type(value)):
        twin = copy.copy(value)
        twin.__dict__.update({name: _marked(item, secret) for name, item in value.__dict__.items()})
        return twin
    if isinstance(value, dict):
        return {key: _marked(item, secret) for key, item in value.items()}
    return [_marked(item, secret) for item in value] if isinstance(value, list) else value


T = TypeVar("T")


def behind(value: str, *resources: pulumi.Resource) -> pulumi.Output[str]:
    """A value that is known at preview and that depends on resources nevertheless.

    Args:
        value: The value, composed from names.
        resources: What has to be there before anything can be called so.
    """
    return _depending(value, resources)


def after(*resources: pulumi.Resource) -> pulumi.Output[Any]:
    """All of some resources as one entry of ``depends_on``, cheap to share by many; a component is not expanded."""
    return _depending(None, resources)


def known_of(texts: Sequence[pulumi.Output[str]]) -> pulumi.Output[list[str]]:
    """Those of some texts that are known; it depends on no resource that they come from."""

    async def result() -> list[str]:
        return [each for each in [await text.future() for text in texts] if each]

    async def known() -> bool:
        return True

    async def nothing() -> set[pulumi.Resource]:
        return set()

    return pulumi.Output(nothing(), result(), known())


def _depending(value: T, resources: Iterable[pulumi.Resource]) -> pulumi.Output[T]:
    async def by_name() -> set[pulumi.Resource]:
        urns = [await each.urn.future() for each in resources]
        return {DependencyResource(urn) for urn in urns if urn}

    async def result() -> T:
        return value

    async def known() -> bool:
        return True

    return pulumi.Output(by_name(), result(), known())


def show(findings: Iterable[Finding]) -> None:
    """Each finding as a line of the engine."""
    log = {Level.ERROR: pulumi.log.error, Level.WARNING: pulumi.log.warn, Level.INFO: pulumi.log.info}
    for finding in in_file_order(findings):
        log[finding.level](text.output(str(finding)))


def end(wrong: Sized) -> NoReturn:
    """End the program before anything is registered; what is wrong has been shown.

    Raises:
        pulumi.RunError: Always.
    """
    things = "1 thing is" if len(wrong) == 1 else f"{len(wrong)} things are"
    raise pulumi.RunError(f"{things} wrong with this stack; nothing was changed.")


def refuse(wrong: list[Finding]) -> NoReturn:
    """Show what is wrong, and end the program.

    Raises:
        pulumi.RunError: Always.
    """
    show(wrong)
    end(wrong)


def register(
    token: str, name: str, properties: Mapping[str, Any], opts: pulumi.ResourceOptions
) -> pulumi.CustomResource:
    """Register a resource of azure-native.

    Args:
        token: Its type.
        name: Name in the stack.
        properties: On the wire's names; one that is None is left out.
        opts: Pulumi's own options; the provider's version is added to them.
    """
    opts.version = _version()
    return pulumi.CustomResource(token, name, dict(properties), opts)


def output(resource: pulumi.Resource, name: str) -> pulumi.Output[Any]:
    """A property of a registered resource, as the provider gives it back."""
    value: pulumi.Output[Any] = resource.__dict__[name]
    return value


@cache
def _version() -> str:
    return metadata.version("pulumi-azure-native")


class _Parent(pulumi.ComponentResource):
    def __init__(self, kind: str) -> None:
        super().__init__(kind, kind.rsplit(":", 1)[-1].lower())
        self.register_outputs({})


class StackTree(dict[str, pulumi.Resource]):
    """The parents of a stack by their types; one without children is not registered."""

    def __missing__(self, kind: str) -> pulumi.Resource:
        """Register a parent, at its first child."""
        made = self[kind] = _Parent(kind)
        return made
