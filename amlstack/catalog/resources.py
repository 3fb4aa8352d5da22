"""Built-in roles of Azure, the same in every tenant, and properties of resources that change without anybody's edit."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amlstack.catalog.files import rows

if TYPE_CHECKING:
    from datetime import date

DEFINITIONS: Final = "/providers/Microsoft.Authorization/roleDefinitions/"
"""Stands between a subscription's id, or nothing, and the id of a role in the ARM id of its definition."""


@cache
def built_in() -> dict[str, str]:
    """Name → id, a UUID in small letters, of every built-in role that the catalogue knows."""
    return {name: role_id for row in rows("roles") for name, role_id in row["roles"].items()}


def is_built_in(role_id: str) -> bool:
    """True where an id, in any letter case, is that of a built-in role."""
    return role_id.lower() in _ids()


@cache
def _ids() -> frozenset[str]:
    return frozenset(built_in().values())


class OwnChange(NamedTuple):
    """One kind of change that is nobody's edit.

    Attributes:
        who: What makes it, for people.
        source: From where that is known.
        checked: When.
    """

    who: str
    source: str
    checked: date


def change_of(kind: str, path: str, there: Any) -> OwnChange | None:
    """The cause that changes a property by itself; None where none is known.

    Args:
        kind: Type of the resource without its API version, ``azure-native:machinelearningservices:Compute``.
        path: Path of the property in the engine's grammar, ``tags["hidden-link:…"]``.
        there: Its value in Azure; None for none.
    """
    for row in rows("own_changes"):
        if kind.startswith(row["type"]) and re.fullmatch(row["path"], path):
            categories = row.get("categories")
            if categories and (not isinstance(there, dict) or there.get("category") not in categories):
                continue
            return OwnChange(row["who"], row["source"], row["checked"])
    return None
