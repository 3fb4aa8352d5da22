"""Registration of resources: tokens of azure-native, order by names, and their place in state and preview."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pulumi
from pulumi.resource import DependencyResource

from amlstack.base import text
from amlstack.base.findings import Level, in_file_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Sized

    from amlstack.base.findings import Finding

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
