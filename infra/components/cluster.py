"""AmlCompute clusters, and as whom they act: the stack's identity, and the roles of every identity that it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from infra import resource_types, roles
from infra.components import registration
from infra.components.registration import after
from infra.components.workspace.security import assign
from infra.properties import cluster_left_alone, cluster_properties, replaced_by

if TYPE_CHECKING:
    from infra.components.workspace import AnyWorkspace
    from infra.settings import Cluster, Settings


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
    workspace: AnyWorkspace,
    principal: pulumi.Input[str],
    *,
    holder: str,
    parent: pulumi.Resource,
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
