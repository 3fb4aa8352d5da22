"""Runs and schedules of a stack: what each needs, and the one resource that submits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from amlstack import resources
from infra.registration import Registration

if TYPE_CHECKING:
    from infra.components.assets import Assets
    from infra.runs import Run


class Training(pulumi.ComponentResource):
    """One job, sweep or pipeline of the stack, which runs exactly once."""

    def __init__(self, run: Run, assets: Assets) -> None:
        super().__init__("amlstack:infra:Training", run.name)
        registration = Registration.of(run.name, run.plan, run.codes, assets.names)
        needs = assets.register(registration, parent=self)
        job = run.declared
        self.resource = resources.JobResource(
            run.name,
            workspace=assets.names.workspace_id,
            name=run.name,
            declaration=run.plan.declaration,
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
            opts=pulumi.ResourceOptions(parent=self, depends_on=[assets.stack.guard, *needs]),
        )
        self.register_outputs({"jobId": self.resource.job_id})


class StackSchedule(pulumi.ComponentResource):
    """One schedule of the stack; everything that its job refers to is there before it can fire."""

    def __init__(self, run: Run, assets: Assets) -> None:
        super().__init__("amlstack:infra:Timetable", run.name)  # the type's name is in the state of every stack
        registration = Registration.of(run.name, run.plan, run.codes, assets.names)
        needs = assets.register(registration, parent=self)
        self.resource = resources.ScheduleResource(
            run.name,
            workspace=assets.stack.workspace.workspace_id,
            name=run.name,
            body=registration.body,
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
        )
        self.register_outputs({"scheduleId": self.resource.schedule_id})
