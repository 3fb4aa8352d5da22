"""Roles on a workspace and its parts, each with its reason and source: of identities, people and applications."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amlstack.base.findings import Finding
from amlstack.base.text import did_you_mean
from amlstack.catalog import resources
from amlstack.catalog.files import rows

if TYPE_CHECKING:
    from infra.names import Names, Part
    from infra.settings import ClusterIdentity, Principal, Reading, Settings

_NAMESPACE: Final = uuid.UUID("6f6ad1b5-4a0c-5b8e-9d0e-0a7f0f2f4c11")
"""Any fixed UUID: the names of role assignments are made from it, so that they are known at preview."""


class Role(NamedTuple):
    """One built-in role on one part of the workspace.

    Attributes:
        name: Azure's name of it.
        part: The resource that it is given on.
        why: What fails without it.
        source: Where the need is documented.
    """

    name: str
    part: Part
    why: str
    source: str

    @property
    def definition(self) -> str:
        """Its id, a UUID.

        Raises:
            KeyError: No built-in role has this name.
        """
        return resources.built_in()[self.name]


def needed(of: str) -> tuple[Role, ...]:
    """The roles of the catalogue (`amlstack/catalog/data/needed_roles.json`) that a holder needs."""
    fields = ("name", "part", "why", "source")
    return tuple(Role(*(row[name] for name in fields)) for row in rows("needed_roles") if row["of"] == of)


CLUSTER: Final = needed("cluster")
"""Roles of a cluster's identity on every stack."""

CLUSTER_TELEMETRY: Final = needed("cluster telemetry")
"""Further roles of a cluster's identity on every stack but `sandbox`."""

WORKSPACE: Final = needed("workspace")
"""Roles of a workspace's user-assigned identity, as Azure documents them, each on its own part."""

ENCRYPTION: Final = needed("encryption")[0]
"""Role of the workspace's identity on the vault of a customer-managed key."""

APPROVER: Final = needed("approver")[0]
"""Role of the workspace's identity on the accounts of datastores that outbound rules lead to."""


def identity(spec: ClusterIdentity, *, stack: str) -> dict[str, Any]:
    """A cluster's identity as azure-native takes it; written out also where there is none, so that one goes away.

    Args:
        spec: The settings.
        stack: ARM id of the stack's own identity.
    """
    users = [*([stack] if spec.kind == "stack" else ()), *spec.user_assigned]
    kinds = [*(["SystemAssigned"] if spec.kind == "system" else ()), *(["UserAssigned"] if users else ())]
    return {"type": ",".join(kinds) or "None", **({"userAssignedIdentities": users} if users else {})}


def assignment_name(scope: str, role: Role, holder: str) -> str:
    """The name of a role assignment, a UUID: the same for the same scope, role and holder.

    Args:
        scope: ARM id of the resource that the role is given on.
        role: The role.
        holder: ARM id of the principal that gets it: the identity, or the cluster with an identity of its own.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{scope}\n{role.definition}\n{holder}".lower()))


def definition_id(scope: str, role: Role) -> str:
    """ARM id of a role's definition, in the subscription of the resource that it is given on."""
    return f"/subscriptions/{scope.split('/')[2]}{resources.DEFINITIONS}{role.definition}"


_OF_PEOPLE: Final = uuid.UUID("0b7f5a52-6c0e-4f0d-9a51-6f4f7b3a2d90")
"""Any fixed UUID: the names of role assignments are made from it, so that they are known at preview."""
ROLES: Final = needed("people")
"""The roles that settings name; a role that assigns roles (Owner) is none of them."""

PRINCIPAL_TYPES: Final = {"user": "User", "group": "Group", "service_principal": "ServicePrincipal"}
"""By the settings' word: Azure's."""
BY_NAME: Final = {role.name.lower(): role for role in ROLES}
"""The roles by their names in small letters."""


def access_name(role: Role, principal: Principal, names: Names) -> str:
    """The name of a role assignment, a UUID: the same for the same role, workspace and principal."""
    return str(uuid.uuid5(_OF_PEOPLE, f"{names.workspace_id}\n{role.definition}\n{principal.id}".lower()))


def check_access(reading: Reading, settings: Settings) -> Iterator[Finding]:
    """Roles that are none of Azure ML's, and principals that get one twice."""
    from infra.settings import dotted  # noqa: PLC0415 - `check` of a lone job file has no settings to load

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
