"""The kinds of declarations, one row each: how a kind is planned, and how it is rendered.

A schedule starts any other kind, so that its plan stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from amlstack.base.findings import Finding, Level, stated
from jobs.model.job import Job, Sweep, SweepLimits
from jobs.model.pipeline import Cron, Declared, Pipeline, Recurrence, Schedule
from jobs.planning.job import plan_job
from jobs.planning.plans import BasePlan, Find, Plan, written_fields
from jobs.planning.sweep_and_pipeline import PipelinePlan, SweepPlan, plan_pipeline, plan_sweep
from jobs.values import Source
from jobs.wire.command import Refs, Rendered, body
from jobs.wire.component import render_sweep
from jobs.wire.pipeline import render_pipeline, render_schedule


@dataclass(frozen=True)
class SchedulePlan(BasePlan):
    """A schedule with the plan of what it starts.

    Attributes:
        job: As declared.
        started: The plan of what it starts; None where that is a job that ran before.
    """

    job: Schedule
    started: Plan | SweepPlan | PipelinePlan | None
    timed: ClassVar[bool] = True

    @property
    def runs(self) -> Plan | SweepPlan | PipelinePlan | None:  # type: ignore[override]
        """The plan of what it starts; None for a job that ran before."""
        return self.started

    @property
    def parts(self) -> Mapping[str, Plan]:
        """Those of what it starts; none of a job that ran before."""
        return {} if self.started is None else self.started.parts

    def trials(self, place: str) -> SweepLimits | None:
        """The trials of the part at a place."""
        return None if self.started is None else self.started.trials(place)

    @cached_property
    def enriched(self) -> Schedule:
        """The schedule with what it starts in Azure ML's words."""
        return self.job if self.started is None else self.job.model_copy(update={"create_job": self.started.enriched})

    @cached_property
    def declaration(self) -> dict[str, Any]:
        """The declaration as plain data."""
        started = self.job.create_job if self.started is None else self.started.declaration
        return {**written_fields(self.job, leave=("create_job", "source")), "create_job": started}


def schedule_findings(schedule: Schedule) -> Iterator[Finding]:
    """Findings on a schedule beside those on what it starts."""
    if not isinstance(schedule.create_job, Pipeline | str):
        kind = type(schedule.create_job).__name__.lower()
        yield stated("schedule-kind", "create_job", text="command job" if kind == "job" else kind)
    yield from _trigger(schedule.trigger)
    if schedule.trigger.start_time is None and schedule.is_enabled is not False:
        yield stated("schedule-starts-at-once", "trigger", Level.INFO)


def _trigger(trigger: Cron | Recurrence) -> Iterator[Finding]:
    if not isinstance(trigger, Recurrence):
        if len(trigger.expression.split()) != 5:
            yield stated("cron-expression", "trigger.expression", Level.WARNING, trigger=trigger)
        return
    pattern = trigger.schedule
    for key, values, most in (
        ("hours", pattern.hours if pattern else (), 23),
        ("minutes", pattern.minutes if pattern else (), 59),
    ):
        if any(not 0 <= value <= most for value in values):
            seen = f"`{key}` must be from 0 to {most}, got {', '.join(map(str, values))}"
            yield Finding("value-range", f"trigger.schedule.{key}", seen, "", level=Level.WARNING)


Planned = Plan | SweepPlan | PipelinePlan | SchedulePlan
"""The plan of a declaration."""


def resolve(
    declared: Declared, find: Find, *, source: Source | None = None, environments: Collection[str] = ()
) -> Planned:
    """Plan what a job file declares.

    Args:
        declared: A job, a sweep, a pipeline or a schedule.
        find: The target of a job (of a sweep's trial, of each step), and what is wrong with that.
        source: The file.
        environments: Names of environments that the stack registers, beside the curated ones.

    Returns:
        A plan; its findings include those on the targets.
    """
    planned: Planned = _kind(declared).plan(declared, find, source=source or Source(), environments=environments)
    return planned


def render(declared: Declared, refs: Refs | None = None, steps: Mapping[str, Refs] | None = None) -> Rendered:
    """The enriched declaration in the form of Azure's REST API: its body, and the components that it names.

    Args:
        declared: ``enriched`` of a plan.
        refs: What the references in it point to; None leaves them short.
        steps: Of a pipeline, for each step where its code and environment are.
    """
    return _kind(declared).render(declared, refs or Refs(), steps or {})


def with_enrich(declared: Declared, enrich: bool) -> Declared:
    """The same, enriched or not, whatever it says itself: the job, the sweep's trial, every step."""
    return declared.with_parts(lambda part: part.model_copy(update={"enrich": enrich}))


def _plan_schedule(schedule: Schedule, find: Find, *, source: Source, **context: Any) -> SchedulePlan:
    found = tuple(source.locate(finding) for finding in schedule_findings(schedule))
    if isinstance(schedule.create_job, str):
        return SchedulePlan(schedule, None, findings=found, base=source.base)
    own_file = schedule.source or Source(base=source.base)
    started = _kind(schedule.create_job).plan(schedule.create_job, find, source=own_file, **context)
    of_start = started.findings
    found += of_start if schedule.source else tuple(finding.under("create_job") for finding in of_start)
    return SchedulePlan(schedule, started, findings=found, base=source.base)


def _render_schedule(schedule: Schedule, refs: Refs, steps: Mapping[str, Refs]) -> Rendered:
    started = schedule.create_job
    return render_schedule(schedule, None if isinstance(started, str) else render(started, refs, steps))


class Kind(NamedTuple):
    """The two steps that every declaration of a kind takes.

    Attributes:
        plan: Takes the arguments of `resolve`.
        render: Takes the arguments of `render`.
    """

    plan: Callable[..., Any]
    render: Callable[..., Rendered]


KINDS: dict[type[Declared], Kind] = {
    Job: Kind(plan_job, lambda job, refs, _: Rendered(body(job, refs))),
    Sweep: Kind(plan_sweep, lambda sweep, refs, _: render_sweep(sweep, refs)),
    Pipeline: Kind(plan_pipeline, render_pipeline),
    Schedule: Kind(_plan_schedule, _render_schedule),
}


def _kind(declared: Declared) -> Kind:
    return next(KINDS[kind] for kind in type(declared).__mro__ if kind in KINDS)
