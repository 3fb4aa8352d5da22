"""azure-native's resources by their tokens, with properties under the names that the provider knows.

A generated class translates names, merges options and makes an alias for each older API version, 51 of a compute
cluster: most of the time of a preview with many. `tests/infra/test_the_engine_sees_what_typed_classes_register.py`
compares what the engine gets.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pulumi

if TYPE_CHECKING:
    from collections.abc import Mapping


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
