"""The machines that a job asks for: nodes, ranks, regions, blocks of the fabric."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.catalog import fabric, regions
from policies.checks.job_limits import check_processes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from jobs.launchers.base import Lowered
    from jobs.model.job import Job
    from jobs.planning.target import Target


def nodes(job: Job, count: int, target: Target) -> Iterator[Finding]:
    """The number of nodes against what the target gives."""
    where = "nodes"
    if target.max_nodes is not None and count > target.max_nodes:
        yield Finding(
            "nodes-beyond-cluster",
            where,
            f"The job wants {count} nodes, the cluster `{target.cluster}` scales to {target.max_nodes}",
            "A job waits forever for nodes that its cluster cannot have",
            f"Raise the cluster's nodes.max to {count}, or lower the job's nodes.",
        )
    if job.compute is None and job.instance_type is None and target.size is None and job.typed:
        yield Finding(
            "target-unknown",
            "compute",
            "The job names neither a cluster nor an instance type",
            "Processes per node and the fabric's variables follow from the size",
            "Write `compute` (a cluster) or `instance_type` (serverless).",
            Level.WARNING,
        )


def fabric_blocks(job: Job, collectives: str, target: Target) -> Iterator[Finding]:
    """What of the blocks that a job asks for would not be added."""
    size = target.facts
    if not job.fabric:
        return
    if job.enrich is False:
        yield Finding(
            "fabric-block",
            "fabric",
            f"The job asks for {_listed(job.fabric)} and says `enrich=False`",
            "Blocks of the fabric are variables that are added to a job",
            "Leave one of the two out.",
        )
    elif size is not None and collectives != "nccl":
        yield Finding(
            "fabric-block",
            "fabric",
            f"The job asks for {_listed(job.fabric)}, and {collectives} carries its collectives on {size.name}",
            "These blocks are settings of NCCL",
            "Leave `fabric` out.",
        )
    elif size is not None and (missing := [block for block in job.fabric if block not in fabric.blocks(size)]):
        known = _listed(fabric.blocks(size))
        yield Finding(
            "fabric-block",
            "fabric",
            f"There is no block {_listed(missing)} for {size.name}",
            "A block has what Azure publishes for the size",
            f"Of that size there is {known}; leave the rest out." if known else "Leave `fabric` out.",
        )


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def processes(lowered: Lowered, count: int, target: Target) -> Iterator[Finding]:
    """Ranks against the GPUs of a node, where a launcher starts them inside one process of Azure ML.

    What Azure ML starts itself stands in the body, where the rules see it.
    """
    ranks, started = lowered.processes_per_node, getattr(lowered.distribution, "process_count_per_instance", None)
    if ranks is not None and ranks != started and (size := target.facts):
        found = check_processes(ranks, size, nodes=count)
        if found is not None:
            yield found


def locations(job: Job) -> Iterator[Finding]:
    """Regions of a serverless job that do not exist."""
    for name in job.locations or ():
        if (found := regions.finding(name, "locations")) is not None:
            yield replace(found, level=found.level if job.typed else Level.WARNING)
