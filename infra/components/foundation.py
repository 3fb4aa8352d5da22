"""The foundation of a stack's runs: its id, the workspace, the clusters with their identity, and their guard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from amlstack import resources
from infra import security
from infra.components import registration
from infra.components.cluster import StackIdentity
from infra.components.registration import after, behind, refuse
from infra.components.workspace import ExistingWorkspace, StackWorkspace, moved, provider_of
from infra.components.workspace.existing_workspace import look_up_group, look_up_parts, look_up_workspace
from infra.network import plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.base.findings import Finding
    from infra.components.cluster import RdmaCluster
    from infra.components.workspace import AnyWorkspace
    from infra.names import Account, Names
    from infra.settings import Settings


async def found(names: Names, settings: Settings, provider: pulumi.ProviderResource | None) -> Names:
    """The names, after Azure has confirmed what the settings give by `existing`.

    Args:
        names: Of the stack.
        settings: Its settings.
        provider: Our provider, where the stack has one of its own.

    Raises:
        pulumi.RunError: Something is not there, or may not be read; it has been shown.
    """
    wrong: list[Finding] = []
    if settings.workspace.existing:
        names, wrong = await look_up_workspace(names, provider)
    else:
        if settings.resource_group and settings.resource_group.existing:
            wrong = await look_up_group(names, provider)
        if names.elsewhere and not wrong:
            wrong = await look_up_parts(names, provider)
    if wrong:
        refuse(wrong)
    return names


def existing(names: Names, who: Account, config: Mapping[str, str]) -> AnyWorkspace:
    """A workspace that somebody else owns.

    Args:
        names: Its place, with what it stands on.
        who: The stack's own subscription.
        config: The engine's configuration, ``namespace:key`` → value.
    """
    elsewhere = names.subscription.lower() != who.subscription.lower()
    return ExistingWorkspace(names, provider=provider_of(names.subscription, config) if elsewhere else None)


async def created(settings: Settings, names: Names, who: Account) -> AnyWorkspace:
    """The stack's own workspace, in the resource group that the stack has.

    Raises:
        pulumi.RunError: The settings name another group than the protected one that the stack has.
    """
    stack = pulumi.get_stack()
    protect = security.is_protected(settings, stack)
    workspace = StackWorkspace(
        settings.workspace,
        names,
        security=security.of_stack(settings, stack),
        assign_roles=settings.assign_roles,
        location=settings.location,
        tags=settings.tags,
        keeps_group=protect or settings.resource_group is None,
        protect=protect,
        owns_group=not (settings.resource_group and settings.resource_group.existing),
    )
    if workspace.group is not None:
        names = names.within(await _name_of(workspace.group))
        if wrong := moved(settings, names):
            refuse([wrong])
    cloud = pulumi.Config("azure-native").get("environment") or "public"
    workspace.fill(names, who, plan.network_plan(settings, names, pulumi.get_stack(), cloud))
    return workspace


async def identity(settings: Settings, workspace: AnyWorkspace) -> StackIdentity:
    """The stack's identity with its roles; on a workspace that exists under the name that the stack has given it."""
    keeps_name = settings.workspace.existing is not None
    shared = StackIdentity(workspace, location=settings.location, tags=settings.tags, keeps_name=keeps_name)
    if keeps_name:
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


@dataclass(frozen=True, slots=True)
class RunRequirements:
    """The resources that come before every run.

    Attributes:
        id: The stack's random id.
        workspace: The workspace, the stack's own or one that exists.
        guard: Judges what would end active runs; it comes before every job and after every cluster.
        before_jobs: The guard, as an entry of ``depends_on``.
        reached_by: The identities and the network that runs reach their data by, as far as the stack makes them.
        secrets: The stack's secrets for variables of jobs, by name, each marked as one.
    """

    id: pulumi.Output[str]
    workspace: AnyWorkspace
    guard: pulumi.Resource
    before_jobs: pulumi.Output[Any]
    reached_by: tuple[pulumi.CustomResource, ...]
    secrets: Mapping[str, pulumi.Output[str]]

    @classmethod
    def of(
        cls,
        record: resources.StackRecord,
        workspace: AnyWorkspace,
        shared: StackIdentity | None,
        clusters: Mapping[str, RdmaCluster],
        jobs: Mapping[str, resources.OnEdit],
        *,
        secrets: Mapping[str, str] | None = None,
    ) -> RunRequirements:
        """Declare the guard.

        Args:
            record: The stack's record.
            workspace: Complete.
            shared: The identity of the stack's clusters, where it has one.
            clusters: All clusters by name.
            jobs: ``on_edit`` of all jobs, sweeps and pipelines by name.
            secrets: The stack's secrets in clear text, by name.
        """
        reached_by = (*workspace.reached_by, *([shared.identity] if shared else ()))
        guard = resources.RunsGuard(
            "runs",
            workspace=workspace.settled_id,
            # What counts is what it comes from: the engine asks the guard before it replaces any of that.
            reached_by=behind("identities and network", *reached_by) if reached_by else None,
            stack_id=record.stack_id,
            jobs=jobs,
            clusters={name: cluster.compute.id for name, cluster in clusters.items()},
        )
        marked = {name: pulumi.Output.secret(value) for name, value in (secrets or {}).items()}
        return cls(record.stack_id, workspace, guard, after(guard), reached_by, marked)

    def placed_on(self, clusters: Iterable[RdmaCluster]) -> list[pulumi.Output[str]]:
        """Ids of what a run on these clusters lives on."""
        where = self.workspace
        placed = (cluster.compute for cluster in clusters)
        below = (*where.part("storage"), *where.part("workspace"), *placed, *self.reached_by)
        return [each.id for each in below if isinstance(each, pulumi.CustomResource)]
