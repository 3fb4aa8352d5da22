"""`plan`: from what a person wrote to what will run, with everything that is wrong collected on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.launchers.base import Shape
from jobs.planning import command_checks, enrichment, environment_checks, job_checks
from jobs.planning.enrichment import enriched
from jobs.planning.environment_checks import check_environment
from jobs.planning.plans import Plan, Target
from jobs.values import Source
from jobs.wire.command import LOCAL
from jobs.wire.references import is_serverless

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from amlstack.base.findings import Finding
    from jobs.launchers.base import Lowered
    from jobs.model.job import Job
    from jobs.planning.plans import Find


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
        *job_checks.run_name(job),
        *job_checks.placeholders(job),
        *job_checks.locations(job),
        *check_environment(job, environments),
        *_findings(job, lowered, count, target, base=source.base),
        *job_checks.fabric_blocks(job, job.launcher.collectives(shape), target),
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
        beside=enrichment.packages_beside(rich, source.base),
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
    yield from job_checks.bindings(job)
    yield from job_checks.local_files(job, base)
    yield from command_checks.command_words(job, base)
    yield from command_checks.nebula(job, lowered.command, base)
    yield from enrichment.check_amlnode(job)
    yield from job_checks.variables(job, job_checks.reserved_variables(job))
    yield from job_checks.losses(job)
    if job.compute is not None and job.compute.lower() == LOCAL:
        return
    yield from job_checks.node_count(job, count, target)
    yield from environment_checks.check_build_context(job, target, base)
    yield from job_checks.ranks_per_node(lowered, count, target)
    yield from command_checks.idle_gpus(job, lowered, target, base)
