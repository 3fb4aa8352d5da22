"""An AmlCompute cluster on a size with a fabric that training reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_azure_native import machinelearningservices as ml

from infra import roles
from infra.identities import grant
from infra.order import behind
from infra.settings import SINGLE_NODE_TAG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.identities import StackIdentity
    from infra.settings import Cluster
    from infra.workspace import Workspace

REPLACED_BY = (
    "location",
    "properties.computeLocation",
    "properties.properties.vmSize",
    "properties.properties.vmPriority",
    "properties.properties.subnet",
    "properties.properties.osType",
    "properties.properties.remoteLoginPortPublicAccess",
    "properties.properties.userAccountCredentials",
    "properties.properties.enableNodePublicIp",
    "properties.properties.isolatedNetwork",
)
"""What the service cannot change on a cluster that exists: it answers success and changes nothing, and azure-native
plans such an update. Only the scale is updated in place."""

PRIORITIES = {"dedicated": "Dedicated", "low_priority": "LowPriority"}


class RdmaCluster(pulumi.ComponentResource):
    """One cluster of the stack."""

    def __init__(
        self,
        spec: Cluster,
        *,
        location: str,
        tags: Mapping[str, str],
        workspace: Workspace,
        shared: StackIdentity | None,
        assign_roles: bool,
    ) -> None:
        super().__init__("amlstack:infra:RdmaCluster", spec.name)
        names = workspace.names
        identity = roles.identity(spec.identity, stack=names.identity_id)
        promise = {SINGLE_NODE_TAG: "true"} if spec.single_node_jobs else {}
        self.compute = ml.Compute(
            spec.name,
            compute_name=spec.name,
            # Known at preview, and the engine knows where they come from: it deletes clusters before the workspace.
            resource_group_name=behind(names.group, workspace.group),
            workspace_name=behind(names.workspace, workspace.workspace),
            location=location,
            identity=ml.ManagedServiceIdentityArgs(
                type=identity["type"], user_assigned_identities=identity.get("userAssignedIdentities")
            ),
            properties=ml.AmlComputeArgs(
                compute_type="AmlCompute",
                disable_local_auth=True,
                description=spec.description,
                properties=ml.AmlComputePropertiesArgs(
                    vm_size=spec.size,
                    vm_priority=PRIORITIES[spec.priority],
                    os_type="Linux",
                    remote_login_port_public_access="Disabled",
                    enable_node_public_ip=spec.node_public_ip,
                    subnet=ml.ResourceIdArgs(id=spec.subnet) if spec.subnet else None,
                    scale_settings=ml.ScaleSettingsArgs(
                        min_node_count=spec.nodes.min,
                        max_node_count=spec.nodes.max,
                        node_idle_time_before_scale_down=spec.nodes.idle,
                    ),
                ),
            ),
            tags={**tags, **spec.tags, **promise},
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
