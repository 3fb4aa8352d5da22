"""The emulated resource types, one module each (assets share one)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.kinds.machine_learning import (
    assets,
    components,
    computes,
    data,
    datastores,
    jobs,
    managed_network,
    models,
    schedules,
    workspaces,
)
from amlstack.sandbox.kinds.network import private_dns, private_endpoints, security_groups, virtual_networks
from amlstack.sandbox.kinds.platform import (
    diagnostics,
    federated_credentials,
    groups,
    identities,
    keys,
    locks,
    monitoring,
    policy,
    roles,
    vaults,
)
from amlstack.sandbox.kinds.platform import registries as container_registries
from amlstack.sandbox.kinds.storage import accounts, blob_containers, blob_services, file_shares, life_cycles

if TYPE_CHECKING:
    from amlstack.sandbox.kinds.base import ResourceKind

ALL: tuple[ResourceKind, ...] = (
    groups.KIND,
    identities.KIND,
    federated_credentials.KIND,
    accounts.KIND,
    blob_services.KIND,
    blob_containers.KIND,
    file_shares.SERVICES,
    file_shares.KIND,
    life_cycles.KIND,
    vaults.KIND,
    keys.KIND,
    monitoring.LOGS,
    monitoring.COMPONENTS,
    diagnostics.KIND,
    container_registries.KIND,
    security_groups.KIND,
    virtual_networks.KIND,
    virtual_networks.SUBNET_KIND,
    private_dns.KIND,
    private_dns.LINK_KIND,
    private_endpoints.KIND,
    private_endpoints.GROUP_KIND,
    workspaces.KIND,
    managed_network.KIND,
    computes.KIND,
    datastores.KIND,
    assets.CODES,
    assets.CODE_VERSIONS,
    assets.ENVIRONMENTS,
    assets.ENVIRONMENT_VERSIONS,
    components.CONTAINERS,
    components.VERSIONS,
    data.CONTAINERS,
    data.VERSIONS,
    models.CONTAINERS,
    models.VERSIONS,
    jobs.KIND,
    schedules.KIND,
    policy.DEFINITIONS,
    policy.SETS,
    policy.ASSIGNMENTS,
    roles.KIND,
    locks.KIND,
)
"""Every kind, in the order of docs/sandbox.md."""

_BY_TYPE = {kind.type.lower(): kind for kind in ALL}


def find(kind: str) -> ResourceKind | None:
    """The kind of a type, in any letter case."""
    return _BY_TYPE.get(kind.lower())
