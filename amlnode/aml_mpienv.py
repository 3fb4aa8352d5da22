"""The functions of ``aml_mpienv.py`` in Azure ML's guides, for code written after them.

Beyond the guides' own it knows every launch that `amlnode.rank` knows, so the same training code runs under mpirun,
per process, under torchrun and alone. A MASTER_PORT that is set stays, on one node too.
"""

from __future__ import annotations

import os

from amlnode.environment import torch_environ
from amlnode.rank import NodeError, RankInfo, resolve


def set_environment_variables_for_nccl_backend(master_port: int = 6105, verbose: bool = True) -> None:
    """Set what ``torch.distributed.init_process_group`` reads; call it before.

    Args:
        master_port: Port on the first node for a job of several nodes, when MASTER_PORT is not set.
        verbose: Print rank, world size and the master's address and port.

    Raises:
        NodeError: The launcher's variables are incomplete or contradict each other.
    """
    info = resolve()
    variables = torch_environ(info)
    if info.local_size == 1:
        # This may be a per-node launcher, such as the guides' own: its ranks inherit what it does not set itself.
        variables.pop("LOCAL_WORLD_SIZE", None)
    # What is set already agrees with this, checked by `resolve`: nothing is replaced.
    if not os.environ.get("MASTER_PORT") and (info.nodes is None or info.nodes > 1):
        variables["MASTER_PORT"] = str(master_port)
    for name, value in variables.items():
        if not os.environ.get(name):
            os.environ[name] = value
    if verbose:
        for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            print(f"{name} = {os.environ[name]}", flush=True)


def get_rank() -> int:
    """This process's number among all."""
    return resolve().rank


def get_local_rank() -> int:
    """This process's number on its node: its GPU."""
    return resolve().local_rank


def get_global_size() -> int:
    """The number of processes of the job."""
    return resolve().world_size


def get_world_size() -> int:
    """The number of processes of the job."""
    return resolve().world_size


def get_local_size() -> int:
    """The number of processes on this node.

    Raises:
        NodeError: Azure ML's per-process launch does not set it on the first node.
    """
    return _known(resolve())


def _known(info: RankInfo) -> int:
    if info.local_size is None:
        raise NodeError(
            f"This is rank {info.rank} of {info.world_size}, and no variable holds how many of them are on this node",
            "Azure ML's per-process launch of PyTorch jobs does not set it on the first node",
            "Set LOCAL_WORLD_SIZE among the job's environment variables.",
        )
    return info.local_size
