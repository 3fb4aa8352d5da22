"""All resources of a stack, in their order, and its outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from amlstack import resources
from amlstack.catalog import clock
from infra import resource_types, security
from infra.components import children, registration
from infra.components.children import RdmaCluster, StackIdentity, check, check_providers
from infra.components.registration import StackTree, after, known_of, refuse, register
from infra.components.runs import Assets, Submitted, submit_all
from infra.components.workspace import AnyWorkspace, ExistingWorkspace, StackWorkspace
from infra.components.workspace.existing_workspace import confirmed, provider_of
from infra.components.workspace.parts import StackResources, moved
from infra.declaration import Assigned, assigned
from infra.names import Account, Names
from infra.network.plan import network_plan
from jobs.model.pipeline import trigger_text

if TYPE_CHECKING:
    import jobs
    from infra.data import PlannedAsset
    from infra.runs import Run
    from infra.settings import Reading, Settings
    from policies.config import Config


class StackAzurePolicy(pulumi.ComponentResource):
    """Definitions, the initiative of them, and its assignment."""

    def __init__(self, spec: Assigned, *, depends_on: list[pulumi.Resource]) -> None:
        super().__init__("amlstack:infra:AzurePolicy", "azure-policy")
        definitions = [
            register(
                resource_types.POLICY_DEFINITION,
                one["name"],
                {"policyDefinitionName": one["name"], **one["properties"]},
                pulumi.ResourceOptions(parent=self),
            )
            for one in spec.definitions
        ]
        name, properties = spec.initiative["name"], spec.initiative["properties"]
        initiative = register(
            resource_types.POLICY_SET_DEFINITION,
            "initiative",
            {"policySetDefinitionName": name, **properties},
            pulumi.ResourceOptions(parent=self, depends_on=definitions),
        )
        assignment = {
            "policyAssignmentName": name,
            "scope": spec.scope.lstrip("/"),
            "displayName": properties["displayName"],
            "description": properties["description"],
            "policyDefinitionId": spec.initiative_id,
            "enforcementMode": "Default",
            "parameters": {parameter: {"value": effect} for parameter, effect in spec.effects.items()},
            "nonComplianceMessages": [
                {"message": message, "policyDefinitionReferenceId": reference}
                for reference, message in spec.messages.items()
            ],
        }
        opts = pulumi.ResourceOptions(parent=self, depends_on=[initiative, *depends_on])
        register(resource_types.POLICY_ASSIGNMENT, "assignment", assignment, opts)
        self.assignment_id = f"{spec.scope}/providers/Microsoft.Authorization/policyAssignments/{name}"
        self.register_outputs({"assignmentId": self.assignment_id})


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
    if declared.reading is not None and declared.reading.secret:
        pulumi.runtime.register_stack_transformation(registration.seal(declared.reading.secret))
    registered = StackResources()
    pulumi.runtime.register_stack_transformation(registered)
    provider = registration.register_provider(registration.config(), settings.arm_endpoint)
    project, stack = pulumi.get_project(), pulumi.get_stack()
    names = Names.of(settings, project=project, stack=stack, subscription=declared.who.subscription)
    names = await confirmed(names, settings, provider)
    room = await _ask_for_room(declared, names, provider)
    # First of all resources, so that no run ever bears an id that the state does not know.
    record = resources.StackRecord("stack", stack_id=settings.stack_id)
    workspace = await _workspace(declared, names)
    shared = await _shared_identity(settings, workspace)
    tree = StackTree()
    clusters = {
        each.name: RdmaCluster(each, settings, workspace, shared, tree[resource_types.CLUSTERS])
        for each in settings.clusters
    }
    stores = _datastores(settings, workspace, shared, clusters, tree)
    if settings.access:
        children.register_access(settings.access, workspace, tree[resource_types.ACCESS])
    assets = Assets(settings, declared.runs, record, workspace, clusters=clusters, datastores=stores, shared=shared)
    for asset in declared.data:
        assets.data_asset(asset, tree[resource_types.DATA])
    submitted = submit_all(declared.runs, assets, tree)
    gate = _azure_policy(declared, workspace)
    await room
    if pulumi.runtime.is_dry_run():
        needed = sorted(registered.providers)
        await check_providers(settings, declared.reading, declared.who.subscription, needed, provider)
    _register_keeper(settings, workspace, record, registered)
    return {**gate, **_outputs(settings, workspace.names, submitted)}


async def _ask_for_room(
    declared: StackDeclaration, names: Names, provider: pulumi.ProviderResource | None
) -> asyncio.Future[None]:
    """Ask whether there is room for the clusters: before anything is made, while a preview plans."""
    room = asyncio.ensure_future(check(declared.settings, declared.reading, names, provider))
    # Where something else ends the program first, nobody asks for this one's error.
    room.add_done_callback(lambda done: done.cancelled() or done.exception())
    if not pulumi.runtime.is_dry_run():
        await room
    return room


async def _workspace(declared: StackDeclaration, names: Names) -> AnyWorkspace:
    """A workspace that somebody else owns, or the stack's own in the resource group that the stack has."""
    settings, who, stack = declared.settings, declared.who, pulumi.get_stack()
    if settings.workspace.existing:
        elsewhere = names.subscription.lower() != who.subscription.lower()
        return ExistingWorkspace(
            names, provider=provider_of(names.subscription, registration.config()) if elsewhere else None
        )
    workspace = StackWorkspace(settings, names, stack)
    if workspace.group is not None:
        names = names.within(await _name_of(workspace.group))
        if wrong := moved(settings, names):
            refuse([wrong])
    cloud = pulumi.Config("azure-native").get("environment") or "public"
    workspace.fill(names, who, network_plan(settings, names, stack, cloud))
    return workspace


