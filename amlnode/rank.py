"""The rank of this process among the processes of its job, for every way in which Azure ML starts them.

Reads PyTorch's variables (Azure ML per process, torchrun, a per-node launcher), those of Open MPI, Intel MPI and Hydra,
and TensorFlow's TF_CONFIG. What contradicts itself is an error, never a guess: two processes that take the same rank
hang all the others.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from amlnode.errors import NodeError
from amlnode.rank_info import LOOPBACK, RankInfo, port
from amlnode.rank_sources.mpi import from_mpi
from amlnode.rank_sources.pytorch import from_torch
from amlnode.rank_sources.tfconfig import from_tf_config

if TYPE_CHECKING:
    from collections.abc import Mapping


def resolve(environ: Mapping[str, str] = os.environ) -> RankInfo:
    """This process's place.

    A per-node launcher under mpirun leaves both PyTorch's and MPI's variables: PyTorch's then win, being the finer
    ones, provided that they fit into MPI's.

    Raises:
        NodeError: The variables are incomplete, are no numbers, or contradict each other.
    """
    torch, mpi = from_torch(environ), from_mpi(environ)
    if torch is not None:
        if mpi is not None:
            check_nested(torch, mpi)
            if torch.local_size is None and torch.world_size == mpi.world_size:
                return replace(torch, local_size=mpi.local_size, node_rank=mpi.node_rank, nodes=mpi.nodes)
            if torch.local_size is None:
                each = torch.world_size // mpi.world_size
                return replace(torch, local_size=each, node_rank=mpi.rank, nodes=mpi.world_size)
        return torch
    if mpi is not None:
        return mpi
    if environ.get("TF_CONFIG"):
        return from_tf_config(environ)
    return RankInfo(
        rank=0,
        world_size=1,
        local_rank=0,
        local_size=1,
        node_rank=0,
        nodes=1,
        master_addr=environ.get("MASTER_ADDR") or LOOPBACK,
        master_port=port(environ, several=False),
        source="single",
    )


def check_nested(torch: RankInfo, mpi: RankInfo) -> None:
    """PyTorch's ranks are MPI's own, or those that a per-node launcher started below one MPI process per node."""
    if torch.world_size == mpi.world_size and torch.rank == mpi.rank:
        return
    if mpi.local_size == 1 and torch.world_size % mpi.world_size == 0 and torch.world_size > mpi.world_size:
        each = torch.world_size // mpi.world_size
        if torch.rank // each == mpi.rank and torch.rank % each == torch.local_rank:
            return
    raise NodeError(
        f"PyTorch's variables give rank {torch.rank} of {torch.world_size}, "
        f"MPI's ({mpi.source}) rank {mpi.rank} of {mpi.world_size}",
        "Both are the same, or one MPI process per node has started that node's PyTorch ranks",
        "Remove RANK and WORLD_SIZE from the image's or the job's variables: MPI gives them to each process.",
    )
