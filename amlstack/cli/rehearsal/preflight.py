"""The check that `--preflight` puts before a job: amlnode's preflight and all-reduce on as many nodes as it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.cli.rehearsal.inputs import Data
from infra.runs import registration, with_environments

if TYPE_CHECKING:
    from amlstack.cli.rehearsal.request import RehearsalSurvey


def check_for(known: RehearsalSurvey, index: int) -> RehearsalSurvey:
    """A survey of the check alone: as many nodes as the largest part of a job takes, and a rank for each GPU.

    Args:
        known: The survey of the rehearsal.
        index: Which of its jobs.
    """
    import jobs

    part = max(known.plans[index].parts.values(), key=lambda each: each.nodes)
    has_gpus = part.target.facts is not None and part.target.facts.gpus > 0
    job = registration.check_job(
        f"{known.name_of(known.plans[index])}-preflight",
        compute=part.job.compute,
        nodes=part.nodes,
        instance_type=part.job.instance_type,
        launcher=jobs.PerProcess() if has_gpus else jobs.PerProcess(processes_per_node=part.processes_per_node or 1),
    )
    plan = jobs.resolve(
        with_environments(job, known.where.environment_of),
        known.where.of_file(known.request.file).of,
        source=jobs.Source(base=registration.CODE),
        environments=known.where.environments(),
    )
    return replace(known, plans=(plan,), sources=(Data(),), sites=(known.sites[index],), findings=(), missing=())
