"""The emulated resource types, a module for each subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.kinds import identity, monitoring, network, policy, storage, vaults
from amlstack.sandbox.kinds import vaults as container_registries
from amlstack.sandbox.kinds.machine_learning import (
    assets,
    capacity,
    computes,
    jobs,
    managed_network,
    schedules,
    workspaces,
)
from amlstack.sandbox.protocol.addresses import OF_LOCATION, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.protocol.kind import KindContext, Reply, ResourceKind

ALL: tuple[ResourceKind, ...] = (
    *identity.KINDS,
    *storage.KINDS,
    *vaults.KINDS,
    *monitoring.KINDS,
    container_registries.KIND,
    *network.KINDS,
    workspaces.KIND,
    managed_network.KIND,
    computes.KIND,
    workspaces.DATASTORES,
    assets.CODES,
    assets.CODE_VERSIONS,
    assets.ENVIRONMENTS,
    assets.ENVIRONMENT_VERSIONS,
    assets.CONTAINERS,
    assets.VERSIONS,
    assets.DATA_CONTAINERS,
    assets.DATA_VERSIONS,
    assets.MODELS_CONTAINERS,
    assets.MODELS_VERSIONS,
    jobs.KIND,
    schedules.KIND,
    *policy.KINDS,
)
"""Every kind."""

_BY_TYPE = {kind.type.lower(): kind for kind in ALL}


def find(kind: str) -> ResourceKind | None:
    """The kind of a type, in any letter case."""
    return _BY_TYPE.get(kind.lower())


def listed(context: KindContext, text: str, query: Mapping[str, str]) -> Reply | None:
    """Answers a GET of a list whose entries nobody makes: of a region, of a workspace; None for every other path."""
    if (found := OF_LOCATION.fullmatch(text)) is not None:
        return capacity.answer(context, found["location"].lower(), found["what"], query["api-version"])
    path = parse(text)
    return None if path is None else workspaces.answer(context, path)


def check_locks(context: KindContext, text: str, method: str) -> None:
    """Refuses a write or a deletion that a lock forbids."""
    if method in {"DELETE", "PUT", "PATCH"}:
        identity.check(context, text, deletes=method == "DELETE")
