"""Ranks from PyTorch's own variables: of Azure ML per process, of torchrun, of a per-node launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlnode.errors import NodeError
from amlnode.rank_info import LOOPBACK, RankInfo, number, optional, port, within
from amlnode.rank_sources.mpi import batch_master, mpi_family

if TYPE_CHECKING:
    from collections.abc import Mapping


def from_torch(environ: Mapping[str, str]) -> RankInfo | None:
    """The place that RANK, WORLD_SIZE and their kind give; None where they are not set."""
    if not _set(environ):
        return None
    rank, world = number(environ, "RANK"), number(environ, "WORLD_SIZE")
    within("RANK", rank, "WORLD_SIZE", world)
    elastic = "TORCHELASTIC_RUN_ID" in environ or "GROUP_RANK" in environ
    node = optional(environ, "GROUP_RANK" if environ.get("GROUP_RANK") else "NODE_RANK")
    size = optional(environ, "LOCAL_WORLD_SIZE")
    local_rank = optional(environ, "LOCAL_RANK")
    if local_rank is None:
        # One process per node is how a PyTorch job without LOCAL_RANK is started by hand.
        local_rank = rank % size if size else 0
    if size is None:
        size = _local_size(rank, world, local_rank, node)
    within("LOCAL_RANK", local_rank, "the number of ranks on this node", world if size is None else size)
    # Elastic launches may hold unequal nodes, and number them anew.
    if size is not None and not elastic:
        _even(rank, world, local_rank, size, node)
        node = rank // size
    nodes = optional(environ, "GROUP_WORLD_SIZE")
    if nodes is None and size is not None and world % size == 0:
        nodes = world // size
    several = world > 1 if size is None else size < world
    return RankInfo(
        rank=rank,
        world_size=world,
        local_rank=local_rank,
        local_size=size,
        node_rank=node,
        nodes=nodes,
        master_addr=_master(environ, rank, world, several=several),
        master_port=port(environ, several=several),
        source="torchrun" if elastic else "pytorch",
    )


def _set(environ: Mapping[str, str]) -> bool:
    needed = ("RANK", "WORLD_SIZE")
    given = [name for name in needed if environ.get(name, "") != ""]
    if not given:
        node = environ.get("NODE_RANK")
        if node not in (None, "", "0") and not mpi_family(environ):
            raise NodeError(
                f"NODE_RANK is {node}, and neither RANK nor WORLD_SIZE is set",
                "A process of several is known by its rank",
                "Call this in the ranks themselves, or keep RANK and WORLD_SIZE when you clean the environment.",
            )
        return False
    if len(given) == 1:
        missing = next(name for name in needed if name not in given)
        if mpi_family(environ):
            return False  # one left-over variable: MPI sets both
        raise NodeError(
            f"{given[0]} is set to {environ[given[0]]}, and {missing} is not set",
            "PyTorch's rendezvous needs both",
            f"Set {missing} too, or remove {given[0]} from the image's or the job's variables.",
        )
    return True


def _even(rank: int, world: int, local_rank: int, size: int, node: int | None) -> None:
    if world % size:
        raise NodeError(
            f"WORLD_SIZE is {world} and LOCAL_WORLD_SIZE {size}",
            "Every node holds as many ranks as the others",
            "Make WORLD_SIZE a multiple of LOCAL_WORLD_SIZE.",
        )
    rightly = (rank // size if node is None else node) * size + local_rank
    if rank != rightly:
        where = "" if node is None else f", NODE_RANK {node}"
        raise NodeError(
            f"RANK is {rank}{where} and LOCAL_RANK {local_rank} with {size} ranks per node",
            "Ranks are numbered node by node: RANK = NODE_RANK × ranks per node + LOCAL_RANK",
            f"These would make rank {rightly}: look for a variable left over from an image or a launcher.",
        )


def _master(environ: Mapping[str, str], rank: int, world: int, *, several: bool) -> str:
    address = environ.get("MASTER_ADDR") or (batch_master(environ) if several else LOOPBACK)
    if not address:
        raise NodeError(
            f"RANK is {rank} of {world}, and MASTER_ADDR is not set",
            "Ranks on several nodes meet at the address of rank 0",
            "Set MASTER_ADDR to the first node's address.",
        )
    return address


def _local_size(rank: int, world: int, local_rank: int, node: int | None) -> int | None:
    """Ranks per node from one rank's numbers: rank = node × size + local rank, where that has one solution."""
    if world == 1:
        return 1
    if node:
        size, left = divmod(rank - local_rank, node)
        if left or size < 1 or world % size:
            raise NodeError(
                f"RANK is {rank} of {world}, NODE_RANK {node} and LOCAL_RANK {local_rank}",
                "Ranks are numbered node by node, as many on each",
                "No number of ranks per node fits these: look for a variable left over from an image or a launcher.",
            )
        return size
    if node == 0 and rank != local_rank:
        raise NodeError(
            f"RANK is {rank} and LOCAL_RANK {local_rank} on node 0",
            "On the first node both are the same",
            "Look for a variable left over from an image or a launcher.",
        )
    # The first node: any divisor of the world above the local rank would do. One solution only for the last rank.
    return world if local_rank == world - 1 else None
