"""The roles that identities of workspace and clusters need on its parts: data, each with its reason and source.

Their ids are the catalogue's (`amlstack/catalog/data/roles.json`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amlstack.catalog import resources

if TYPE_CHECKING:
    from infra.names import Part
    from infra.settings import ClusterIdentity

_NAMESPACE: Final = uuid.UUID("6f6ad1b5-4a0c-5b8e-9d0e-0a7f0f2f4c11")
"""Any fixed UUID: the names of role assignments are made from it, so that they are known at preview."""


@dataclass(frozen=True, slots=True)
class Role:
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


_AUTHENTICATION: Final = (
    "learn.microsoft.com/azure/machine-learning/how-to-identity-based-service-authentication (2026-11-22)"
)
_TELEMETRY: Final = "learn.microsoft.com/azure/azure-monitor/app/azure-ad-authentication (2026-11-22)"
_KEYS: Final = "learn.microsoft.com/azure/machine-learning/concept-customer-managed-keys (2026-11-22)"

_BLOB: Final = "Storage Blob Data Contributor"
_CONTRIBUTOR: Final = "Contributor"

CLUSTER: Final = (
    Role(
        _BLOB,
        "storage",
        "Jobs read inputs from and write outputs to blob datastores. The storage account has no shared keys, so the "
        "nodes come as the cluster's identity.",
        _AUTHENTICATION,
    ),
    Role(
        "Storage File Data Privileged Contributor",
        "storage",
        "The same for datastores on file shares.",
        _AUTHENTICATION,
    ),
    Role(
        "AcrPull",
        "registry",
        "Nodes pull the images of the workspace's own environments. The registry has no admin user.",
        _AUTHENTICATION,
    ),
)
"""Roles of a cluster's identity on every stack."""

CLUSTER_TELEMETRY: Final = (
    Role(
        "Monitoring Metrics Publisher",
        "insights",
        "Code of a job that sends metrics or traces to application insights as the cluster's identity, which is the "
        "only way where its keys are turned off.",
        _TELEMETRY,
    ),
)
"""Further roles of a cluster's identity on every stack but `sandbox`."""

WORKSPACE: Final = (
    Role(
        _CONTRIBUTOR,
        "workspace",
        "The workspace manages itself as its identity: its computes, datastores and assets.",
        _AUTHENTICATION,
    ),
    Role(
        _CONTRIBUTOR,
        "storage",
        "The workspace reads the account's properties and makes its containers and shares.",
        _AUTHENTICATION,
    ),
    Role(
        _BLOB,
        "storage",
        "The workspace keeps code, logs and outputs of runs as blobs, and the studio shows data. The storage account "
        "has no shared keys.",
        _AUTHENTICATION,
    ),
    Role(
        _CONTRIBUTOR,
        "key_vault",
        "The workspace reads and sets the vault's properties.",
        _AUTHENTICATION,
    ),
    Role(
        "Key Vault Administrator",
        "key_vault",
        "The workspace keeps the secrets of connections and datastores there; the vault goes by roles.",
        _AUTHENTICATION,
    ),
    Role(
        _CONTRIBUTOR,
        "registry",
        "The workspace builds and stores the images of its own environments. The registry has no admin user.",
        _AUTHENTICATION,
    ),
    Role(
        _CONTRIBUTOR,
        "insights",
        "The workspace connects its runs with application insights.",
        _AUTHENTICATION,
    ),
)
"""Roles of a workspace's user-assigned identity, as Azure documents them, each on its own part."""

ENCRYPTION: Final = Role(
    "Key Vault Crypto Service Encryption User",
    "key_vault",
    "Whoever encrypts the workspace's metadata with your key gets it, wraps and unwraps with it.",
    _KEYS,
)
"""Role of the workspace's identity on the vault of a customer-managed key."""


APPROVER: Final = Role(
    "Azure AI Enterprise Network Connection Approver",
    "storage",
    "Under `only_approved` the managed network makes private endpoints to the account of a datastore, and the "
    "workspace approves them.",
    "learn.microsoft.com/azure/machine-learning/how-to-managed-network (2026-11-22)",
)
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
