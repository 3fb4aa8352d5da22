"""Ranks share no GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="processes-beyond-gpus",
    title="A node runs at most one process per GPU.",
    what=(
        "Refuses a job with more processes per node than the nodes have GPUs. In the pack the size is known for "
        "serverless jobs and for clusters declared in the same stack."
    ),
    why=(
        "Process counts are per node, not in total as SDK v1's process_count was. Two ranks on one GPU end in "
        "NCCL's `Duplicate GPU detected`, after every node was started and paid for."
    ),
    example=job(distribution="{distributionType: PyTorch, processCountPerInstance: 16}"),
    instead=job(),
    not_exported=NO_JOB,
)


def check(processes: int, size: Size, *, nodes: int, where: str = "launcher") -> Finding | None:
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
        RULE.code,
        where,
        seen=f"{processes} processes per node, and {size.name} has {size.gpus} GPUs{total}",
        rule="Process counts are per node, not in total as SDK v1's process_count was; two ranks on one GPU end in "
        "NCCL's `Duplicate GPU detected`",
        remedy=f"Write {size.gpus}, or leave the count out",
    )
