"""Variables that launchers set in the environment of a rank."""

from __future__ import annotations

from typing import Any

from amlnode.rank import MPI_FAMILIES


def ompi(rank: int, world: int, local: int, size: int, **more: str) -> dict[str, str]:
    names = MPI_FAMILIES[0][1:]
    # What Open MPI calls NODE_RANK is a local number: always wrong here, so that nobody reads it.
    return {
        **dict(zip(names, map(str, (rank, world, local, size)), strict=True)),
        "OMPI_COMM_WORLD_NODE_RANK": "77",
        **more,
    }


def torch(rank: Any, world: Any, **more: Any) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(world), **{name: str(value) for name, value in more.items()}}


BATCH = {"AZ_BATCH_MASTER_NODE": "10.0.0.4:6000"}


MASTER = {"MASTER_ADDR": "10.0.0.4", "MASTER_PORT": "6105"}
