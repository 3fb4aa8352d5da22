"""azure-native's aliases of older API versions, without which a stack of an older major version is replaced.

A generated class gives every resource its type in each API version that such a stack may hold. Computing them
takes much of a preview, so only a stack that asks for them (`keep_aliases`) has them.
"""

from __future__ import annotations

import copy
import inspect
import re
from functools import cache
from importlib import import_module

import pulumi

_VERSIONED = re.compile(r"azure-native:[^/:]+/v\d{8}[^:]*:")
_IN_SOURCE = re.compile(r'Alias\(type_="([^"]+)"\)')


def drop(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """A stack transformation: the resource without those aliases; any other alias stays."""
    aliases = args.opts.aliases
    if not isinstance(aliases, list) or not any(map(_old, aliases)):
        return None
    return _with_aliases(args, [alias for alias in aliases if not _old(alias)])


def keep(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """A stack transformation: what is registered by its token has the aliases that its class would give it.

    What moved to another parent is found in each older API version at its former place, too.
    """
    aliases = args.opts.aliases or []
    if not args.type_.startswith("azure-native:") or not isinstance(aliases, list) or any(map(_old, aliases)):
        return None
    places = [alias for alias in aliases if isinstance(alias, str)]
    older = older_types(args.type_)
    moved = [place.replace(f"${args.type_}::", f"${kind}::") for place in places for kind in older]
    return _with_aliases(args, [*aliases, *moved, *(pulumi.Alias(type_=kind) for kind in older)])


@cache
def older_types(token: str) -> tuple[str, ...]:
    """The types that azure-native's class of a token has as aliases, as its generated source lists them."""
    _, module, name = token.split(":")
    kind = getattr(import_module(f"pulumi_azure_native.{module}"), name)
    return tuple(_IN_SOURCE.findall(inspect.getsource(kind)))


def _with_aliases(
    args: pulumi.ResourceTransformationArgs, aliases: list[pulumi.Input[str | pulumi.Alias]]
) -> pulumi.ResourceTransformationResult:
    opts = copy.copy(args.opts)
    opts.aliases = aliases
    return pulumi.ResourceTransformationResult(props=args.props, opts=opts)


def _old(alias: object) -> bool:
    kind = getattr(alias, "type_", None)
    return isinstance(kind, str) and _VERSIONED.match(kind) is not None
