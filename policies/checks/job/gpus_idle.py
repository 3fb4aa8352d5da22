"""Every GPU that is paid for works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="gpus-idle",
    title="A PyTorch or MPI job uses every GPU of its nodes.",
    what=(
        "Flags a job whose distribution starts several processes per node, but fewer than the nodes have GPUs. "
        "One process per node is left alone: torchrun and DeepSpeed start the others themselves."
    ),
    why=("A process drives one GPU: the others of the node wait, at the full price."),
    example=job(distribution="{distributionType: PyTorch, processCountPerInstance: 4}"),
    instead=job(),
    level="advisory",
    not_exported=NO_JOB,
)


def check(processes: int, size: Size, *, where: str = "distribution") -> Finding | None:
    """Judge the number of processes per node.

    Args:
        processes: Processes that Azure ML starts on each node.
        size: The size of the nodes as the catalogue knows it.
        where: Path of the number in the declaration.
    """
    if not 1 < processes < size.gpus:
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"{processes} processes per node, and {size.name} has {size.gpus} GPUs",
        rule="A process drives one GPU, the others of the node stay idle",
        remedy=f"Write {size.gpus}, or take a smaller size",
    )
