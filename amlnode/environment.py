"""The variables that torch.distributed and NCCL read, made from a process's place."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

from amlnode.rank import RankInfo, resolve

ROUTED = "eth0"
"""The one routed interface of Azure's nodes: NCCL's bootstrap goes over it, the data over InfiniBand all the same."""


def torch_environ(info: RankInfo) -> dict[str, str]:
    """The variables of a process with this place; what is not known (RankInfo) is left out."""
    values = {
        "MASTER_ADDR": info.master_addr,
        "MASTER_PORT": info.master_port,
        "RANK": info.rank,
        "WORLD_SIZE": info.world_size,
        "LOCAL_RANK": info.local_rank,
        "LOCAL_WORLD_SIZE": info.local_size,
        "NODE_RANK": info.node_rank,
    }
    variables = {name: str(value) for name, value in values.items() if value is not None}
    if info.nodes is not None and info.nodes > 1 and Path("/sys/class/net", ROUTED).exists():
        variables["NCCL_SOCKET_IFNAME"] = ROUTED
    return variables


def export(info: RankInfo | None = None, environ: MutableMapping[str, str] = os.environ) -> RankInfo:
    """Put the variables into the environment where they are missing; what is set already stays as it is.

    Args:
        info: This process's place; unset: resolved from ``environ``.
        environ: Where to put them.

    Raises:
        NodeError: As `resolve`.
    """
    info = info or resolve(environ)
    for name, value in torch_environ(info).items():
        if environ.get(name, "") == "":
            environ[name] = value
    return info
