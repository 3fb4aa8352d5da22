"""A training run: its code's snapshot, and the job that runs it exactly once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pulumi

import jobs
from amlstack import resources
from amlstack.base.paths import PROJECT
from infra.components.environment import Environment
from infra.registered import Registered

if TYPE_CHECKING:
    from pathlib import Path

    from infra.components.cluster import RdmaCluster
    from infra.components.run_requirements import RunRequirements
    from infra.declare import Run


class Assets:
    """Environments and code snapshots, each registered once however many jobs use it."""

    def __init__(self, stack: RunRequirements) -> None:
        self.names = stack.workspace.names
        self.stack = stack
        self._depends_on: list[pulumi.Resource] = [stack.workspace]
        self._snapshots: dict[str, pulumi.Resource] = {}
        self._environments: dict[str, Environment] = {}

    def snapshot(self, folder: Path, content: str, beside: tuple[Path, ...] = ()) -> pulumi.Resource:
        """The snapshot of a folder, and what travels beside it, with that content hash."""
        name = " + ".join([os.path.relpath(folder, PROJECT), *(package.name for package in beside)])
        if name not in self._snapshots:
            self._snapshots[name] = resources.Snapshot(
                name,
                workspace=self.stack.workspace.workspace_id,
                path=str(folder),
                content_hash=content,
                beside=os.pathsep.join(map(str, beside)) or None,
                opts=pulumi.ResourceOptions(depends_on=self._depends_on),
            )
        return self._snapshots[name]

    def environment(self, spec: Registered) -> pulumi.Resource:
        """The registered environment of that content."""
        key = spec.id_in(self.names)
        if key not in self._environments:
            self._environments[key] = Environment(spec, self.stack.workspace)
        return self._environments[key]


class Training(pulumi.ComponentResource):
    """One job of the stack with what it needs."""

    def __init__(self, run: Run, assets: Assets, *, cluster: RdmaCluster | None) -> None:
        super().__init__("amlstack:infra:Training", run.name)
        names, plan = assets.names, run.plan
        clusters = [cluster] if cluster else []
        needs: list[pulumi.Resource] = [assets.stack.guard, *clusters]
        code_id = environment_id = None
        if run.code is not None:
            needs.append(assets.snapshot(run.code.root, run.code.hash, plan.beside))
            code_id = f"{names.workspace_id}/codes/{run.code.hash}/versions/1"
        if isinstance(plan.enriched.environment, jobs.Environment):
            registered = Registered.of(plan.enriched.environment, plan.base)
            needs.append(assets.environment(registered))
            environment_id = registered.id_in(names)
        job = plan.job
        self.job = resources.Job(
            run.name,
            workspace=names.workspace_id,
            name=run.name,
            declaration=plan.declaration,
            code_hash=run.own.hash,
            former_code_hashes=list(run.own.former),
            code_files=run.own.files,
            rerun=job.rerun or "",
            body=jobs.body(plan.enriched, jobs.Refs(names.workspace_id, code_id, environment_id)),
            on_edit=job.on_edit,
            wait=job.wait,
            delete_history=job.delete_history,
            placed_on=assets.stack.placed_on(clusters),
            stack_id=assets.stack.id,
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
        )
        self.register_outputs({"jobId": self.job.job_id})
