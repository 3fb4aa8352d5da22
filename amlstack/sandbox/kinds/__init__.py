"""The emulated resource types, one module each (assets share one)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.ids import OF_LOCATION, parse
from amlstack.sandbox.kinds.machine_learning import (
    assets,
    capacity,
    components,
    computes,
    data,
    datastores,
    jobs,
    managed_network,
    models,
    schedules,
    workspace_lists,
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
    from collections.abc import Mapping

    from amlstack.sandbox.kinds.base import KindContext, Reply, ResourceKind

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


def listed(context: KindContext, text: str, query: Mapping[str, str]) -> Reply | None:
    """Answers a GET of a list whose entries nobody makes: of a region, of a workspace; None for every other path."""
    if (found := OF_LOCATION.fullmatch(text)) is not None:
        return capacity.answer(context, found["location"].lower(), found["what"], query["api-version"])
    path = parse(text)
    return None if path is None else workspace_lists.answer(context, path)


def check_locks(context: KindContext, text: str, method: str) -> None:
    """Refuses a write or a deletion that a lock forbids."""
    if method in {"DELETE", "PUT", "PATCH"}:
        locks.check(context, text, deletes=method == "DELETE")
