"""The roles that a cluster's identity needs on what the workspace stands on: data, each with its reason and source.

The ids are those of Azure's built-in roles, the same in every tenant.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from infra.names import Names, Part
    from infra.settings import ClusterIdentity

_NAMESPACE: Final = uuid.UUID("6f6ad1b5-4a0c-5b8e-9d0e-0a7f0f2f4c11")
"""Any fixed UUID: the names of role assignments are made from it, so that they are known at preview."""


@dataclass(frozen=True, slots=True)
class Role:
    """One built-in role on one part of the workspace.

    Attributes:
        name: As Azure calls it.
        definition: Its id, a UUID.
        part: The resource that it is given on.
        why: What fails without it.
        source: Where the id and the need are documented.
    """

    name: str
    definition: str
    part: Part
    why: str
    source: str


CLUSTER: Final = (
    Role(
        "Storage Blob Data Contributor",
        "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
        "storage",
        "Jobs read inputs from and write outputs to blob datastores. The storage account has no shared keys, so the "
        "nodes come as the cluster's identity.",
        "learn.microsoft.com/azure/machine-learning/how-to-identity-based-service-authentication; "
        "learn.microsoft.com/azure/role-based-access-control/built-in-roles (2026-11-22)",
    ),
    Role(
        "Storage File Data Privileged Contributor",
        "69566ab7-960f-475b-8e7c-b3118f30c6bd",
        "storage",
        "The same for datastores on file shares.",
        "learn.microsoft.com/azure/machine-learning/how-to-identity-based-service-authentication; "
        "learn.microsoft.com/azure/role-based-access-control/built-in-roles (2026-11-22)",
    ),
    Role(
        "AcrPull",
        "7f951dda-4ed3-4680-a7ab-4043f3ef6b7e",
        "registry",
        "Nodes pull the images of the workspace's own environments. The registry has no admin user.",
        "learn.microsoft.com/azure/machine-learning/how-to-identity-based-service-authentication; "
        "learn.microsoft.com/azure/role-based-access-control/built-in-roles (2026-11-22)",
    ),
)
"""What the identity of a cluster gets, and nothing more."""


def identity(spec: ClusterIdentity, *, stack: str) -> dict[str, Any]:
    """A cluster's identity as azure-native takes it; written out also where there is none, so that one goes away.

    Args:
        spec: The settings.
        stack: ARM id of the stack's own identity.
    """
    users = [*([stack] if spec.kind == "stack" else ()), *spec.user_assigned]
    kinds = [*(["SystemAssigned"] if spec.kind == "system" else ()), *(["UserAssigned"] if users else ())]
    return {"type": ",".join(kinds) or "None", **({"userAssignedIdentities": users} if users else {})}


def scope(role: Role, names: Names) -> str:
    """ARM id of the resource that a role is given on."""
    return names.id(role.part)


def assignment_name(role: Role, names: Names, holder: str) -> str:
    """The name of a role assignment, a UUID: the same for the same role, scope and holder.

    Args:
        role: The role.
        names: The stack's names.
        holder: ARM id of the principal that gets it: the identity, or the cluster with an identity of its own.
    """
    return name_of(scope(role, names), role, holder)


def name_of(place: str, role: Role, holder: str) -> str:
    """The same for a role on any resource; ``place`` is its ARM id."""
    return str(uuid.uuid5(_NAMESPACE, f"{place}\n{role.definition}\n{holder}".lower()))


def definition_id(role: Role, names: Names) -> str:
    """ARM id of a role's definition in the subscription of what it is given on."""
    return definition_for(scope(role, names), role)


def definition_for(place: str, role: Role) -> str:
    """The same for a role on any resource; ``place`` is its ARM id."""
    provider = "providers/Microsoft.Authorization/roleDefinitions"
    return f"/subscriptions/{place.split('/')[2]}/{provider}/{role.definition}"
