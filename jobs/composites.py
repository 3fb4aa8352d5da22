"""Whatever is declared beside a single job: planned, rendered and taken apart. A file of one job never loads this."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobs.loading import load
from jobs.model.job import Job
from jobs.model.location import Source
from jobs.model.pipeline import Pipeline
from jobs.model.schedule import Schedule
from jobs.model.sweep import Sweep
from jobs.planning.command import Plan
from jobs.planning.pipeline import PipelinePlan, plan_pipeline
from jobs.planning.schedule import SchedulePlan, schedule_body
from jobs.planning.schedule import check as check_schedule
from jobs.planning.sweep import SweepPlan, plan_sweep
from jobs.resolve import parts, render, resolve, with_enrich
from jobs.wire.pipeline import pipeline_body
from jobs.wire.sweep import sweep_body

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import date

    from jobs.planning.pipeline import Find
    from jobs.wire.references import Refs

Composite = Sweep | Pipeline | Schedule
"""A declaration that holds jobs."""
Declared = Job | Composite
"""What a job file declares."""
CompositePlan = SweepPlan | PipelinePlan | SchedulePlan
"""What such a declaration is planned to be."""
Planned = Plan | CompositePlan
"""What a declaration is planned to be."""


def resolve_composite(
    declared: Composite, find: Find, *, on: date, source: Source, environments: Collection[str]
) -> CompositePlan:
    """Plan a sweep, a pipeline or a schedule; see `jobs.resolve`."""
    if isinstance(declared, Schedule):
        return _scheduled(declared, find, on=on, source=source, environments=environments)
    if isinstance(declared, Pipeline):
        return plan_pipeline(declared, find, on=on, source=source, environments=environments)
    target, wrong = find(declared.trial)
    told = plan_sweep(declared, target, on=on, source=source, environments=environments)
    more = tuple(source.locate(finding.under("trial")) for finding in wrong)
    return replace(told, findings=(*told.findings, *more))


def _scheduled(
    schedule: Schedule, find: Find, *, on: date, source: Source, environments: Collection[str]
) -> SchedulePlan:
    found = [source.locate(finding) for finding in check_schedule(schedule)]
    if isinstance(schedule.create_job, str):
        return SchedulePlan(schedule, None, tuple(found), source.base)
    # The places in the file of what is started.
    inner = Source(base=source.base) if schedule.file is None else load(schedule.file).source
    started = resolve(schedule.create_job, find, on=on, source=inner, environments=environments)
    if isinstance(started, SchedulePlan):
        message = "a schedule starts no schedule"
        raise TypeError(message)
    told = started.findings if schedule.file else tuple(finding.under("create_job") for finding in started.findings)
    return SchedulePlan(schedule, started, (*found, *told), source.base)


def composite_with_enrich(declared: Composite, enrich: bool) -> Composite:
    """The same, enriched or not: the sweep's trial, every step, what a schedule starts."""
    said = {"enrich": enrich}
    if isinstance(declared, Schedule):
        if isinstance(declared.create_job, str):
            return declared
        return declared.model_copy(update={"create_job": with_enrich(declared.create_job, enrich)})
    if isinstance(declared, Pipeline):
        return declared.model_copy(
            update={"jobs": {name: step.model_copy(update=said) for name, step in declared.jobs.items()}}
        )
    return declared.model_copy(update={"trial": declared.trial.model_copy(update=said)})


def render_composite(declared: Composite, refs: Refs | None, steps: Mapping[str, Refs] | None) -> dict[str, Any]:
    """The body of a sweep, a pipeline or a schedule; see `jobs.render`."""
    if isinstance(declared, Schedule):
        started = declared.create_job
        return schedule_body(declared, None if isinstance(started, str) else render(started, refs, steps))
    if isinstance(declared, Pipeline):
        return pipeline_body(declared, refs, steps)
    return sweep_body(declared, refs)


def parts_of(planned: CompositePlan) -> dict[str, Plan]:
    """The plans of the command jobs in it, by their place in it."""
    if isinstance(planned, SchedulePlan):
        return {} if planned.started is None else parts(planned.started)
    if isinstance(planned, PipelinePlan):
        return {f"jobs.{name}": each for name, each in planned.steps.items()}
    return {"trial": planned.trial}
