"""In what order the engine replaces and deletes, as data: which property of a resource comes from which other resource.

The engine deletes what depends on a resource before the resource itself only where a property depends on it; what is
merely listed in ``depends_on`` stays when the resource is replaced.

The SDK looks for circles each time that a resource depends on another one, through all that the other one depends on: a
thousand jobs behind a guard of a thousand clusters would be a million steps. What comes before everything is therefore
resolved to its names once, and those are what each resource depends on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pulumi
from pulumi.resource import DependencyResource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
