"""One way to plan and to render whatever a job file declares: a job, a sweep, a pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobs.body import body as command_body
from jobs.pipeline import Pipeline
from jobs.pipeline_body import pipeline_body
from jobs.pipeline_plan import PipelinePlan, plan_pipeline
from jobs.plan import Plan, plan
from jobs.source import Source
from jobs.sweep import Sweep
from jobs.sweep_body import sweep_body
from jobs.sweep_plan import SweepPlan, plan_sweep

Planned = Plan | SweepPlan | PipelinePlan
"""What a declaration is planned to be."""

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import date
    from pathlib import Path

    from jobs.pipeline_plan import Find
    from jobs.refs import Refs
    from jobs.spec import Job


def resolve(
    declared: Job | Sweep | Pipeline,
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


def with_enrich(declared: Job | Sweep | Pipeline, enrich: bool) -> Job | Sweep | Pipeline:
    """The same, enriched or not, whatever it says itself: the job, the sweep's trial, every step."""
    said = {"enrich": enrich}
    if isinstance(declared, Pipeline):
        return declared.model_copy(
            update={"jobs": {name: step.model_copy(update=said) for name, step in declared.jobs.items()}}
        )
    if isinstance(declared, Sweep):
        return declared.model_copy(update={"trial": declared.trial.model_copy(update=said)})
    return declared.model_copy(update=said)


def render(
    declared: Job | Sweep | Pipeline, refs: Refs | None = None, steps: Mapping[str, Refs] | None = None
) -> dict[str, Any]:
    """The body of what a plan enriched, ``{"properties": …}``.

    Args:
        declared: ``enriched`` of a plan.
        refs: What the references in it point to; None leaves them short.
        steps: Of a pipeline, for each step where its code and environment are.
    """
    if isinstance(declared, Pipeline):
        return pipeline_body(declared, refs, steps)
    if isinstance(declared, Sweep):
        return sweep_body(declared, refs)
    return command_body(declared, refs)


def parts(planned: Planned) -> dict[str, Plan]:
    """The plans of the command jobs in it, by their place in it; of a single job that place is empty."""
    if isinstance(planned, PipelinePlan):
        return {f"jobs.{name}": each for name, each in planned.steps.items()}
    return {"trial": planned.trial} if isinstance(planned, SweepPlan) else {"": planned}


def codes(planned: Planned) -> dict[str, Path]:
    """The folders to upload, by the place of the job that they belong to."""
    return {place: each.code for place, each in parts(planned).items() if each.code is not None}
