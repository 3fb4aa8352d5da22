"""One way to plan and to render whatever a job file declares: a job, a sweep, a pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobs.body import body as command_body
from jobs.pipeline import Pipeline
from jobs.pipeline_body import pipeline_body
from jobs.pipeline_plan import PipelinePlan, plan_pipeline
from jobs.plan import Plan, plan
from jobs.schedule import Schedule
from jobs.schedule_plan import SchedulePlan, schedule_body
from jobs.schedule_plan import check as check_schedule
from jobs.source import Source
from jobs.sweep import Sweep
from jobs.sweep_body import sweep_body
from jobs.sweep_plan import SweepPlan, plan_sweep

Planned = Plan | SweepPlan | PipelinePlan | SchedulePlan
"""What a declaration is planned to be."""

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import date
    from pathlib import Path

    from jobs.pipeline_plan import Find
    from jobs.refs import Refs
    from jobs.spec import Job


def resolve(
    declared: Job | Sweep | Pipeline | Schedule,
    find: Find,
    *,
    on: date,
    source: Source | None = None,
    environments: Collection[str] = (),
) -> Planned:
    """Plan what a job file declares.

    Args:
        declared: A job, a sweep or a pipeline.
        find: The target of a job (of a sweep's trial, of each step), and what is wrong with that.
        on: The day of the judgement, for retired sizes.
        source: The file.
        environments: Names of environments that the stack registers, beside the curated ones.

    Returns:
        A plan; its findings include those on the targets.
    """
    source = source or Source()
    if isinstance(declared, Schedule):
        return _scheduled(declared, find, on=on, source=source, environments=environments)
    if isinstance(declared, Pipeline):
        return plan_pipeline(declared, find, on=on, source=source, environments=environments)
    if isinstance(declared, Sweep):
        target, wrong = find(declared.trial)
        told = plan_sweep(declared, target, on=on, source=source, environments=environments)
        more = tuple(source.locate(finding.under("trial")) for finding in wrong)
        return replace(told, findings=(*told.findings, *more))
    target, wrong = find(declared)
    single = plan(declared, target, on=on, source=source, environments=environments)
    return replace(single, findings=(*single.findings, *(source.locate(finding) for finding in wrong)))


def _scheduled(
    schedule: Schedule, find: Find, *, on: date, source: Source, environments: Collection[str]
) -> SchedulePlan:
    found = [source.locate(finding) for finding in check_schedule(schedule)]
    if isinstance(schedule.create_job, str):
        return SchedulePlan(schedule, None, tuple(found), source.base)
    inner = Source(base=source.base)
    if schedule.file is not None:
        from jobs.load import load  # noqa: PLC0415 - for the places in the file of what is started

        inner = load(schedule.file).source
    started = resolve(schedule.create_job, find, on=on, source=inner, environments=environments)
    if isinstance(started, SchedulePlan):
        message = "a schedule starts no schedule"
        raise TypeError(message)
    told = started.findings if schedule.file else tuple(finding.under("create_job") for finding in started.findings)
    return SchedulePlan(schedule, started, (*found, *told), source.base)


def with_enrich(declared: Job | Sweep | Pipeline | Schedule, enrich: bool) -> Job | Sweep | Pipeline | Schedule:
    """The same, enriched or not, whatever it says itself: the job, the sweep's trial, every step."""
    said = {"enrich": enrich}
    if isinstance(declared, Schedule):
        if isinstance(declared.create_job, str):
            return declared
        return declared.model_copy(update={"create_job": with_enrich(declared.create_job, enrich)})
    if isinstance(declared, Pipeline):
        return declared.model_copy(
            update={"jobs": {name: step.model_copy(update=said) for name, step in declared.jobs.items()}}
        )
    if isinstance(declared, Sweep):
        return declared.model_copy(update={"trial": declared.trial.model_copy(update=said)})
    return declared.model_copy(update=said)


def render(
    declared: Job | Sweep | Pipeline | Schedule, refs: Refs | None = None, steps: Mapping[str, Refs] | None = None
) -> dict[str, Any]:
    """The body of what a plan enriched, ``{"properties": …}``.

    Args:
        declared: ``enriched`` of a plan.
        refs: What the references in it point to; None leaves them short.
        steps: Of a pipeline, for each step where its code and environment are.
    """
    if isinstance(declared, Schedule):
        started = declared.create_job
        return schedule_body(declared, None if isinstance(started, str) else render(started, refs, steps))
    if isinstance(declared, Pipeline):
        return pipeline_body(declared, refs, steps)
    if isinstance(declared, Sweep):
        return sweep_body(declared, refs)
    return command_body(declared, refs)


def parts(planned: Planned) -> dict[str, Plan]:
    """The plans of the command jobs in it, by their place in it; of a single job that place is empty."""
    if isinstance(planned, SchedulePlan):
        return {} if planned.started is None else parts(planned.started)
    if isinstance(planned, PipelinePlan):
        return {f"jobs.{name}": each for name, each in planned.steps.items()}
    return {"trial": planned.trial} if isinstance(planned, SweepPlan) else {"": planned}


def codes(planned: Planned) -> dict[str, Path]:
    """The folders to upload, by the place of the job that they belong to."""
    return {place: each.code for place, each in parts(planned).items() if each.code is not None}
