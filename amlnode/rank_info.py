"""A process's place in its job, and reading numbers from an environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlnode.errors import NodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

SEVERAL_NODES_PORT = 6105
"""MASTER_PORT of a job of several nodes that names none: Azure ML's own for PyTorch, the guides' helper's for MPI."""

SINGLE_NODE_PORT = 54965
"""MASTER_PORT of a job of one node that names none."""

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class RankInfo:
    """A process's place in its job; all numbers count from 0.

    Attributes:
        rank: Its number among all processes of the job.
        world_size: How many there are.
        local_rank: Its number on its node; by convention its GPU's.
        local_size: Processes of its node; None where only other nodes know (Azure ML's per-process launch does not set
            it on the first node).
        node_rank: The node's number; None where unknown.
        nodes: How many nodes; None where local_size is.
        master_addr: Where rank 0 is.
        master_port: A port there, for the rendezvous of the training.
        source: What was read: torchrun, pytorch, openmpi, pmi, tensorflow, single.
    """

    rank: int
    world_size: int
    local_rank: int
    local_size: int | None
    node_rank: int | None
    nodes: int | None
    master_addr: str
    master_port: int
    source: str


def port(environ: Mapping[str, str], *, several: bool) -> int:
    """MASTER_PORT, else the guides' port for one node or for several."""
    if environ.get("MASTER_PORT", "") == "":
        return SEVERAL_NODES_PORT if several else SINGLE_NODE_PORT
    found = number(environ, "MASTER_PORT")
    if not 0 < found < 65536:
        raise NodeError(
            f"MASTER_PORT must be from 1 to 65535, got {found}",
            "Ranks meet at this port of rank 0",
            "Leave it out: 6105 is the default.",
        )
    return found


def optional(environ: Mapping[str, str], name: str) -> int | None:
    """A variable as a number; None where it is unset or empty."""
    return None if environ.get(name, "") == "" else number(environ, name)


def number(environ: Mapping[str, str], name: str) -> int:
    """A variable as a number from 0."""
    text = environ[name].strip()
    if not (text.isascii() and text.isdigit()):
        raise NodeError(
            f"{name} must be a whole number from 0, got `{environ[name]}`",
            "Launchers set it",
            "Look for a `$VARIABLE` that was not replaced: it is the usual cause.",
        )
    return int(text)


def within(name: str, value: int, of: str, count: int) -> None:
    """Refuse a number that is not below its count."""
    if value >= count:
        raise NodeError(
            f"{name} must be below {of}, got {value} of {count}",
            f"Ranks count from 0: the highest is {max(count - 1, 0)}",
            "Look for a variable left over from an image, or for a launcher started by another launcher.",
        )
