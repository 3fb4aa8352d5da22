"""A sweep or a pipeline with what it needs: snapshots, environments, component versions, and the one job resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

import jobs
from amlstack import resources
from infra import parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.components.cluster import RdmaCluster
    from infra.composed import Composed
    from infra.training import Assets


class Composite(pulumi.ComponentResource):
    """One sweep or pipeline of the stack. All ids in its body are composed from content, so that a preview shows it."""

    def __init__(self, run: Composed, assets: Assets, *, clusters: Mapping[str, RdmaCluster]) -> None:
        super().__init__("amlstack:infra:Training", run.name)
        plan = run.plan
        made = parts.registered(run.name, plan, run.codes, assets, clusters=clusters, parent=self)
        job = plan.job
        self.job = resources.Job(
            run.name,
            workspace=assets.names.workspace_id,
            name=run.name,
            declaration=plan.declaration,
            code_hash=run.own.hash,
            former_code_hashes=list(run.own.former),
            code_files=run.own.files,
            rerun=job.rerun or "",
            body=jobs.render(plan.enriched, made.whole, made.refs),
            on_edit=job.on_edit,
            wait=job.wait,
            delete_history=job.delete_history,
            placed_on=assets.stack.placed_on(made.clusters),
            stack_id=assets.stack.id,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[assets.stack.guard, *made.needs]),
        )
        self.register_outputs({"jobId": self.job.job_id})
