"""One process on a node of several GPUs, where neither the command nor its script starts the others."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.code_reading.code_files import text_of
from amlstack.code_reading.shell import plain_script
from jobs.launchers.base import MpiDistribution, PyTorchDistribution
from policies.checks.job_limits import GPUS_IDLE_RULE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jobs.launchers.base import Lowered
    from jobs.model.job import Job
    from jobs.planning.plans import Target

_USES_SEVERAL = re.compile(
    r"spawn|multiprocessing|subprocess|os\.system|\bDataParallel|lightning|accelerat|deepspeed|transformers|ignite"
    r"|colossalai|torch_?run|elastic|tensorflow|jax|\bray\b|xgboost|lightgbm|cudf|dask|vllm|device_map|pipeline_parallel"
    r"|cuda:[1-9]|device_count",
    re.IGNORECASE,
)
"""What a script may start other processes by, or use several GPUs from one."""


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
    script = plain_script(lowered.command)
    if script is None:
        return
    text = text_of(os.path.join(base, job.code.path, script))  # noqa: PTH118 - of each job
    if text is None or _USES_SEVERAL.search(text):
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
