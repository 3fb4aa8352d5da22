"""A schedule with what the job that it starts needs: snapshots, environments, component versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

import jobs
from amlstack import resources
from infra import parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.components.cluster import RdmaCluster
    from infra.scheduled import Timed
    from infra.training import Assets


class Timetable(pulumi.ComponentResource):
    """One schedule of the stack; everything that its job refers to is there before it can fire."""

    def __init__(self, timed: Timed, assets: Assets, *, clusters: Mapping[str, RdmaCluster]) -> None:
        super().__init__("amlstack:infra:Timetable", timed.name)
        plan = timed.plan
        made = parts.registered(timed.name, plan, timed.codes, assets, clusters=clusters, parent=self)
        self.schedule = resources.Schedule(
            timed.name,
            workspace=assets.stack.workspace.workspace_id,
            name=timed.name,
            body=jobs.render(plan.enriched, made.whole, made.refs),
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(made.needs)),
        )
        self.register_outputs({"scheduleId": self.schedule.schedule_id})
