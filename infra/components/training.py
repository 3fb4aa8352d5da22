"""Runs and schedules of a stack: what each needs, and the one resource that submits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from amlstack import resources
from infra.components import tokens
from infra.components.parents import formerly_in
from infra.registration import Registration

if TYPE_CHECKING:
    from infra.components.assets import Assets
    from infra.components.parents import Parents
    from infra.runs import Run


def submit(run: Run, assets: Assets, parents: Parents) -> resources.JobResource | resources.ScheduleResource:
    """Register a run or a schedule, and before it what it needs."""
    return _schedule(run, assets, parents.schedules) if run.is_schedule else _job(run, assets, parents.jobs)


def _job(run: Run, assets: Assets, parent: pulumi.Resource) -> resources.JobResource:
    """A job, sweep or pipeline, which runs exactly once."""
    registration = Registration.of(run.name, run.plan, run.codes, assets.names, run.data)
    needs = assets.register(registration, parent, tokens.FORMER_JOB)
    job = run.declared
    return resources.JobResource(
        run.name,
        workspace=assets.names.workspace_id,
        name=run.name,
        declaration=run.data.identity(run.plan.declaration),
        code_hash=run.own.hash,
        former_code_hashes=list(run.own.former),
        code_files=run.own.files,
        rerun=job.rerun or "",
        body=registration.body,
        on_edit=job.on_edit,
        wait=job.wait,
        delete_history=job.delete_history,
        placed_on=assets.placed_on(registration),
        stack_id=assets.stack.id,
        opts=pulumi.ResourceOptions(
            parent=parent,
            aliases=[formerly_in(tokens.FORMER_JOB, tokens.JOB, run.name)],
            depends_on=[assets.stack.before_jobs, *needs],
        ),
    )


def _schedule(run: Run, assets: Assets, parent: pulumi.Resource) -> resources.ScheduleResource:
    """A schedule; everything that its job refers to is there before it can fire."""
    registration = Registration.of(run.name, run.plan, run.codes, assets.names, run.data)
    needs = assets.register(registration, parent, tokens.FORMER_SCHEDULE)
    return resources.ScheduleResource(
        run.name,
        workspace=assets.stack.workspace.workspace_id,
        name=run.name,
        body=registration.body,
        opts=pulumi.ResourceOptions(
            parent=parent,
            aliases=[formerly_in(tokens.FORMER_SCHEDULE, tokens.SCHEDULE, run.name)],
            depends_on=needs,
        ),
    )
