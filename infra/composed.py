"""Sweeps and pipelines of a stack: several jobs in one run, each with its own code, environment and cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jobs
from amlstack import snapshot
from amlstack.base.paths import is_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Environment = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Composed:
    """One sweep or pipeline of the stack.

    Attributes:
        name: Name of the run; its id is this and a hash.
        plan: The sweep or pipeline against the clusters of its parts.
        codes: The content of each part's folder, by the part's place; parts without one are not there.
        own: What of all its code counts for the run's identity.
    """

    name: str
    plan: jobs.SweepPlan | jobs.PipelinePlan
    codes: Mapping[str, snapshot.Snapshot]
    own: snapshot.OwnCode


def scanned(plan: jobs.Planned) -> dict[str, snapshot.Snapshot]:
    """The content of each part's folder; a folder that is missing is told by the plan."""
    return {
        place: snapshot.scan(part.code, part.beside)
        for place, part in jobs.parts(plan).items()
        if part.code is not None and is_dir(part.code)
    }


def own_code(plan: jobs.Plan, code: snapshot.Snapshot, file: Path) -> snapshot.OwnCode:
    """What of a job's code counts for its run's identity; ``file`` declares the run."""
    return snapshot.own_code(code, declared_in=(file,), commands=(plan.enriched.command,))


def own_codes(plan: jobs.Planned, codes: Mapping[str, snapshot.Snapshot], file: Path) -> snapshot.OwnCode:
    """The same of a run of several parts, whose codes are given by their places."""
    parts = jobs.parts(plan)
    return snapshot.together({place: own_code(parts[place], code, file) for place, code in codes.items()})


def with_environments(declared: jobs.Sweep | jobs.Pipeline, means: Environment) -> jobs.Sweep | jobs.Pipeline:
    """The same, with each part's environment as the stack means it.

    Args:
        declared: As its file says it.
        means: From a job or a component to what the stack says of its environment (`environment_of`).
    """
    if isinstance(declared, jobs.Sweep):
        return declared.model_copy(update={"trial": declared.trial.model_copy(update=means(declared.trial))})
    return declared.model_copy(update={"jobs": {name: _step(step, means) for name, step in declared.jobs.items()}})


def _step(step: Any, means: Environment) -> Any:
    """A step of any kind, those of a pipeline in the pipeline included; what runs no component of its own stays."""
    if isinstance(step, jobs.Job):
        return step.model_copy(update=means(step))
    field = "trial" if isinstance(step, jobs.SweepStep) else "component"
    component = getattr(step, field)
    if isinstance(component, jobs.PassthroughComponent):
        inner = {name: _step(each, means) for name, each in component.jobs.items()}
        return step.model_copy(update={field: component.model_copy(update={**means(component), "jobs": inner})})
    if not isinstance(component, jobs.Component):
        return step
    return step.model_copy(update={field: component.model_copy(update=means(component))})
