"""Rules on the processes, memory, outputs and time of a job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Collection

    from amlstack.catalog.sizes import Size

PROCESSES_RULE = Rule("processes-beyond-gpus", "A node runs at most one process per GPU.")


def check_processes(processes: int, size: Size, *, nodes: int, where: str = "launcher") -> Finding | None:
    """Judge the number of processes per node.

    Args:
        processes: Ranks on each node.
        size: The size of the nodes as the catalogue knows it; a CPU size is never judged.
        nodes: Number of nodes, to recognise a total.
        where: Path of the number in the declaration.
    """
    if not size.gpus or processes <= size.gpus:
        return None
    is_total = processes == nodes * size.gpus
    total = f". {processes} is {nodes} nodes of {size.gpus}: a total" if is_total else ""
    return Finding(
        PROCESSES_RULE.code,
        where,
        seen=f"{processes} processes per node, and {size.name} has {size.gpus} GPUs{total}",
        rule="Process counts are per node, not in total as SDK v1's process_count was; two ranks on one GPU end in "
        "NCCL's `Duplicate GPU detected`",
        remedy=f"Write {size.gpus}, or leave the count out",
    )


GPUS_IDLE_RULE = Rule("gpus-idle", "A PyTorch or MPI job uses every GPU of its nodes.", level="advisory")


SOME_GPUS = "CUDA_VISIBLE_DEVICES"
"""The variable by which a job chooses GPUs of its nodes."""


def check_gpus_idle(
    processes: int, size: Size, variables: Collection[str], *, where: str = "distribution"
) -> Finding | None:
    """Judge the number of processes per node.

    Args:
        processes: Processes that Azure ML starts on each node.
        size: The size of the nodes as the catalogue knows it.
        variables: Names of the job's variables.
        where: Path of the number in the declaration.
    """
    if not 1 < processes < size.gpus or SOME_GPUS in variables:
        return None
    return Finding(
        GPUS_IDLE_RULE.code,
        where,
        seen=f"{processes} processes per node, and {size.name} has {size.gpus} GPUs",
        rule="A process drives one GPU, the others of the node stay idle",
        remedy=f"Write {size.gpus}, or take a smaller size",
    )


SHARED_MEMORY_RULE = Rule(
    "shared-memory",
    "A GPU job has shared memory enough for its loaders.",
    level="advisory",
    settings=(Setting("gib_per_gpu", "number", "GiB of shared memory for each GPU.", 8),),
)


AZURE_DEFAULT = "2g"
"""The shared memory that Azure ML gives a container that asks for none."""

_FORM = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[bkmgt]?)b?", re.IGNORECASE)
_GIB = {"": 2**-30, "b": 2**-30, "k": 2**-20, "m": 2**-10, "g": 1.0, "t": 2.0**10}


def check_shared_memory(
    shm_size: str | None, size: Size, *, docker_args: str = "", gib_per_gpu: float, where: str = "shm_size"
) -> Finding | None:
    """Judge the shared memory of a job's container.

    Args:
        shm_size: As Azure ML takes it, e.g. ``64g``; None when the job asks for none.
        size: The size of the nodes as the catalogue knows it; a CPU size is never judged.
        docker_args: The job's container arguments.
        gib_per_gpu: GiB that each GPU's loaders need.
        where: Path of the value in the declaration.
    """
    given = gib(shm_size or AZURE_DEFAULT)
    least = gib_per_gpu * size.gpus
    if size.memory_gib is not None:
        least = min(least, size.memory_gib / 2)
    if given is None or given >= least or "--ipc=host" in docker_args or "--shm-size" in docker_args:
        return None
    advice = size.shm_size() or f"{least:g}g"
    return Finding(
        SHARED_MEMORY_RULE.code,
        where,
        seen=f"The container has {shm_size or AZURE_DEFAULT} of shared memory{'' if shm_size else ', the default'}, "
        f"for {size.gpus} GPUs",
        rule=f"DataLoader workers want {gib_per_gpu:g} GiB per GPU, else they die with `Bus error`",
        remedy=f"Write {advice}",
    )


def gib(text: str) -> float | None:
    """GiB of a size as Docker writes it; None for what is none."""
    found = _FORM.fullmatch(text.strip())
    return float(found["number"]) * _GIB[found["unit"].lower()] if found else None


SPOT_CHECKPOINT_RULE = Rule(
    "spot-checkpoint", "A low-priority job across nodes writes to a mounted output.", level="advisory"
)


MOUNTED = frozenset({"readwritemount", "rw_mount", "mount", "direct"})


def check_spot_checkpoint(
    modes: Collection[str | None], *, preemptible: bool, nodes: int, where: str = "outputs"
) -> Finding | None:
    """Judge the outputs of a job whose nodes may be taken away.

    Args:
        modes: Mode of each of its outputs; None is Azure ML's own default, a mount.
        preemptible: Whether its nodes are low-priority.
        nodes: Number of nodes.
        where: Path of the outputs in the declaration.
    """
    if not preemptible or nodes <= 1 or any(mode is None or mode.lower() in MOUNTED for mode in modes):
        return None
    return Finding(
        SPOT_CHECKPOINT_RULE.code,
        where,
        seen=f"{nodes} low-priority nodes, and no output is mounted",
        rule="A preempted job starts again from its last checkpoint, which only a mounted output keeps",
        remedy="Write an output with mode rw_mount (on the wire ReadWriteMount) and checkpoint to it",
    )


JOB_TIMEOUT_RULE = Rule(
    "job-timeout",
    "A job has a timeout.",
    level="advisory",
    settings=(Setting("hours", "number", "Most hours that a timeout may be."),),
)


JOB_TIMEOUT_REMEDY = "Write limits.timeout, such as PT12H"


def check_job_timeout(
    timeout: int | None, *, hours: float | None = None, where: str = "limits.timeout"
) -> Finding | None:
    """Judge when a job ends at the latest.

    Args:
        timeout: Seconds after which Azure ML ends it; None or 0 for never.
        hours: Most hours; None for no bound.
        where: Path of the timeout in the declaration.
    """
    if not timeout:
        seen = "The job has no timeout"
    elif hours is not None and timeout > hours * 3600:
        seen = f"The timeout is {timeout / 3600:g} hours"
    else:
        return None
    return Finding(
        JOB_TIMEOUT_RULE.code,
        where,
        seen=seen,
        rule="Only a timeout ends a job that hangs",
        remedy=f"Write {hours:g} hours or less" if hours is not None else JOB_TIMEOUT_REMEDY,
    )
