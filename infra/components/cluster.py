"""An AmlCompute cluster on a size with a fabric that training reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra import resource_types
from infra.components import registration
from infra.components.identities import grant
from infra.compute.cluster import left_alone, properties, replaced_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.components.identities import StackIdentity
    from infra.components.workspace import AnyWorkspace
    from infra.settings import Cluster


class RdmaCluster:
    """One cluster of the stack.

    Attributes:
        compute: The cluster.
        resources: It and its roles, which a job on it comes after.
    """

    def __init__(
        self,
        spec: Cluster,
        *,
        location: str,
        tags: Mapping[str, str],
        workspace: AnyWorkspace,
        shared: StackIdentity | None,
        assign_roles: bool,
        parent: pulumi.Resource,
    ) -> None:
        names = workspace.names
        wire = properties(spec, location=location, tags=tags, stack_identity=names.identity_id)
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
                ignore_changes=left_alone(spec, tags),
                # The name stays, so the old cluster has to go before the new one can come.
                delete_before_replace=True,
            ),
        )
        self.resources: list[pulumi.Resource] = [self.compute]
        if spec.identity.kind == "system" and assign_roles:
            identity = registration.output(self.compute, "identity")
            principal = identity.apply(lambda value: (value or {}).get("principalId"))
            self.resources += grant(workspace, principal, holder=names.cluster_id(spec.name), parent=parent)
