"""An AmlCompute cluster on a size with a fabric that training reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_azure_native import machinelearningservices as ml

from infra.cluster import REPLACED_BY, properties
from infra.components.identities import grant
from infra.components.order import behind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.components.identities import StackIdentity
    from infra.components.workspace import StackWorkspace
    from infra.settings import Cluster


class RdmaCluster(pulumi.ComponentResource):
    """One cluster of the stack."""

    def __init__(
        self,
        spec: Cluster,
        *,
        location: str,
        tags: Mapping[str, str],
        workspace: StackWorkspace,
        shared: StackIdentity | None,
        assign_roles: bool,
    ) -> None:
        super().__init__("amlstack:infra:RdmaCluster", spec.name)
        names = workspace.names
        wire = properties(spec, location=location, tags=tags, stack_identity=names.identity_id)
        self.compute = ml.Compute(
            spec.name,
            compute_name=spec.name,
            # Known at preview, and the engine knows where they come from: it deletes clusters before the workspace.
            resource_group_name=behind(names.group, workspace.group),
            workspace_name=behind(names.workspace, workspace.workspace),
            location=wire["location"],
            identity=wire["identity"],
            properties=wire["properties"],
            tags=wire["tags"],
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[workspace, *([shared] if shared and spec.identity.kind == "stack" else ())],
                replace_on_changes=list(REPLACED_BY),
                # The name stays, so the old cluster has to go before the new one can come.
                delete_before_replace=True,
            ),
        )
        if spec.identity.kind == "system" and assign_roles:
            principal = self.compute.identity.apply(lambda own: own.principal_id if own else None)
            grant(workspace, principal, holder=names.cluster_id(spec.name), parent=self)
        self.register_outputs({"id": names.cluster_id(spec.name)})
