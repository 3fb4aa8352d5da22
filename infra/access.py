"""Azure's built-in roles that people, groups and applications get on a workspace, each with its reason and source."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding
from amlstack.base.text import did_you_mean
from infra.roles import Role, needed
from infra.settings import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.names import Names
    from infra.settings import Principal, Reading, Settings

_NAMESPACE: Final = uuid.UUID("0b7f5a52-6c0e-4f0d-9a51-6f4f7b3a2d90")
"""Any fixed UUID: the names of role assignments are made from it, so that they are known at preview."""
ROLES: Final = needed("people")
"""The roles that settings name; a role that assigns roles (Owner) is none of them."""

PRINCIPAL_TYPES: Final = {"user": "User", "group": "Group", "service_principal": "ServicePrincipal"}
"""By the settings' word: Azure's."""
BY_NAME: Final = {role.name.lower(): role for role in ROLES}
"""The roles by their names in small letters."""


def assignment_name(role: Role, principal: Principal, names: Names) -> str:
    """The name of a role assignment, a UUID: the same for the same role, workspace and principal."""
    return str(uuid.uuid5(_NAMESPACE, f"{names.workspace_id}\n{role.definition}\n{principal.id}".lower()))


def check(reading: Reading, settings: Settings) -> Iterator[Finding]:
    """Roles that are none of Azure ML's, and principals that get one twice."""
    seen: dict[tuple[str, str], str] = {}
    for index, entry in enumerate(settings.access):
        if reading.doubts("access", index):
            continue
        found = BY_NAME.get(entry.role.strip().lower())
        if found is None:
            loc: tuple[str | int, ...] = ("access", index, "role")
            names = [each.name for each in ROLES]
            what = f"`{entry.role}` is no role that a stack gives on a workspace"
            rule = "A role is one of Azure's built-in ones for a workspace, by its name"
            remedy = did_you_mean(entry.role, names, otherwise=f"There are {', '.join(names)}.")
            yield reading.locate(loc, Finding("role-unknown", dotted(loc), what, rule, remedy))
            continue
        for position, principal in enumerate(entry.principals):
            loc = ("access", index, "principals", position)
            key = found.definition, principal.id.lower()
            if key in seen:
                what = f"`{principal.id}` gets the role {found.name} here and at {seen[key]}"
                rule = "Azure keeps one assignment of a role to a principal on a workspace"
                yield reading.locate(loc, Finding("setting-twice", dotted(loc), what, rule))
            seen.setdefault(key, dotted(loc))
