"""Ranks from MPI's variables: those of Open MPI, and those of Intel MPI and Hydra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlnode.errors import NodeError
from amlnode.rank_info import LOOPBACK, RankInfo, number, port, within

if TYPE_CHECKING:
    from collections.abc import Mapping

MPI_FAMILIES: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "openmpi",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)
"""Source, rank, size, local rank, local size; OMPI_COMM_WORLD_NODE_RANK is absent on purpose: it is a local number."""


def mpi_family(environ: Mapping[str, str]) -> tuple[str, str, str, str, str] | None:
    """The names of the variables in which MPI gives this process its rank; None without MPI."""
    for family in MPI_FAMILIES:
        if environ.get(family[1], "") != "":
            return family
    return None


def from_mpi(environ: Mapping[str, str]) -> RankInfo | None:
    """The place that MPI's variables give; None without MPI."""
    family = mpi_family(environ)
    if family is None:
        return None
    source, *names = family
    missing = [name for name in names if environ.get(name, "") == ""]
    if missing:
        raise NodeError(
            f"{names[0]} is {environ[names[0]]}; not set: {', '.join(missing)}",
            "MPI gives each process its rank, the world's size, and both on the node",
            "Start the processes with mpirun, or remove the variable that is left over.",
        )
    rank, world, local_rank, size = (number(environ, name) for name in names)
    within(names[0], rank, names[1], world)
    within(names[2], local_rank, names[3], size)
    if world % size or rank % size != local_rank:
        raise NodeError(
            f"{names[0]} is {rank} of {world}, {names[2]} {local_rank} of {size}",
            "Ranks are dealt node by node, as many to each; only so is the node's rank = rank ÷ ranks per node",
            "Map by slot (mpirun's default, and Azure ML's), with the same number of processes on every node.",
        )
    several = size < world
    address = environ.get("MASTER_ADDR") or (batch_master(environ) if several else None)
    if not address:
        address = environ.get("AZ_BATCHAI_MPI_MASTER_NODE") or (None if several else LOOPBACK)
    if not address:
        raise NodeError(
            f"{world // size} nodes, and neither AZ_BATCH_MASTER_NODE nor MASTER_ADDR is set",
            "Ranks on several nodes meet at the address of rank 0, which Azure ML puts into AZ_BATCH_MASTER_NODE",
            "Outside of Azure ML set MASTER_ADDR (mpirun -x MASTER_ADDR=…).",
        )
    return RankInfo(
        rank=rank,
        world_size=world,
        local_rank=local_rank,
        local_size=size,
        node_rank=rank // size,
        nodes=world // size,
        master_addr=address,
        master_port=port(environ, several=several),
        source=source,
    )


def batch_master(environ: Mapping[str, str]) -> str | None:
    """The host in AZ_BATCH_MASTER_NODE; its port belongs to Azure Batch and is not for the training."""
    master = environ.get("AZ_BATCH_MASTER_NODE", "")
    if not master:
        return None
    return master[1 : master.index("]")] if master.startswith("[") and "]" in master else master.split(":")[0]
