"""Runs and schedules of a stack: what each needs, and the one resource that submits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from amlstack import resources
from infra.runs.order import Order, sequence
from infra.runs.registration import Registration, job_inputs
from jobs.wire.references import with_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.components.assets import Assets
    from infra.components.stack_tree import StackTree
    from infra.runs import Run


Submitted = resources.JobResource | resources.ScheduleResource


def submit_all(runs: Sequence[Run], assets: Assets, tree: StackTree) -> list[tuple[Run, Submitted]]:
    """Register runs and schedules, each after what it needs and after the runs that it waits for; in their order."""
    once = {run.name: run for run in runs if not run.is_schedule}
    before = {name: run.after for name, run in once.items()}
    awaited = Order(before, ()).awaited()
    made: dict[str, resources.JobResource] = {}
    for name in sequence(before):
        earlier = {each: made[each] for each in before[name]}
        made[name] = _job(once[name], assets, tree.jobs, earlier, awaited.get(name, ()))
    result: list[tuple[Run, Submitted]] = []
    for run in runs:
        gates = [made[name] for name in run.after]
        result.append((run, _schedule(run, assets, tree.schedules, gates) if run.is_schedule else made[run.name]))
    return result


def _job(
    run: Run,
    assets: Assets,
    parent: pulumi.Resource,
    earlier: Mapping[str, resources.JobResource],
    awaited_by: Sequence[str],
) -> resources.JobResource:
    """A job, sweep or pipeline, which runs exactly once.

    Args:
        run: What is declared.
        assets: What the stack has registered for its runs.
        parent: Of all jobs.
        earlier: Those that must have completed before, by name.
        awaited_by: Names of those that come after it.
    """
    registration = Registration.of(run.name, run.plan, run.codes, assets.names, run.data, assets=run.assets)
    needs = assets.register(registration, parent)
    job = run.declared
    return resources.JobResource(
        run.name,
        **job_inputs(run),
        workspace=assets.names.workspace_id,
        body=with_secrets(registration.body, assets.stack.secrets),
        on_edit=job.on_edit,
        # A run that others come after has to complete, whatever its own settings say.
        wait="completed" if awaited_by else job.wait,
        after=[{"job": name, "run": each.job_id, "status": each.status} for name, each in earlier.items()] or None,
        awaited_by=list(awaited_by) or None,
        placed_on=assets.placed_on(registration),
        stack_id=assets.stack.id,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[assets.stack.before_jobs, *needs]),
    )


def _schedule(
    run: Run, assets: Assets, parent: pulumi.Resource, gates: Sequence[pulumi.Resource]
) -> resources.ScheduleResource:
    """A schedule; everything that its job refers to is there before it can fire, fabric checks have completed."""
    registration = Registration.of(run.name, run.plan, run.codes, assets.names, run.data, assets=run.assets)
    needs = assets.register(registration, parent)
    return resources.ScheduleResource(
        run.name,
        workspace=assets.stack.workspace.workspace_id,
        name=run.name,
        body=with_secrets(registration.body, assets.stack.secrets),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[*needs, *gates]),
    )
