"""The emulated resource types, a module for each subject."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from amlstack.sandbox.kinds import authorization, neighbours, network, private_link, storage
from amlstack.sandbox.kinds.machine_learning import (
    assets,
    components,
    computes,
    jobs,
    managed_network,
    schedules,
    workspaces,
)
from amlstack.sandbox.protocol.addresses import OF_LOCATION, parse

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.kind import KindContext, Reply, ResourceKind

ALL: tuple[ResourceKind, ...] = (
    *authorization.KINDS,
    *storage.KINDS,
    *neighbours.KINDS,
    *network.KINDS,
    *private_link.KINDS,
    *workspaces.KINDS,
    managed_network.KIND,
    computes.KIND,
    *assets.KINDS,
    *components.KINDS,
    jobs.KIND,
    schedules.KIND,
)
"""Every kind."""

_BY_TYPE = {kind.type.lower(): kind for kind in ALL}


def find(kind: str) -> ResourceKind | None:
    """The kind of a type, in any letter case."""
    return _BY_TYPE.get(kind.lower())


def listed(context: KindContext, text: str, query: Mapping[str, str]) -> Reply | None:
    """Answers a GET of a list whose entries nobody makes: of a region, of a workspace; None for every other path."""
    if (found := OF_LOCATION.fullmatch(text)) is not None:
        return computes.answer(context, found["location"].lower(), found["what"], query["api-version"])
    path = parse(text)
    return None if path is None else workspaces.answer(context, path)
