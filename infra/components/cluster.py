"""AmlCompute clusters, as whom they act (the stack's identity, and the roles of every identity), and room for them.

Room is asked for before anything of the stack is planned or made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from amlstack.base.findings import Finding, Level, errors
from infra import quota, resource_types, roles
from infra.components import registration
from infra.components.registration import after, end, show
from infra.components.workspace.parts import assign
from infra.properties import cluster_left_alone, cluster_properties, replaced_by
from infra.settings.secrets import hidden

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.components.workspace import AnyWorkspace
    from infra.names import Names
    from infra.settings import Cluster, Reading, Settings


async def check(
    settings: Settings, reading: Reading | None, names: Names, provider: pulumi.ProviderResource | None
) -> None:
    """Show what the subscription has no room for.

    Args:
        settings: The stack's.
        reading: Where they were written; None for a stack that is only looked at, which asks nothing.
        names: With subscription and workspace, in the group that a new stack has.
        provider: Who asks.

    Raises:
        pulumi.RunError: There is no room.
    """
    if reading is None:
        return
    found = [hidden(finding, reading.secret) for finding in await findings(settings, reading, names, provider)]
    show(found)
    if wrong := errors(found):
        end(wrong)


async def check_providers(
    settings: Settings,
    reading: Reading | None,
    subscription: str,
    needed: Sequence[str],
    provider: pulumi.ProviderResource | None,
) -> None:
    """Show the resource providers that the subscription must have registered and has not.

    Args:
        settings: The stack's.
        reading: Where they were written; None for a stack that is only looked at, which asks nothing.
        subscription: Its id.
        needed: Names of the providers of all that is registered here.
        provider: Who asks.

    Raises:
        pulumi.RunError: One is not registered.
    """
    if reading is None or settings.quota == "off":
        return
    asked = {"subscription": subscription, "namespaces": needed}
    try:
        answer = await _answer("amlstack:capacity:ofProviders", asked, provider)
    except Exception as error:  # noqa: BLE001 - a provider that does not answer is no reason to fail
        answer = {"states": {}, "problem": str(error) or type(error).__name__}
    level = Level.WARNING if settings.quota == "warn" else Level.ERROR
    found = [*quota.unregistered(answer["states"], subscription, level), *quota.not_asked(answer["problem"])]
    show([hidden(finding, reading.secret) for finding in found])
    if wrong := errors(found):
        end(wrong)


async def findings(
    settings: Settings, reading: Reading, names: Names, provider: pulumi.ProviderResource | None
) -> list[Finding]:
    """The shortages of the subscription; one question for all regions, and one more only where it seems short."""
    wanted = quota.demands(settings)
    if settings.quota == "off" or not wanted:
        return []
    regions = {name: sorted(sizes) for name, sizes in quota.regions(wanted).items()}
    asked = {"subscription": names.subscription, "regions": regions, "workspace": names.workspace_id}
    try:
        answers = (await _answer("amlstack:capacity:ofRegions", asked, provider))["regions"]
        short = quota.shortages(wanted, answers, names.subscription)
        if short:
            there = await _answer("amlstack:capacity:ofWorkspace", {"workspace": names.workspace_id}, provider)
            short = quota.shortages(wanted, answers, names.subscription, quota.Existing.of(there["clusters"]))
    except Exception as error:  # noqa: BLE001 - a provider that does not answer is no reason to fail
        problem = str(error) or type(error).__name__
        answers = {region: {"problem": problem} for region in regions}
        short = ()
    found = list(quota.unchecked(answers))
    for each in short:
        finding = each.finding.changed(level=Level.WARNING) if settings.quota == "warn" else each.finding
        found.append(reading.about(("clusters", each.index, *each.path), finding))
    return found


async def _answer(token: str, asked: dict[str, Any], provider: pulumi.ProviderResource | None) -> dict[str, Any]:
    """The answer of a function, as the provider's schema describes it; nothing is created or recorded."""
    answer: dict[str, Any] = await pulumi.runtime.invoke_async(token, asked, pulumi.InvokeOptions(provider=provider))
    return answer


