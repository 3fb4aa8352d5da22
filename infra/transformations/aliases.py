"""azure-native's aliases of older API versions, left out.

Every resource registers its type in each API version that a stack of an older major version may hold: 51 for a compute
cluster, which is most of the time that a preview of many clusters takes.
"""

from __future__ import annotations

import copy
import re

import pulumi

_VERSIONED = re.compile(r"azure-native:[^/:]+/v\d{8}[^:]*:")


def drop(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """A stack transformation: the resource without those aliases; any other alias stays."""
    aliases = args.opts.aliases
    if not isinstance(aliases, list) or not any(map(_old, aliases)):
        return None
    opts = copy.copy(args.opts)
    opts.aliases = [alias for alias in aliases if not _old(alias)]
    return pulumi.ResourceTransformationResult(props=args.props, opts=opts)


def _old(alias: object) -> bool:
    kind = getattr(alias, "type_", None)
    return isinstance(kind, str) and _VERSIONED.match(kind) is not None
