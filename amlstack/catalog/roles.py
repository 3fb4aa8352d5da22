"""Azure's built-in roles: their names and ids, the same in every tenant."""

from __future__ import annotations

from functools import cache
from typing import Final

from amlstack.catalog.files import load

DEFINITIONS: Final = "/providers/Microsoft.Authorization/roleDefinitions/"
"""Stands between a subscription's id, or nothing, and the id of a role in the ARM id of its definition."""


@cache
def built_in() -> dict[str, str]:
    """Name → id, a UUID in small letters, of every built-in role that the catalogue knows."""
    return {name: role_id for row in load("roles") for name, role_id in row["roles"].items()}


def is_built_in(role_id: str) -> bool:
    """True where an id, in any letter case, is that of a built-in role."""
    return role_id.lower() in _ids()


@cache
def _ids() -> frozenset[str]:
    return frozenset(built_in().values())
