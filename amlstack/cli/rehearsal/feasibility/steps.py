"""Steps of a pipeline that no rehearsal can run, and components that lie in a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jobs
from amlstack.cli.rehearsal.feasibility.aspect import Aspect
from amlstack.cli.rehearsal.workspace import rehearsal_workspace
from amlstack.sandbox.parents.pipeline_body import STEP_TYPES
from jobs.model.passthrough import PassthroughStep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from amlstack.cli.rehearsal.feasibility.stored import Stored


def aspects(plan: jobs.Planned, stored: Stored, given: Collection[str] = ()) -> Iterator[Aspect]:
    """What is in the way of each step of a pipeline; nothing for other plans.

    Args:
        plan: The plan.
        stored: What the sandbox's workspace holds.
        given: Steps that are not run, as their outputs are given.
    """
    if not isinstance(plan, jobs.PipelinePlan):
        return
    for name, step in plan.job.jobs.items():
        if name in given:
            continue
        if isinstance(step, PassthroughStep):
            text = f"the step is of the type `{step.kind}`, and a rehearsal runs {' and '.join(STEP_TYPES)} steps"
            yield Aspect("steps", "blocks", text, "Rehearse the other steps' jobs alone.", (f"jobs.{name}",))
        elif isinstance(step.runs, str) and not _is_stored(step.runs, stored):
            text = f"`{step.runs}` is a component of a workspace or registry, of which this machine knows nothing"
            remedy = "Name the component's file."
            yield Aspect("steps", "blocks", text, remedy, (f"jobs.{name}",))


def _is_stored(component: str, stored: Stored) -> bool:
    name, _, version = component.removeprefix("azureml:").partition(":")
    return stored.properties(f"{rehearsal_workspace()}/components/{name}/versions/{version}") is not None
