"""Steps of a pipeline that no rehearsal can run, and components that lie in a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.cli.rehearsal.declared_inputs import within
from amlstack.cli.rehearsal.feasibility.aspect import Aspect
from amlstack.cli.rehearsal.workspace import rehearsal_workspace
from amlstack.sandbox.parents.pipeline_body import STEP_TYPES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import jobs
    from amlstack.cli.rehearsal.feasibility.stored import Stored


def aspects(plan: jobs.Planned, stored: Stored, given: Collection[str] = ()) -> Iterator[Aspect]:
    """What is in the way of each step of a pipeline; nothing for other plans.

    Args:
        plan: The plan.
        stored: What the sandbox's workspace holds.
        given: Steps that are not run, as their outputs are given.
    """
    yield from _of(plan.job.steps, "", stored, given)


def _of(steps: Mapping[str, Any], above: str, stored: Stored, given: Collection[str]) -> Iterator[Aspect]:
    for name, step in steps.items():
        place, runs = f"{above}jobs.{name}", step.runs
        if within(place.removeprefix("jobs."), given):
            continue
        if step.kind not in STEP_TYPES:
            text = f"the step is of the type `{step.kind}`, and a rehearsal runs {', '.join(STEP_TYPES)} steps"
            yield Aspect("steps", "blocks", text, "Rehearse the other steps' jobs alone.", (place,))
        elif isinstance(runs, str) and not _is_stored(runs, stored):
            text = f"`{runs}` is a component of a workspace or registry, of which this machine knows nothing"
            yield Aspect("steps", "blocks", text, "Name the component's file.", (place,))
        else:
            yield from _of(step.steps, f"{place}.", stored, given)


def _is_stored(component: str, stored: Stored) -> bool:
    name, _, version = component.removeprefix("azureml:").partition(":")
    return stored.properties(f"{rehearsal_workspace()}/components/{name}/versions/{version}") is not None
