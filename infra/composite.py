"""A sweep or a pipeline with what it needs: snapshots, environments, component versions, and the one job resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

import jobs
from amlstack import resources
from infra.registered import Registered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.composed import Composed
    from infra.training import Assets


class Composite(pulumi.ComponentResource):
    """One sweep or pipeline of the stack. All ids in its body are composed from content, so that a preview shows it."""

    def __init__(self, run: Composed, assets: Assets, *, clusters: Mapping[str, pulumi.Resource]) -> None:
        super().__init__("amlstack:infra:Training", run.name)
        names, plan = assets.names, run.plan
        needs: list[pulumi.Resource] = []
        refs: dict[str, jobs.Refs] = {}
        for place, part in jobs.parts(plan).items():
            code_id = environment_id = None
            if (cluster := clusters.get(part.target.cluster or "")) is not None and cluster not in needs:
                needs.append(cluster)
            if (code := run.codes.get(place)) is not None:
                needs.append(assets.snapshot(code.root, code.hash, part.beside))
                code_id = f"{names.workspace_id}/codes/{code.hash}/versions/1"
            if isinstance(part.enriched.environment, jobs.Environment):
                registered = Registered.of(part.enriched.environment, part.base)
                needs.append(assets.environment(registered))
                environment_id = registered.id_in(names)
            refs[place.removeprefix("jobs.")] = jobs.Refs(names.workspace_id, code_id, environment_id)
        whole = refs.get("trial", jobs.Refs(names.workspace_id))
        components = self._components(run, assets, needs, whole, refs)
        job = plan.job
        self.job = resources.Job(
            run.name,
            workspace=names.workspace_id,
            name=run.name,
            declaration=plan.declaration,
            code_hash=run.code_hash,
            rerun=job.rerun or "",
            body=jobs.render(plan.enriched, whole, refs),
            on_edit=job.on_edit,
            wait=job.wait,
            delete_history=job.delete_history,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*needs, *components]),
        )
        self.register_outputs({"jobId": self.job.job_id})

    def _components(
        self,
        run: Composed,
        assets: Assets,
        needs: list[pulumi.Resource],
        whole: jobs.Refs,
        refs: Mapping[str, jobs.Refs],
    ) -> list[pulumi.Resource]:
        """The component versions that a pipeline's steps refer to, each once however many steps run it."""
        pipeline = run.plan.enriched
        if not isinstance(pipeline, jobs.Pipeline):
            return []
        told: dict[str, pulumi.Resource] = {}
        for step, body in jobs.components(pipeline, whole, refs).items():
            component_id = jobs.component_id(body, whole)
            *_, name, _, version = component_id.split("/")
            if component_id not in told:
                told[component_id] = resources.ComponentVersion(
                    f"{run.name}.{step}",
                    workspace=assets.names.workspace_id,
                    name=name,
                    version=version,
                    body=body["properties"],
                    opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
                )
        return list(told.values())