async def _shared_identity(settings: Settings, workspace: AnyWorkspace) -> StackIdentity | None:
    """The identity that clusters share, where one of them has it, with its roles and under the name that it has."""
    if all(cluster.identity.kind != "stack" for cluster in settings.clusters):
        return None
    shared = StackIdentity(workspace, settings)
    if settings.workspace.existing:
        workspace.names = workspace.names.with_identity(await _name_of(shared.identity))
    shared.grant(workspace, assign_roles=settings.assign_roles)
    return shared


async def _name_of(resource: pulumi.Resource) -> str | None:
    """The name of a resource that the stack has; None while it has none, and where its registration failed."""
    try:
        name = await registration.output(resource, "name").future()
    except Exception:  # noqa: BLE001 - the engine has reported it already, and ends the program
        return None
    return str(name) if name else None


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
    return children.register_datastores(
        settings.datastores,
        workspace,
        children.holders_of(workspace, shared, clusters, settings.clusters) if settings.assign_roles else {},
        created=children.register_containers(settings, workspace, tree[resource_types.DATA]),
        cloud=registration.config().get("azure-native:environment", ""),
        parent=tree[resource_types.DATA],
    )


def _azure_policy(declared: StackDeclaration, workspace: AnyWorkspace) -> dict[str, Any]:
    """Register the rules at Azure's own gate, where the settings want them there; their output."""
    wanted = declared.settings.azure_policy
    if wanted is None or declared.rules is None:
        return {}
    spec = assigned(wanted, declared.rules, workspace.names, on=clock.today())
    gate = StackAzurePolicy(spec, depends_on=list(workspace.part("group")))
    return {"azurePolicy": {"assignmentId": gate.assignment_id, "effects": dict(spec.effects)}}


_NOT_IN_AZURE = (resources.StackRecord, resources.RunsGuard)
"""Ids of these are no ARM ids."""


def _register_keeper(
    settings: Settings, workspace: AnyWorkspace, record: resources.StackRecord, registered: StackResources
) -> None:
    """Declare what comes after everything else: locks, and then the keeper.

    The keeper is made last and deleted first: it refuses the end of the stack before anything is deleted.
    """
    workspace.lock(registered.locked_in)
    own = bool(workspace.part("workspace"))
    ids = [
        each.job_id if isinstance(each, resources.JobResource) else each.id
        for each in registered.every
        if not isinstance(each, _NOT_IN_AZURE)
    ]
    resources.StackKeeper(
        "keeper",
        stack_id=record.stack_id,
        owned=known_of(ids),
        group=workspace.group_id if workspace.part("group") else None,
        workspace=workspace.workspace_id if own else None,
        # The engine deletes nothing else while what goes first is protected.
        opts=pulumi.ResourceOptions(
            protect=own and security.is_protected(settings, pulumi.get_stack()), depends_on=[after(*registered.every)]
        ),
    )


def _outputs(settings: Settings, names: Names, submitted: Sequence[tuple[Run, Submitted]]) -> dict[str, Any]:
    existing = {"existing": True} if settings.workspace.existing else {}
    outputs: dict[str, Any] = {
        "workspace": {"id": names.workspace_id, "name": names.workspace, "resource_group": names.group, **existing},
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
    parts = {place: _planned(part) for place, part in run.plan.parts.items()}
    # A single job is its own one part.
    return {"jobId": job.job_id, "status": job.status, **parts.get("", {"parts": parts})}


def _schedule(run: Run, schedule: Any) -> dict[str, Any]:
    parts = {place: _planned(part) for place, part in run.plan.parts.items()}
    starts = trigger_text(run.declared.trigger)
    return {"scheduleId": schedule.schedule_id, "enabled": schedule.enabled, "starts": starts, "parts": parts}


def _planned(plan: jobs.Plan) -> dict[str, Any]:
    return {
        "cluster": plan.target.cluster,
        "size": plan.target.size,
        "nodes": plan.nodes,
        "processesPerNode": plan.processes_per_node,
        "worldSize": plan.world_size,
        "added": [added.what for added in plan.added],
    }
