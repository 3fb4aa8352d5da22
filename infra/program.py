"""The program: settings, their judgement, and only then resources."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime import config as engine_config

from amlstack.base.findings import errors
from amlstack.base.paths import PROJECT
from amlstack.catalog import clock
from infra import account
from infra.azure_policy_assignment import assigned
from infra.components.sdk import interruption, lean
from infra.components.shown import end, show
from infra.declaration import declare
from infra.names import Names
from infra.settings import from_engine, stackfile
from infra.settings.secrets import hidden
from infra.transformations import secret_inputs, sign_in
from jobs.model.schedule import trigger_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import jobs
    from infra.account import Account
    from infra.contents.assets import PlannedAsset
    from infra.runs import Run
    from infra.settings import Reading, Settings
    from policies.config import Config


def main() -> None:
    """Read and judge the stack, then declare its resources and outputs.

    Raises:
        pulumi.RunError: Something is wrong; each finding has been shown by the engine before.
    """
    lean.use()
    interruption.leave_at_once()
    config = _config()
    path = _stack_file()
    file, _ = stackfile.read(path)
    reading = from_engine(config, file, engine_config.get_config_secret_keys_env(), root=path.parent)
    who, unknown = account.resolve(config, os.environ)
    place = f"{pulumi.get_stack()}::{pulumi.get_project()}"
    declaration = declare(reading, on=clock.today(), place=place)
    found = [hidden(finding, reading.secret) for finding in (*declaration.findings, *unknown)]
    show(found)
    if wrong := errors(found):
        end(wrong)
    settings = reading.settings
    if settings is not None:
        # The engine waits for it: names depend on the group that the stack has, which only the engine knows.
        pulumi.run(
            lambda: build(
                settings,
                declaration.runs,
                who,
                rules=declaration.config,
                secret=reading.secret,
                data=declaration.data,
                reading=reading,
            )
        )


async def build(
    settings: Settings,
    runs: Iterable[Run],
    who: Account,
    *,
    rules: Config | None = None,
    secret: Collection[str] = (),
    data: Iterable[PlannedAsset] = (),
    reading: Reading | None = None,
) -> dict[str, Any]:
    """Declare the resources of a stack that nothing is wrong with.

    Returns:
        The stack's outputs.

    Raises:
        pulumi.RunError: Something that the settings build on is not there, the settings name another resource group
            than the protected one that the stack has, or the subscription has no room for the clusters.
    """
    from amlstack import resources  # noqa: PLC0415
    from infra.components import foundation, keeper  # noqa: PLC0415
    from infra.components.assets import Assets  # noqa: PLC0415
    from infra.components.cluster import RdmaCluster  # noqa: PLC0415
    from infra.components.parents import Parents  # noqa: PLC0415
    from infra.components.run_requirements import RunRequirements  # noqa: PLC0415
    from infra.components.training import submit_all  # noqa: PLC0415
    from infra.components.workspace.security.locks import StackResources  # noqa: PLC0415
    from infra.compute import capacity  # noqa: PLC0415

    if secret:
        pulumi.runtime.register_stack_transformation(secret_inputs.seal(secret))
    registered = StackResources.from_now_on()
    provider = sign_in.provide(_config(), settings.arm_endpoint)
    names = Names.of(settings, project=pulumi.get_project(), stack=pulumi.get_stack(), subscription=who.subscription)
    names = await foundation.found(names, settings, provider)
    room = asyncio.ensure_future(capacity.check(settings, reading, names, provider))
    # Where something else ends the program first, nobody asks for this one's error.
    room.add_done_callback(lambda done: done.cancelled() or done.exception())
    if not pulumi.runtime.is_dry_run():
        await room  # before anything is made; a preview plans meanwhile
    # First of all resources, so that no run ever bears an id that the state does not know.
    record = resources.StackRecord("stack", stack_id=settings.stack_id)
    if settings.workspace.existing:
        workspace = foundation.existing(names, who, _config())
    else:
        workspace = await foundation.created(settings, names, who)
    shared = None
    if any(cluster.identity.kind == "stack" for cluster in settings.clusters):
        shared = await foundation.identity(settings, workspace)
    names = workspace.names
    parents = Parents()
    clusters = {
        cluster.name: RdmaCluster(
            cluster,
            location=cluster.location or settings.location,
            tags=settings.tags,
            workspace=workspace,
            shared=shared,
            assign_roles=settings.assign_roles,
            parent=parents.clusters,
        )
        for cluster in settings.clusters
    }
    runs = list(runs)
    modes = {run.name: run.declared.on_edit for run in runs if not run.is_schedule}
    stores: dict[str, list[pulumi.Resource]] = {}
    if settings.datastores:
        from infra.components.contents import containers, datastores  # noqa: PLC0415

        holders = datastores.holders_of(workspace, shared, clusters, settings.clusters) if settings.assign_roles else {}
        cloud = _config().get("azure-native:environment", "")
        stores = datastores.register(
            settings.datastores,
            workspace,
            holders,
            created=containers.register(settings, workspace, parents.data),
            cloud=cloud,
            parent=parents.data,
        )
    if settings.access:
        from infra.components.contents import access  # noqa: PLC0415

        access.register(settings.access, workspace, parents.access)
    assets = Assets(
        RunRequirements.of(record, workspace, shared, clusters, modes, secrets=settings.secrets), clusters, stores
    )
    for asset in data:
        assets.data_asset(asset, parents.data)
    submitted = submit_all(runs, assets, parents)
    outputs: dict[str, Any] = {}
    if settings.azure_policy is not None and rules is not None:
        from infra.components.azure_policy import StackAzurePolicy  # noqa: PLC0415

        spec = assigned(settings.azure_policy, rules, names, on=clock.today())
        gate = StackAzurePolicy(spec, depends_on=list(workspace.part("group")))
        outputs["azurePolicy"] = {"assignmentId": gate.assignment_id, "effects": dict(spec.effects)}
    await room
    keeper.register(settings, workspace, record, registered)
    outputs["workspace"] = {"id": names.workspace_id, "name": names.workspace, "resource_group": names.group}
    if settings.workspace.existing:
        outputs["workspace"]["existing"] = True
    outputs["clusters"] = {cluster.name: _cluster(cluster, names, settings.location) for cluster in settings.clusters}
    outputs["jobs"] = {run.name: _job(run, made) for run, made in submitted if not run.is_schedule}
    schedules = {run.name: _schedule(run, made) for run, made in submitted if run.is_schedule}
    return {**outputs, "schedules": schedules} if schedules else outputs


def _cluster(cluster: Any, names: Names, location: str) -> dict[str, Any]:
    return {
        "id": names.cluster_id(cluster.name),
        "size": cluster.size,
        "min": cluster.nodes.min,
        "max": cluster.nodes.max,
        "priority": cluster.priority,
        "location": cluster.location or location,
    }


def _job(run: Run, job: Any) -> dict[str, Any]:
    parts = _parts(run)
    # A single job is its own one part.
    return {"jobId": job.job_id, "status": job.status, **parts.get("", {"parts": parts})}


def _schedule(run: Run, schedule: Any) -> dict[str, Any]:
    starts = trigger_text(run.declared.trigger)
    return {"scheduleId": schedule.schedule_id, "enabled": schedule.enabled, "starts": starts, "parts": _parts(run)}


def _parts(run: Run) -> dict[str, dict[str, Any]]:
    return {place: _planned(part) for place, part in run.plan.parts.items()}


def _planned(plan: jobs.Plan) -> dict[str, Any]:
    return {
        "cluster": plan.target.cluster,
        "size": plan.target.size,
        "nodes": plan.nodes,
        "processesPerNode": plan.processes_per_node,
        "worldSize": plan.world_size,
        "added": [added.what for added in plan.added],
    }


def _config() -> Mapping[str, str]:
    return {**engine_config.get_config_env(), **engine_config.CONFIG.get()}


def _stack_file() -> Path:
    """The settings' file, for saying where things stand; the engine's word on the project's folder may be missing."""
    name = f"Pulumi.{pulumi.get_stack()}.yaml"
    folders = [pulumi.get_root_directory(), os.environ.get("PWD"), PROJECT]
    files = [Path(folder) / name for folder in folders if folder]
    return next((file for file in files if file.is_file()), files[-1])
