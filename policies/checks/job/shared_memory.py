"""DataLoader workers hand batches over in memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule, Setting

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="shared-memory",
    title="A GPU job has shared memory enough for its loaders.",
    what=(
        "Flags a job on a GPU size whose container has less shared memory per GPU than configured. Azure ML gives "
        "2g to a job that asks for none. Container arguments with `--ipc=host` or `--shm-size` count as an "
        "answer."
    ),
    why=(
        "DataLoader workers and NCCL's local transport pass data through /dev/shm. When it is full, a worker dies "
        "with `Bus error` and the whole job with it, often hours in."
    ),
    example=job(resources="{instanceType: Standard_ND96isr_H100_v5, instanceCount: 2}"),
    instead=job(),
    level="advisory",
    settings=(Setting("gib_per_gpu", "number", "GiB of shared memory for each GPU.", 8),),
    fix="Writes half of the memory of the size, the share that Linux itself gives.",
    not_exported=NO_JOB,
)


AZURE_DEFAULT = "2g"
"""What Azure ML gives a container that asks for nothing."""

_FORM = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[bkmgt]?)b?", re.IGNORECASE)
_GIB = {"": 2**-30, "b": 2**-30, "k": 2**-20, "m": 2**-10, "g": 1.0, "t": 2.0**10}


def check(
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
        RULE.code,
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
