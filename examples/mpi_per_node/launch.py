# Made by `python -m amlnode write`: write it again instead of editing it.
"""Starts the ranks of one node, for launches where Azure ML starts one process per node.

``python -m amlnode launch --nproc 8 train.py --epochs 3`` on every node. Also what the guides' customised ``launch.py``
does, with its words: ``--nproc_per_node``, ``--use_env``, ``-m``, ``--no_python``.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence
    from types import FrameType


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
        local_size: Processes of its node; None where only other nodes know (Azure ML's per-process launch does not tell
            the first node).
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
    told = number(environ, "MASTER_PORT")
    if not 0 < told < 65536:
        raise NodeError(f"MASTER_PORT is {told}", "A port is from 1 to 65535", "Leave it out: 6105 is the default.")
    return told


def optional(environ: Mapping[str, str], name: str) -> int | None:
    """A variable as a number; None where it is unset or empty."""
    return None if environ.get(name, "") == "" else number(environ, name)


def number(environ: Mapping[str, str], name: str) -> int:
    """A variable as a number from 0."""
    text = environ[name].strip()
    if not (text.isascii() and text.isdigit()):
        raise NodeError(
            f"{name} is `{environ[name]}`",
            "It is a whole number from 0",
            "Launchers set it; a `$VARIABLE` that nobody replaced is the usual cause.",
        )
    return int(text)


def within(name: str, value: int, of: str, count: int) -> None:
    """Refuse a number that is not below its count."""
    if value >= count:
        raise NodeError(
            f"{name} is {value} and {of} {count}",
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
    """The names by which MPI has told this process its rank; None without MPI."""
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
            "MPI tells each process its rank, the world's size, and both on the node",
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
    told = environ.get("AZ_BATCH_MASTER_NODE", "")
    if not told:
        return None
    return told[1 : told.index("]")] if told.startswith("[") and "]" in told else told.split(":")[0]


def from_torch(environ: Mapping[str, str]) -> RankInfo | None:
    """The place that RANK, WORLD_SIZE and their kind give; None where they are not set."""
    if not _said(environ):
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


def _said(environ: Mapping[str, str]) -> bool:
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
            return False  # a left-over of one variable: MPI says both
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
        told = json.loads(environ["TF_CONFIG"])
        cluster: dict[str, list[str]] = told.get("cluster") or {}
        task = told.get("task") or {}
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
            f"TF_CONFIG says task {kind} {index}, and its cluster has {', '.join(f'{n} {i}' for n, i, _ in tasks)}",
            "The task is one of the cluster's" if kind != "evaluator" else "An evaluator stands outside of the cluster",
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
        master_port=port(environ, several=len(hosts) > 1),
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
        f"PyTorch's variables say rank {torch.rank} of {torch.world_size}, "
        f"MPI's ({mpi.source}) rank {mpi.rank} of {mpi.world_size}",
        "Both are the same, or one MPI process per node has started that node's PyTorch ranks",
        "Remove RANK and WORLD_SIZE from the image's or the job's variables: MPI tells them to each process.",
    )


ROUTED = "eth0"
"""The one routed interface of Azure's nodes: NCCL's bootstrap goes over it, the data over InfiniBand all the same."""


def torch_environ(info: RankInfo) -> dict[str, str]:
    """What a process with this place is told; what is not known (RankInfo) is left out."""
    told = {
        "MASTER_ADDR": info.master_addr,
        "MASTER_PORT": info.master_port,
        "RANK": info.rank,
        "WORLD_SIZE": info.world_size,
        "LOCAL_RANK": info.local_rank,
        "LOCAL_WORLD_SIZE": info.local_size,
        "NODE_RANK": info.node_rank,
    }
    variables = {name: str(value) for name, value in told.items() if value is not None}
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


ROOT = Path("/")


def count_gpus(root: Path = ROOT) -> int:
    """How many GPUs this node has: NVIDIA's driver files, else AMD's topology.

    Args:
        root: Where the file system begins; another one in tests.
    """
    return len(nvidia(root)) or amd(root)


def nvidia(root: Path = ROOT) -> list[str]:
    """Bus addresses of NVIDIA's GPUs."""
    return _names(root / "proc/driver/nvidia/gpus")


