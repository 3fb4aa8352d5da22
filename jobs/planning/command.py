"""`plan`: from what a person wrote to what will run, with everything that is wrong collected on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.launchers.base import Shape
from jobs.model.location import Source
from jobs.planning import bindings, command_text, idle_gpus, nodeside
from jobs.planning.checks import build_context, local_files, machines, names, request
from jobs.planning.checks.declared_environment import check_environment
from jobs.planning.enrichment import enriched
from jobs.planning.resolved import Plan
from jobs.planning.target import Target
from jobs.wire.command import LOCAL
from jobs.wire.references import is_serverless

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from amlstack.base.findings import Finding
    from jobs.launchers.base import Lowered
    from jobs.model.job import Job
    from jobs.planning.target import Find


def plan(
    job: Job,
    target: Target | None = None,
    *,
    source: Source | None = None,
    environments: Collection[str] = (),
) -> Plan:
    """Resolve a job: count its ranks, lower its launcher, add what its size wants, and say what is wrong.

    Args:
        job: As declared.
        target: The cluster or serverless size; None takes the job's own instance_type.
        source: The job's file, for relative paths and the places of findings.
        environments: Names of environments that the stack registers, beside the curated ones.
    """
    source = source or Source()
    target = target or Target(size=job.instance_type if is_serverless(job.compute) else None)
    count = job.nodes if isinstance(job.nodes, int) else 1
    size = target.facts
    shape = Shape(nodes=count, gpus=size.gpus if size else None)
    lowered = job.launcher.lower(job.command, shape)
    rich, added = enriched(job, lowered, shape, target)
    found = (
        *names.run_name(job),
        *names.placeholders(job),
        *machines.locations(job),
        *check_environment(job, environments),
        *_findings(job, lowered, count, target, base=source.base),
        *machines.fabric_blocks(job, job.launcher.collectives(shape), target),
    )
    ranks = lowered.processes_per_node
    return Plan(
        job=job,
        enriched=rich,
        target=target,
        nodes=count,
        processes_per_node=ranks,
        world_size=None if ranks is None or not isinstance(job.nodes, int | None) else ranks * count,
        added=added,
        findings=tuple(source.locate(finding) for finding in found if not source.explains(finding)),
        base=source.base,
        beside=nodeside.packages(rich, source.base),
    )


def plan_job(job: Job, find: Find, *, source: Source, environments: Collection[str] = ()) -> Plan:
    """Resolve a job on the target that ``find`` gives it; see `jobs.resolve`."""
    target, wrong = find(job)
    planned = plan(job, target, source=source, environments=environments)
    if not wrong:
        return planned
    return replace(planned, findings=(*planned.findings, *map(source.locate, wrong)))


def _findings(job: Job, lowered: Lowered, count: int, target: Target, *, base: Path) -> Iterator[Finding]:
    yield from lowered.findings
    yield from bindings.check(job)
    yield from local_files.files(job, base)
    yield from command_text.check(job, base)
    yield from command_text.nebula(job, lowered.command, base)
    yield from nodeside.check(job)
    yield from request.variables(job, request.reserved(job))
    yield from request.losses(job)
    if job.compute is not None and job.compute.lower() == LOCAL:
        return
    yield from machines.nodes(job, count, target)
    yield from build_context.check(job, target, base)
    yield from machines.processes(lowered, count, target)
    yield from idle_gpus.check(job, lowered, target, base)
