"""Secret settings, marked as secret in whatever resource they are passed on to."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi import _types

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


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
