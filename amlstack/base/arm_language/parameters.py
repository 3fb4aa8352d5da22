"""Parameters of definitions and initiatives of Azure Policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_defaults(declared: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of declared parameters: what is given, else the default; those with neither are left out.

    Args:
        declared: ``{name: {"type", "defaultValue", …}}``.
        given: Values by name, in any letter case.
    """
    by_name = {name.lower(): value for name, value in given.items()}
    values = {
        name: each["defaultValue"]
        for name, each in declared.items()
        if isinstance(each, Mapping) and "defaultValue" in each
    }
    return {**values, **{name: by_name[name.lower()] for name in declared if name.lower() in by_name}}
