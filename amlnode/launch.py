"""Starts the ranks of one node, for launches where Azure ML starts one process per node.

``python -m amlnode launch --nproc 8 train.py --epochs 3`` on every node. Also what the guides' customised ``launch.py``
does, with its words: ``--nproc_per_node``, ``--use_env``, ``-m``, ``--no_python``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from amlnode.environment import torch_environ
from amlnode.gpus import count_gpus
from amlnode.processes import Member, supervise
from amlnode.rank import MPI_FAMILIES, NodeError, RankInfo, resolve

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL; AMLNODE_GRACE overrides it."""


def parser(program: str = "python -m amlnode launch") -> argparse.ArgumentParser:
    """The command line of the launcher."""
    options = argparse.ArgumentParser(
        prog=program, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--nproc",
        "--nproc_per_node",
        "--nproc-per-node",
        type=int,
        dest="nproc",
        help="ranks; unset: one per GPU, or 1",
    )
    options.add_argument("--use_env", "--use-env", action="store_true", help="LOCAL_RANK is a variable only")
    options.add_argument("-m", "--module", action="store_true", help="the script is a module, as in python -m")
    options.add_argument("--no_python", "--no-python", action="store_true", help="the script is a program of its own")
    options.add_argument("training_script", help="what each rank runs")
    options.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return options


def main(arguments: Sequence[str] | None = None, *, guides: bool = False) -> int:
    """Run the command line; returns the exit code.

    Args:
        arguments: Words after the program's name; unset: this process's.
        guides: As the guides' ``launch.py``: one rank when unset, and ``--local_rank=N`` goes to the script unless
            ``--use_env``.

    Raises:
        NodeError: This is no launch per node, or the command line contradicts itself.
    """
    options = parser("launch.py" if guides else "python -m amlnode launch").parse_args(arguments)
    if options.module and options.no_python:
        raise NodeError("-m and --no_python are both given", "Python itself runs a module", "Leave one of them out.")
    if guides and options.no_python and not options.use_env:
        raise NodeError(
            "--no_python is given without --use_env",
            "A program of its own takes no --local_rank",
            "Add --use_env; the program reads LOCAL_RANK.",
        )
    nproc = options.nproc if options.nproc is not None else 1 if guides else count_gpus() or 1
    node = resolve()
    start = [] if options.no_python else [sys.executable, "-u", *(["-m"] if options.module else [])]
    started = f"{nproc} ranks" if nproc > 1 else "1 rank"
    members = []
    for place in places(node, nproc):
        passed = [f"--local_rank={place.local_rank}"] if guides and not options.use_env else []
        command = [*start, options.training_script, *passed, *options.training_script_args]
        members.append(Member(place.rank, command, rank_environ(place, os.environ)))
    if nproc > 1 and "OMP_NUM_THREADS" not in os.environ:
        started += ", OMP_NUM_THREADS=1 since it is not set"
    print(f"amlnode launch: node {node.rank} of {node.world_size} starts {started}", flush=True)
    return supervise(members, grace=float(os.environ.get("AMLNODE_GRACE") or GRACE))


def places(node: RankInfo, nproc: int) -> tuple[RankInfo, ...]:
    """The places of the ranks that this node starts.

    Args:
        node: Place of the launcher itself, one of one per node: its rank is the node's.
        nproc: Ranks per node.

    Raises:
        NodeError: There are no ranks, or several processes run on this node already.
    """
    if nproc < 1:
        raise NodeError(
            f"--nproc must be 1 or more, got {nproc}",
            "A node starts at least one rank",
            "Leave it out for one per GPU.",
        )
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

    Where MPI started the launcher, its variables hold the rank's own place from here on, not the node's: what reads
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
