"""One process on a node of several GPUs, where neither the command nor its script starts the others."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from jobs.model.distribution import MpiDistribution, PyTorchDistribution
from jobs.planning import command_text
from policies.checks.job_limits import GPUS_IDLE_RULE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jobs.launchers.base import Lowered
    from jobs.model.job import Job
    from jobs.planning.target import Target

_USES_SEVERAL = re.compile(
    rb"spawn|multiprocessing|subprocess|os\.system|\bDataParallel|lightning|accelerat|deepspeed|transformers|ignite"
    rb"|colossalai|torch_?run|elastic|tensorflow|jax|\bray\b|xgboost|lightgbm|cudf|dask|vllm|device_map|pipeline_parallel"
    rb"|cuda:[1-9]|device_count",
    re.IGNORECASE,
)
"""What a script may start other processes by, or use several GPUs from one."""
_MOST = 1024 * 1024
"""Bytes of a script that are read."""


def check(job: Job, lowered: Lowered, target: Target, base: Path) -> Iterator[Finding]:
    """A warning where one process runs on each node and its script shows no way to use the other GPUs.

    Args:
        job: The job.
        lowered: Its launcher in Azure ML's words.
        target: Where it runs; nothing is judged where its size is not known.
        base: Folder that its code is relative to.
    """
    size, one = target.facts, lowered.processes_per_node == 1
    if size is None or size.gpus < 2 or not one or job.code is None or not job.code.local:
        return
    if not isinstance(lowered.distribution, PyTorchDistribution | MpiDistribution | None):
        return
    script = command_text.plain_script(lowered.command)
    if script is None or _may_use_several(os.path.join(base, job.code.path, script)):  # noqa: PTH118 - of each job
        return
    yield Finding(
        GPUS_IDLE_RULE.code,
        "command",
        f"`python {script}` is one process on each node, and {size.name} has {size.gpus} GPUs",
        "A process drives one GPU, the others of the node stay idle",
        f"Start {size.gpus}: `torchrun --nproc_per_node {size.gpus} {script}`, or a distribution with "
        f"process_count_per_instance: {size.gpus}; or take a smaller size.",
        Level.WARNING,
    )


def _may_use_several(script: str) -> bool:
    """Whether a script shows a way to several GPUs; True, too, where it cannot be read."""
    try:
        now = os.stat(script)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return True
    return _shows_several(script, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


@lru_cache(maxsize=4096)
def _shows_several(script: str, *_: int) -> bool:
    """The same; further arguments tell a file's states apart, as jobs share scripts."""
    try:
        with open(script, "rb") as file:  # noqa: PTH123 - a name, not a path yet
            return _USES_SEVERAL.search(file.read(_MOST)) is not None
    except OSError:
        return True
