"""Runs of a stack with what comes before them, each registered once: guard, code, data, environments, components."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pulumi

from amlstack import resources, snapshot
from amlstack.base.paths import PROJECT
from infra import resource_types
from infra.components.registration import StackTree, after, behind
from infra.data import PlannedAsset, named_in
from infra.runs.order import Order, RegisteredEnvironment, sequence
from infra.runs.registration import Registration, job_inputs
from jobs.local_data import DATASTORE, DataUpload
from jobs.wire.command import with_secrets

if TYPE_CHECKING:
    from infra.components.children import RdmaCluster, StackIdentity
    from infra.components.workspace import AnyWorkspace
    from infra.names import Names
    from infra.runs import Run
    from infra.settings import Settings


class Assets:
    """The resources before the runs of a stack: their guard, and the snapshots, uploads and environments they need.

    Attributes:
        workspace: The workspace, the stack's own or one that exists.
        stack_id: The stack's random id.
        before_jobs: The guard, which judges what would end active runs, as an entry of ``depends_on``.
        secrets: The stack's secrets for variables of jobs, by name, each marked as one.
    """

    def __init__(
        self,
        settings: Settings,
        runs: Sequence[Run],
        record: resources.StackRecord,
        workspace: AnyWorkspace,
        *,
        clusters: Mapping[str, RdmaCluster],
        datastores: Mapping[str, Sequence[pulumi.Resource]],
        shared: StackIdentity | None,
    ) -> None:
        """Declare the guard; it comes before every job and after every cluster.

        Args:
            settings: The stack's.
            runs: Its jobs and schedules.
            record: Its record.
            workspace: Complete.
            clusters: All clusters by name.
            datastores: What comes before the use of a datastore, by its name.
            shared: The identity of the clusters, where the stack makes one.
        """
        self.workspace, self.stack_id = workspace, record.stack_id
        self._clusters, self._datastores = clusters, datastores
        self._reached_by = (*workspace.reached_by, *([shared.identity] if shared else ()))
        guard = resources.RunsGuard(
            "runs",
            workspace=workspace.settled_id,
            # What counts is what it comes from: the engine asks the guard before it replaces any of that.
            reached_by=behind("identities and network", *self._reached_by) if self._reached_by else None,
            stack_id=record.stack_id,
            jobs={run.name: run.declared.on_edit for run in runs if not run.is_schedule},
            clusters={name: cluster.compute.id for name, cluster in clusters.items()},
        )
        self.before_jobs = after(guard)
        self.secrets = {name: pulumi.Output.secret(value) for name, value in settings.secrets.items()}
        self._snapshots: dict[str, pulumi.Resource] = {}
        self._uploads: dict[str, pulumi.Resource] = {}
        self._environments: dict[str, pulumi.Resource] = {}
        self._data: dict[str, pulumi.Resource] = {}

    @property
    def names(self) -> Names:
        """The stack's names and ids."""
        return self.workspace.names

    def register(self, registration: Registration, parent: pulumi.Resource) -> list[pulumi.Resource]:
        """Register what comes before a run, in its order; the resources, which the run depends on.

        Args:
            registration: What the run needs.
            parent: Of its component versions.
        """
        needs: list[pulumi.Resource] = []
        for part in registration.parts:
            cluster = self._clusters.get(part.cluster or "")
            if cluster is not None and cluster.compute not in needs:
                needs += cluster.resources
            if part.code is not None:
                needs.append(self._snapshot(part.code, part.beside))
            if part.environment is not None:
                needs.append(self._environment(part.environment))
        needs += map(self._upload, registration.uploads)
        needs += (self._data[each] for each in registration.assets)
        for name in registration.datastores:
            needs += self._datastores.get(name, ())
        before = list(needs)
        versions: list[pulumi.Resource] = []
        for component in registration.components:
            version = resources.ComponentVersionResource(
                component.label,
                workspace=self.workspace.workspace_id,
                name=component.name,
                version=component.version,
                body=component.properties,
                opts=pulumi.ResourceOptions(
                    parent=parent, depends_on=[*before, *(versions if component.is_pipeline else ())]
                ),
            )
            versions.append(version)
        return [*needs, *versions]

    def placed_on(self, registration: Registration) -> list[pulumi.Output[str]]:
        """Ids of what a run lives on."""
        names = dict.fromkeys(part.cluster or "" for part in registration.parts)
        clusters = [self._clusters[name].compute for name in names if name in self._clusters]
        below = (*self.workspace.part("storage"), *self.workspace.part("workspace"), *clusters, *self._reached_by)
        stores = (each for name in registration.datastores for each in self._datastores.get(name, ()))
        kept = [each for each in dict.fromkeys(stores) if each.pulumi_resource_type in resource_types.HOLDS_DATA]
        return [each.id for each in (*below, *kept) if isinstance(each, pulumi.CustomResource)]

    def _snapshot(self, code: snapshot.Snapshot, beside: tuple[Path, ...]) -> pulumi.Resource:
        name = " + ".join([os.path.relpath(code.root, PROJECT), *(package.name for package in beside)])
        if name not in self._snapshots:
            self._snapshots[name] = resources.SnapshotResource(
                name,
                workspace=self.workspace.workspace_id,
                path=str(code.root),
                content_hash=code.hash,
                beside=os.pathsep.join(map(str, beside)) or None,
                opts=pulumi.ResourceOptions(depends_on=[self.workspace.everything]),
            )
        return self._snapshots[name]

    def _upload(self, upload: DataUpload) -> pulumi.Resource:
        name = os.path.relpath(upload.path, PROJECT)
        if upload.datastore != DATASTORE:
            name = f"{name} in {upload.datastore}"
        if name not in self._uploads:
            self._uploads[name] = resources.DataUploadResource(
                name,
                workspace=self.workspace.workspace_id,
                path=str(upload.path),
                content_hash=upload.content.hash,
                datastore=upload.datastore,
                opts=pulumi.ResourceOptions(
                    depends_on=[self.workspace.everything, *self._datastores.get(upload.datastore, ())]
                ),
            )
        return self._uploads[name]

    def data_asset(self, asset: PlannedAsset, parent: pulumi.Resource) -> None:
        """Register a version of a data asset of the settings, after its data."""
        before = [self._upload(asset.upload)] if asset.upload is not None else []
        for name in sorted(named_in(asset.uri)):
            before += self._datastores.get(name, ())
        self._data[asset.reference] = resources.DataVersionResource(
            asset.label,
            workspace=self.workspace.workspace_id,
            name=asset.spec.name,
            version=asset.version,
            body=asset.body,
            opts=pulumi.ResourceOptions(parent=parent, depends_on=[self.workspace.everything, *before]),
        )

    def _environment(self, spec: RegisteredEnvironment) -> pulumi.Resource:
        key = spec.id_in(self.names)
        if key not in self._environments:
            # Adopted when it is there already, kept when the stack goes.
            self._environments[key] = resources.EnvironmentVersionResource(
                f"{spec.name}-{spec.version}",
                workspace=self.workspace.workspace_id,
                name=spec.name,
                body=spec.body,
                opts=pulumi.ResourceOptions(depends_on=[self.workspace.everything]),
            )
        return self._environments[key]