def amd(root: Path = ROOT) -> int:
    """AMD's GPUs: nodes of the topology with vector units (its CPUs have none)."""
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    found = 0
    for name in _names(nodes):
        try:
            text = (nodes / name / "properties").read_text("ascii", "replace")
        except OSError:
            continue
        properties = dict(line.split(None, 1) for line in text.splitlines() if " " in line.strip())
        found += properties.get("simd_count", "0").strip() != "0"
    return found


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


_NAME, _DEATH_SIGNAL, _SUBREAPER = 15, 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Makes this process the new parent of every descendant whose own parent ends."""
    _libc.prctl(_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """For a child before exec: SIGKILL as soon as its parent ends."""
    _libc.prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


class Heir:
    """A second process that kills the ranks' groups when this one is killed: a pipe tells it of both."""

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._writer)
            _wait_for_inheritance(reader)
        os.close(reader)

    def told(self, group: int) -> None:
        """Name a process group of this process."""
        os.write(self._writer, b"%d\n" % group)

    def dismiss(self) -> None:
        """All has ended well: nothing is left to kill."""
        os.write(self._writer, b"done\n")
        os.close(self._writer)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _wait_for_inheritance(reader: int) -> None:
    """What the forked heir does; never returns."""
    try:
        os.setsid()
        _libc.prctl(_NAME, b"amlnode-heir", 0, 0, 0)
        for number in range(1, 32):
            if number in (signal.SIGKILL, signal.SIGSTOP):
                continue
            signal.signal(number, signal.SIG_IGN)
        # The ranks' pipes and the launcher's own output must end with their owners, not with the heir.
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        told = b""
        while True:
            said = os.read(reader, 4096)
            if not said:
                break
            told += said
        words = told.split()
        if b"done" not in words:
            for word in words:
                with contextlib.suppress(OSError):
                    os.killpg(int(word), signal.SIGKILL)
    finally:
        os._exit(0)


def reap_one(spare: int) -> bool:
    """Wait for the end of one child; False when the heir alone is left."""
    for pid in _children(os.getpid()):
        if pid != spare:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            return True
    return False


def _children(of: int) -> list[int]:
    return _tree().get(of, [])


def descendants(root: int, *, spare: int) -> list[int]:
    """All processes below one, zombies too; ``spare`` and what is below it left out."""
    tree, found, front = _tree(), [], [root]
    while front:
        front = [child for parent in front for child in tree.get(parent, ()) if child != spare]
        found += front
    return found


def _tree() -> dict[int, list[int]]:
    """Children by parent, zombies too."""
    tree: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names alone, thrice as fast
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                # The command's name may hold blanks and brackets: split after its last bracket.
                parent = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1]
                tree.setdefault(int(parent), []).append(int(name))
    return tree


FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LONGEST_LINE = 1 << 16
"""A line without an end (a progress bar) is passed on when it is this long."""


@dataclass(frozen=True)
class Member:
    """One rank to start: its number among all, the command, the whole environment."""

    rank: int
    command: Sequence[str]
    environ: Mapping[str, str]


@dataclass
class _Running:
    rank: int
    process: subprocess.Popen[bytes]
    pending: dict[int, bytes] = field(default_factory=dict)


def supervise(members: Sequence[Member], *, grace: float) -> int:
    """Run them to their end.

    The first that fails ends the others: SIGTERM to their process groups, SIGKILL after ``grace`` seconds. Signals that
    reach this process go to all of them. Whatever they have started is killed at the end, also when this process is
    itself killed.

    Returns:
        0 when all ended well, else the exit code of the first that failed; 128 + n when signal n killed it.
    """
    adopt_orphans()
    crew = _Crew(grace)
    with _wakes(crew) as wake:
        try:
            for member in members:
                if not crew.code:
                    crew.start(member)
            crew.run(wake)
        finally:
            crew.wipe()
    return crew.code


