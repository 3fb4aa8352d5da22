"""All resources of a stack, in their order, and its outputs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from amlstack import resources
from amlstack.catalog import clock
from infra.azure_policy_assignment import assigned
from infra.components import access, capacity, data, foundation, keeper, sdk
from infra.components.azure_policy import StackAzurePolicy
from infra.components.cluster import RdmaCluster
from infra.components.foundation import RunRequirements
from infra.components.registration import StackTree
from infra.components.runs import Assets, submit_all
from infra.components.workspace.security import StackResources
from infra.names import Names
from jobs.model.pipeline import trigger_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jobs
    from infra.components.cluster import StackIdentity
    from infra.components.runs import Submitted
    from infra.components.workspace import AnyWorkspace
    from infra.data.assets import PlannedAsset
    from infra.names import Account
    from infra.runs import Run
    from infra.settings import Reading, Settings
    from policies.config import Config


@dataclass(frozen=True, slots=True)
class StackDeclaration:
    """The judged declaration of a stack.

    Attributes:
        settings: Its settings.
        runs: Its jobs and schedules.
        who: Subscription and tenant.
        rules: The configuration of the rules; None where Azure Policy is not assigned.
        data: The data assets.
        reading: Where the settings were written; None for a stack that is only looked at.
    """

    settings: Settings
    runs: Sequence[Run]
    who: Account
    rules: Config | None = None
    data: Sequence[PlannedAsset] = ()
    reading: Reading | None = None


async def build(declared: StackDeclaration) -> dict[str, Any]:
    """Declare the resources of a stack that nothing is wrong with.

    Returns:
        The stack's outputs.

    Raises:
        pulumi.RunError: Something that the settings build on is not there, the settings name another resource group
            than the protected one that the stack has, or the subscription has no room for the clusters.
    """
    settings = declared.settings
    registered, provider = _transform(declared)
    names = await _found_names(declared, provider)
    room = await _ask_for_room(declared, names, provider)
    # First of all resources, so that no run ever bears an id that the state does not know.
    record = resources.StackRecord("stack", stack_id=settings.stack_id)
    workspace = await _workspace(declared, names)
    shared = await _shared_identity(settings, workspace)
    tree = StackTree()
    clusters = _clusters(settings, workspace, shared, tree)
    stores = _datastores(settings, workspace, shared, clusters, tree)
    if settings.access:
        access.register(settings.access, workspace, tree.access)
    modes = {run.name: run.declared.on_edit for run in declared.runs if not run.is_schedule}
    needs = RunRequirements.of(record, workspace, shared, clusters, modes, secrets=settings.secrets)
    assets = Assets(needs, clusters, stores)
    for asset in declared.data:
        assets.data_asset(asset, tree.data)
    submitted = submit_all(declared.runs, assets, tree)
    gate = _azure_policy(declared, workspace)
    await room
    keeper.register(settings, workspace, record, registered)
    return {**gate, **_outputs(settings, workspace.names, submitted)}


def _transform(declared: StackDeclaration) -> tuple[StackResources, pulumi.ProviderResource | None]:
    """Register what changes, or sees, every resource; our provider, where the stack has one of its own."""
    if declared.reading is not None and declared.reading.secret:
        pulumi.runtime.register_stack_transformation(sdk.seal(declared.reading.secret))
    return StackResources.from_now_on(), sdk.register_provider(sdk.config(), declared.settings.arm_endpoint)


async def _found_names(declared: StackDeclaration, provider: pulumi.ProviderResource | None) -> Names:
    names = Names.of(
        declared.settings,
        project=pulumi.get_project(),
        stack=pulumi.get_stack(),
        subscription=declared.who.subscription,
    )
    return await foundation.found(names, declared.settings, provider)


async def _ask_for_room(
    declared: StackDeclaration, names: Names, provider: pulumi.ProviderResource | None
) -> asyncio.Future[None]:
    """Ask whether there is room for the clusters: before anything is made, while a preview plans."""
    room = asyncio.ensure_future(capacity.check(declared.settings, declared.reading, names, provider))
    # Where something else ends the program first, nobody asks for this one's error.
    room.add_done_callback(lambda done: done.cancelled() or done.exception())
    if not pulumi.runtime.is_dry_run():
        await room
    return room


async def _workspace(declared: StackDeclaration, names: Names) -> AnyWorkspace:
    if declared.settings.workspace.existing:
        return foundation.existing(names, declared.who, sdk.config())
    return await foundation.created(declared.settings, names, declared.who)


async def _shared_identity(settings: Settings, workspace: AnyWorkspace) -> StackIdentity | None:
    """The identity that clusters share, where one of them has it."""
    if all(cluster.identity.kind != "stack" for cluster in settings.clusters):
        return None
    return await foundation.identity(settings, workspace)


def _clusters(
    settings: Settings, workspace: AnyWorkspace, shared: StackIdentity | None, tree: StackTree
) -> dict[str, RdmaCluster]:
    return {
        cluster.name: RdmaCluster(
            cluster,
            location=cluster.location or settings.location,
            tags=settings.tags,
            workspace=workspace,
            shared=shared,
            assign_roles=settings.assign_roles,
            parent=tree.clusters,
        )
        for cluster in settings.clusters
    }


def _datastores(
    settings: Settings,
    workspace: AnyWorkspace,
    shared: StackIdentity | None,
    clusters: dict[str, RdmaCluster],
    tree: StackTree,
) -> dict[str, list[pulumi.Resource]]:
    """The resources that come before the use of each datastore."""
    if not settings.datastores:
        return {}
    return data.register_datastores(
        settings.datastores,
        workspace,
        data.holders_of(workspace, shared, clusters, settings.clusters) if settings.assign_roles else {},
        created=data.register_containers(settings, workspace, tree.data),
        cloud=sdk.config().get("azure-native:environment", ""),
        parent=tree.data,
    )


def _azure_policy(declared: StackDeclaration, workspace: AnyWorkspace) -> dict[str, Any]:
    """Register the rules at Azure's own gate, where the settings want them there; their output."""
    wanted = declared.settings.azure_policy
    if wanted is None or declared.rules is None:
        return {}
    spec = assigned(wanted, declared.rules, workspace.names, on=clock.today())
    gate = StackAzurePolicy(spec, depends_on=list(workspace.part("group")))
    return {"azurePolicy": {"assignmentId": gate.assignment_id, "effects": dict(spec.effects)}}


def _outputs(settings: Settings, names: Names, submitted: Sequence[tuple[Run, Submitted]]) -> dict[str, Any]:
    existing = {"existing": True} if settings.workspace.existing else {}
    outputs: dict[str, Any] = {
        "workspace": {
            "id": names.workspace_id,
            "name": names.workspace,
            "resource_group": names.group,
            **existing,
        },
        "clusters": {cluster.name: _cluster(cluster, names, settings.location) for cluster in settings.clusters},
        "jobs": {run.name: _job(run, made) for run, made in submitted if not run.is_schedule},
    }
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