Submitted = resources.JobResource | resources.ScheduleResource


def submit_all(runs: Sequence[Run], assets: Assets, tree: StackTree) -> list[tuple[Run, Submitted]]:
    """Register runs and schedules, each after what it needs and after the runs that it waits for; in their order."""
    once = {run.name: run for run in runs if not run.is_schedule}
    before = {name: run.after for name, run in once.items()}
    awaited = Order(before, ()).awaited()
    made: dict[str, resources.JobResource] = {}
    for name in sequence(before):
        earlier = {each: made[each] for each in before[name]}
        made[name] = _job(once[name], assets, tree[resource_types.JOBS], earlier, awaited.get(name, ()))
    result: list[tuple[Run, Submitted]] = []
    for run in runs:
        gates = [made[name] for name in run.after]
        result.append(
            (run, _schedule(run, assets, tree[resource_types.SCHEDULES], gates) if run.is_schedule else made[run.name])
        )
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
        body=with_secrets(registration.body, assets.secrets),
        on_edit=job.on_edit,
        # A run that others come after has to complete, whatever its own settings say.
        wait="completed" if awaited_by else job.wait,
        after=[{"job": name, "run": each.job_id, "status": each.status} for name, each in earlier.items()] or None,
        awaited_by=list(awaited_by) or None,
        placed_on=assets.placed_on(registration),
        stack_id=assets.stack_id,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[assets.before_jobs, *needs]),
    )


def _schedule(
    run: Run, assets: Assets, parent: pulumi.Resource, gates: Sequence[pulumi.Resource]
) -> resources.ScheduleResource:
    """A schedule; everything that its job refers to is there before it can fire, fabric checks have completed."""
    registration = Registration.of(run.name, run.plan, run.codes, assets.names, run.data, assets=run.assets)
    needs = assets.register(registration, parent)
    return resources.ScheduleResource(
        run.name,
        workspace=assets.workspace.workspace_id,
        name=run.name,
        body=with_secrets(registration.body, assets.secrets),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[*needs, *gates]),
    )