class _Crew:
    def __init__(self, grace: float) -> None:
        self.grace = grace
        self.code = 0
        self.running: list[_Running] = []
        self.deadline: float | None = None
        self.received: list[int] = []
        self.selector = selectors.DefaultSelector()
        self.heir = Heir()

    def start(self, member: Member) -> None:
        try:
            process = subprocess.Popen(
                member.command,
                env=dict(member.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
            )
        except OSError as error:
            _say(sys.stderr, member.rank, f"{member.command[0]}: {error.strerror}\n".encode())
            self.failed(127)
            return
        self.heir.told(process.pid)
        one = _Running(member.rank, process)
        self.running.append(one)
        for pipe, out in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self.selector.register(pipe, selectors.EVENT_READ, (one, out))

    def run(self, wake: int) -> None:
        """Until every rank has ended and what they said is passed on."""
        self.selector.register(wake, selectors.EVENT_READ, None)
        while self.running:
            left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
            for key, _ in self.selector.select(left):
                if key.data is None:
                    os.read(wake, 4096)
                else:
                    self.carry(key)
            for number in self.taken():
                self.pass_on(number)
            self.reap()
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.signal(signal.SIGKILL)

    def carry(self, key: selectors.SelectorKey) -> bool:
        """Pass on what a rank said, whole lines with its number in front; whether there may be more at once."""
        one, out = key.data
        try:
            said = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return False
        text = one.pending.pop(key.fd, b"") + said
        *lines, rest = text.split(b"\n")
        for line in lines:
            _say(out, one.rank, line + b"\n")
        if rest and (not said or len(rest) >= LONGEST_LINE):
            _say(out, one.rank, rest + b"\n")
        elif rest:
            one.pending[key.fd] = rest
        if not said:
            self.selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
        return bool(said)

    def drain(self, one: _Running) -> None:
        """Pass on all that a rank has said so far."""
        for key in tuple(self.selector.get_map().values()):
            if key.data is not None and key.data[0] is one:
                while self.carry(key):
                    pass

    def taken(self) -> list[int]:
        taken, self.received = self.received, []
        return taken

    def pass_on(self, number: int) -> None:
        self.signal(number)
        if number in ENDING and self.deadline is None:
            self.deadline = time.monotonic() + self.grace

    def signal(self, number: int) -> None:
        for one in self.running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(one.process.pid, number)

    def reap(self) -> None:
        for one in tuple(self.running):
            code = one.process.poll()
            if code is None:
                continue
            self.running.remove(one)
            # What it left behind in its group holds its pipes open and would never end by itself.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(one.process.pid, signal.SIGKILL)
            self.drain(one)
            if code:
                how = f"was killed by {_name(-code)}" if code < 0 else f"exited with code {code}"
                first = self.code == 0
                _say(sys.stderr, one.rank, f"{how}{'; ending the others' if first and self.running else ''}\n".encode())
                self.failed(128 - code if code < 0 else code)

    def failed(self, code: int) -> None:
        if self.code:
            return
        self.code = code
        if self.deadline is None:
            self.pass_on(signal.SIGTERM)

    def wipe(self) -> None:
        """Kill and reap everything below this process, then pass on the last words."""
        self.signal(signal.SIGKILL)
        while True:
            for pid in descendants(os.getpid(), spare=self.heir.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for one in self.running:
                one.process.poll()
            if not reap_one(self.heir.pid):
                break
        for key in tuple(self.selector.get_map().values()):
            while key.data is not None and self.carry(key):
                pass
        self.selector.close()
        self.heir.dismiss()


@contextlib.contextmanager
def _wakes(crew: _Crew) -> Iterator[int]:
    """Signals wake the selector through a pipe and are kept for `_Crew.taken`; yields the pipe's reading end."""
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)

    def keep(number: int, frame: FrameType | None) -> None:
        del frame
        crew.received.append(number)

    before = {number: signal.signal(number, keep) for number in FORWARDED}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    old = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


def _say(out: IO[str], rank: int, line: bytes) -> None:
    """One line, written at once, so that lines of two ranks never mix."""
    with contextlib.suppress(BrokenPipeError):
        out.buffer.write(b"[rank %d]: " % rank + line)  # type: ignore[attr-defined]
        out.flush()


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL; AMLNODE_GRACE overrides it."""


def parser(program: str = "python -m amlnode launch") -> argparse.ArgumentParser:
    """The command line of the launcher."""
    words = argparse.ArgumentParser(
        prog=program, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument(
        "--nproc",
        "--nproc_per_node",
        "--nproc-per-node",
        type=int,
        dest="nproc",
        help="ranks; unset: one per GPU, or 1",
    )
    words.add_argument("--use_env", "--use-env", action="store_true", help="LOCAL_RANK is a variable only")
    words.add_argument("-m", "--module", action="store_true", help="the script is a module, as in python -m")
    words.add_argument("--no_python", "--no-python", action="store_true", help="the script is a program of its own")
    words.add_argument("training_script", help="what each rank runs")
    words.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return words


def main(arguments: Sequence[str] | None = None, *, guides: bool = False) -> int:
    """Run the command line; returns the exit code.

    Args:
        arguments: Words after the program's name; unset: this process's.
        guides: As the guides' ``launch.py``: one rank when unset, and ``--local_rank=N`` goes to the script unless
            ``--use_env``.

    Raises:
        NodeError: This is no launch per node, or the command line contradicts itself.
    """
    words = parser("launch.py" if guides else "python -m amlnode launch").parse_args(arguments)
    if words.module and words.no_python:
        raise NodeError("-m and --no_python are both given", "A module is run by python", "Leave one of them out.")
    if guides and words.no_python and not words.use_env:
        raise NodeError(
            "--no_python is given without --use_env",
            "A program of its own takes no --local_rank",
            "Add --use_env; the program reads LOCAL_RANK.",
        )
    nproc = words.nproc if words.nproc is not None else 1 if guides else count_gpus() or 1
    if nproc < 1:
        raise NodeError(f"--nproc is {nproc}", "A node runs one rank or more", "Leave it out for one per GPU.")
    node = resolve()
    start = [] if words.no_python else [sys.executable, "-u", *(["-m"] if words.module else [])]
    told = f"{nproc} ranks" if nproc > 1 else "1 rank"
    members = []
    for place in places(node, nproc):
        passed = [f"--local_rank={place.local_rank}"] if guides and not words.use_env else []
        command = [*start, words.training_script, *passed, *words.training_script_args]
        members.append(Member(place.rank, command, rank_environ(place, os.environ)))
    if nproc > 1 and "OMP_NUM_THREADS" not in os.environ:
        told += ", OMP_NUM_THREADS=1 since nobody set it"
    print(f"amlnode launch: node {node.rank} of {node.world_size} starts {told}", flush=True)
    return supervise(members, grace=float(os.environ.get("AMLNODE_GRACE") or GRACE))


def places(node: RankInfo, nproc: int) -> tuple[RankInfo, ...]:
    """The places of the ranks that this node starts.

    Args:
        node: Place of the launcher itself, one of one per node: its rank is the node's.
        nproc: Ranks per node.

    Raises:
        NodeError: Several processes run on this node already.
    """
    several = node.local_rank > 0 or (node.local_size or 1) > 1
    if several and node.source != "tensorflow":
        raise NodeError(
            f"This is process {node.local_rank} of {node.local_size or 'several'} on its node",
            "A per-node launcher runs once on each node, and starts the node's ranks itself",
            "Set one process per node in the job's distribution (process_count_per_instance: 1), "
            "or run the script without the launcher.",
        )
    return tuple(
        RankInfo(
            rank=node.rank * nproc + local,
            world_size=node.world_size * nproc,
            local_rank=local,
            local_size=nproc,
            node_rank=node.rank,
            nodes=node.world_size,
            master_addr=node.master_addr,
            master_port=node.master_port,
            source="pytorch",
        )
        for local in range(nproc)
    )


def rank_environ(place: RankInfo, base: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a rank.

    Where MPI started the launcher, its variables tell the rank's own place from here on, not the node's: what reads
    them (the guides' helper, DeepSpeed, Accelerate) would take every rank of a node for the same otherwise.
    """
    environ = dict(base)
    variables = torch_environ(place)
    interface = variables.pop("NCCL_SOCKET_IFNAME", None)
    environ.update(variables)
    if interface is not None:
        environ.setdefault("NCCL_SOCKET_IFNAME", interface)
    if (place.local_size or 1) > 1:
        environ.setdefault("OMP_NUM_THREADS", "1")
    for _, rank, size, local_rank, local_size in MPI_FAMILIES:
        if rank in environ:
            environ.update(
                {
                    rank: str(place.rank),
                    size: str(place.world_size),
                    local_rank: str(place.local_rank),
                    local_size: str(place.local_size),
                }
            )
    return environ


if __name__ == "__main__":
    try:
        sys.exit(main(guides=True))
    except NodeError as error:
        sys.exit(str(error))
