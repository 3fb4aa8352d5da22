"""In what order the engine replaces and deletes, as data: which property of a resource comes from which other resource.

The engine deletes what depends on a resource before the resource itself only where a property depends on it; what is
merely listed in ``depends_on`` stays when the resource is replaced.
"""

from __future__ import annotations

import pulumi


def behind(value: str, *resources: pulumi.Resource) -> pulumi.Output[str]:
    """A value that is known at preview and that depends on resources nevertheless.

    Args:
        value: The value, composed from names.
        resources: What has to be there before anything can be called so.
    """
    return pulumi.Output.all(*(each.urn for each in resources)).apply(lambda _: value)