class StackIdentity(pulumi.ComponentResource):
    """One user-assigned identity for all clusters of the stack, with its roles.

    It outlives the clusters, so that a cluster that is replaced has its access at once.
    """

    def __init__(self, workspace: AnyWorkspace, settings: Settings) -> None:
        """Declare the identity; `grant` gives it its roles.

        Args:
            workspace: In whose resource group it lies.
            settings: The stack's. On a workspace that exists, an identity that the stack has keeps its name.
        """
        names, keeps_name = workspace.names, settings.workspace.existing is not None
        super().__init__("amlstack:infra:StackIdentity", names.identity if not keeps_name else "identity")
        self.identity = registration.register(
            resource_types.IDENTITY,
            "identity",
            {
                "resourceName": names.identity,
                "resourceGroupName": workspace.group_name,
                "location": settings.location,
                "tags": dict(settings.tags),
                "principalId": None,
                **({"name": None} if keeps_name else {}),
            },
            pulumi.ResourceOptions(
                parent=self,
                provider=workspace.provider,
                ignore_changes=["resourceName"] if keeps_name else None,
                delete_before_replace=True,
            ),
        )
        self.everything = after(self.identity)

    def grant(self, workspace: AnyWorkspace, *, assign_roles: bool) -> None:
        """Give it the roles that clusters need.

        Args:
            workspace: With the identity's name as the stack has it.
            assign_roles: Whether the stack does so.
        """
        granted: list[pulumi.Resource] = []
        if assign_roles:
            principal = registration.output(self.identity, "principalId")
            granted = grant(workspace, principal, holder=workspace.names.identity_id, parent=self)
        self.everything = after(self.identity, *granted)
        self.register_outputs({"id": workspace.names.identity_id})


def grant(
    workspace: AnyWorkspace, principal: pulumi.Input[str], *, holder: str, parent: pulumi.Resource
) -> list[pulumi.Resource]:
    """Assign the roles that a cluster's identity needs.

    Args:
        workspace: The workspace on whose parts the roles are.
        principal: Object id of the identity, known once it exists.
        holder: ARM id of the identity, or of the cluster with an identity of its own.
        parent: The component that the assignments belong to.

    Returns:
        The assignments.
    """
    names, label = workspace.names, holder.rsplit("/", 1)[-1]
    return [
        assign(
            f"{label}-{role.name.lower().replace(' ', '-')}",
            role,
            names.id(role.part),
            principal,
            name=roles.assignment_name(names.id(role.part), role, holder),
            parent=parent,
            on=workspace.part(role.part),
        )
        for role in workspace.cluster_roles
        if workspace.has(role.part)  # a workspace that exists need not have a registry
    ]


class RdmaCluster:
    """One cluster of the stack.

    Attributes:
        compute: The cluster.
        resources: It and its roles, which a job on it comes after.
    """

    def __init__(
        self,
        spec: Cluster,
        settings: Settings,
        workspace: AnyWorkspace,
        shared: StackIdentity | None,
        parent: pulumi.Resource,
    ) -> None:
        names, location = workspace.names, spec.location or settings.location
        wire = cluster_properties(spec, location=location, tags=settings.tags, stack_identity=names.identity_id)
        if spec.subnet is None and workspace.compute_subnet is not None:
            wire["properties"]["properties"]["subnet"] = {"id": workspace.compute_subnet}
        self.compute = registration.register(
            resource_types.COMPUTE,
            spec.name,
            {
                "computeName": spec.name,
                # Known at preview, and the engine knows where they come from: it deletes clusters before the workspace.
                "resourceGroupName": workspace.group_name,
                "workspaceName": workspace.name,
                **wire,
            },
            pulumi.ResourceOptions(
                parent=parent,
                provider=workspace.provider,
                depends_on=[
                    workspace.everything,
                    *([shared.everything] if shared and spec.identity.kind == "stack" else ()),
                ],
                replace_on_changes=list(replaced_by(spec.identity_change)),
                ignore_changes=cluster_left_alone(spec, settings.tags),
                # The name stays, so the old cluster has to go before the new one can come.
                delete_before_replace=True,
            ),
        )
        self.resources: list[pulumi.Resource] = [self.compute]
        if spec.identity.kind == "system" and settings.assign_roles:
            self.resources += grant(workspace, self.principal, holder=names.cluster_id(spec.name), parent=parent)

    @property
    def principal(self) -> pulumi.Output[Any]:
        """Object id of the cluster's own identity."""
        return registration.output(self.compute, "identity").apply(lambda value: (value or {}).get("principalId"))
