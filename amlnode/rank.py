"""The rank of this process among the processes of its job, for every way in which Azure ML starts them.

Reads PyTorch's variables (Azure ML per process, torchrun, a per-node launcher), those of Open MPI, Intel MPI and Hydra,
and TensorFlow's TF_CONFIG. What contradicts itself is an error, never a guess: two processes that take the same rank
hang all the others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace


class NodeError(Exception):
    """Something that a person can mend; its text is the whole message, a traceback adds nothing."""

    def __init__(self, seen: str, rule: str, remedy: str) -> None:
        super().__init__(f"{seen.rstrip('.')}. {rule.rstrip('.')}. {remedy}")
        self.seen, self.rule, self.remedy = seen, rule, remedy


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


def port_of(environ: Mapping[str, str], *, several: bool) -> int:
    """MASTER_PORT, else the guides' port for one node or for several."""
    if environ.get("MASTER_PORT", "") == "":
        return SEVERAL_NODES_PORT if several else SINGLE_NODE_PORT
    found = number_of(environ, "MASTER_PORT")
    if not 0 < found < 65536:
        raise NodeError(
            f"MASTER_PORT must be from 1 to 65535, got {found}",
            "Ranks meet at this port of rank 0",
            "Leave it out: 6105 is the default.",
        )
    return found


def optional_number(environ: Mapping[str, str], name: str) -> int | None:
    """A variable as a number; None where it is unset or empty."""
    return None if environ.get(name, "") == "" else number_of(environ, name)


def number_of(environ: Mapping[str, str], name: str) -> int:
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
    rank, world, local_rank, size = (number_of(environ, name) for name in names)
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
        master_port=port_of(environ, several=several),
        source=source,
    )


def batch_master(environ: Mapping[str, str]) -> str | None:
    """The host in AZ_BATCH_MASTER_NODE; its port belongs to Azure Batch and is not for the training."""
    master = environ.get("AZ_BATCH_MASTER_NODE", "")
    if not master:
        return None
    return master[1 : master.index("]")] if master.startswith("[") and "]" in master else master.split(":")[0]


def from_torch(environ: Mapping[str, str]) -> RankInfo | None:
    """The place that RANK, WORLD_SIZE and their kind give; None where they are not set."""
    if not _set(environ):
        return None
    rank, world = number_of(environ, "RANK"), number_of(environ, "WORLD_SIZE")
    within("RANK", rank, "WORLD_SIZE", world)
    elastic = "TORCHELASTIC_RUN_ID" in environ or "GROUP_RANK" in environ
    node = optional_number(environ, "GROUP_RANK" if environ.get("GROUP_RANK") else "NODE_RANK")
    size = optional_number(environ, "LOCAL_WORLD_SIZE")
    local_rank = optional_number(environ, "LOCAL_RANK")
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
    nodes = optional_number(environ, "GROUP_WORLD_SIZE")
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
        master_port=port_of(environ, several=several),
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


def from_tf_config(environ: Mapping[str, str]) -> RankInfo:
    """Chief, workers, then parameter servers, in the order of TF_CONFIG; tasks of one host are of one node."""
    rule = 'TF_CONFIG is JSON: {"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": 0}}'
    remedy = "Azure ML writes it for TensorFlow jobs; do not set it in the job's variables."
    try:
        config = json.loads(environ["TF_CONFIG"])
        cluster: dict[str, list[str]] = config.get("cluster") or {}
        task = config.get("task") or {}
        kind, index = str(task.get("type", "worker")), int(task.get("index", 0))
        tasks = [
            (name, number, str(where).rpartition(":")[0] or str(where))
            for name in ("chief", "master", "worker", "ps")
            for number, where in enumerate(cluster.get(name) or ())
        ]
    except (ValueError, TypeError, AttributeError) as error:
        raise NodeError(f"TF_CONFIG cannot be read ({error})", rule, remedy) from None
    if not tasks:
        tasks, kind, index = [("worker", 0, LOOPBACK)], "worker", 0
    rank = next((at for at, one in enumerate(tasks) if one[:2] == (kind, index)), None)
    if rank is None:
        raise NodeError(
            f"TF_CONFIG has the task {kind} {index}, and its cluster has {', '.join(f'{n} {i}' for n, i, _ in tasks)}",
            "The task is one of the cluster's" if kind != "evaluator" else "An evaluator is outside of the cluster",
            remedy if kind != "evaluator" else "It has no rank: do not ask for it there.",
        )
    hosts = list(dict.fromkeys(host for _, _, host in tasks))
    mine = [at for at, (_, _, host) in enumerate(tasks) if host == tasks[rank][2]]
    return RankInfo(
        rank=rank,
        world_size=len(tasks),
        local_rank=mine.index(rank),
        local_size=len(mine),
        node_rank=hosts.index(tasks[rank][2]),
        nodes=len(hosts),
        master_addr=environ.get("MASTER_ADDR") or tasks[0][2],
        master_port=port_of(environ, several=len(hosts) > 1),
        source="tensorflow",
    )


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
        master_port=port_of(environ, several=False),
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
