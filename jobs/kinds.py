"""The kinds of declarations, one row each: how a kind is planned, and how it is rendered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.model.job import Job
from jobs.model.pipeline import Pipeline
from jobs.model.schedule import Declared, Schedule
from jobs.model.sweep import Sweep
from jobs.planning.command import plan_job
from jobs.planning.pipeline import PipelinePlan, plan_pipeline
from jobs.planning.plans import Plan
from jobs.planning.schedule import SchedulePlan, plan_schedule
from jobs.planning.sweep import SweepPlan, plan_sweep
from jobs.values import Source
from jobs.wire.command import Rendered, body
from jobs.wire.pipeline import render_pipeline, render_schedule
from jobs.wire.references import Refs
from jobs.wire.sweep import render_sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from jobs.planning.plans import Find

Planned = Plan | SweepPlan | PipelinePlan | SchedulePlan
"""What a declaration is planned to be."""


def resolve(
    declared: Declared,
    find: Find,
    *,
    source: Source | None = None,
    environments: Collection[str] = (),
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
    started = schedule.create_job
    if isinstance(started, str):
        return plan_schedule(schedule, None, source)
    own_file = schedule.source or Source(base=source.base)
    return plan_schedule(schedule, _kind(started).plan(started, find, source=own_file, **context), source)


def _render_schedule(schedule: Schedule, refs: Refs, steps: Mapping[str, Refs]) -> Rendered:
    started = schedule.create_job
    return render_schedule(schedule, None if isinstance(started, str) else render(started, refs, steps))


@dataclass(frozen=True, slots=True)
class Kind:
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
