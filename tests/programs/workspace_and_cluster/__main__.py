"""A workspace with what it stands on and one cluster, all azure-native; the settings say what to change.

They are registered by their types alone: azure-native's classes take seconds to import.
"""

import asyncio
from pathlib import Path
from typing import Any

import pulumi

config = pulumi.Config()
tag = config.get("tag") or "one"
replacing = config.get_bool("replacing") or False


def line_of(pipe: str) -> str:
    """Waits until somebody has written a line."""
    with Path(pipe).open() as stream:
        return stream.readline().strip()


gate = config.get("gate")
name = pulumi.Output.from_input(asyncio.to_thread(line_of, gate)) if gate else f"cl-{tag}"
"""Of the cluster; behind a gate nothing of it is known until somebody tells it."""


def made(token: str, name: str, opts: pulumi.ResourceOptions | None = None, **inputs: Any) -> Any:
    return pulumi.CustomResource(f"azure-native:{token}", name, {"name": None, "properties": None, **inputs}, opts)


group = made(
    "resources:ResourceGroup", "group", resourceGroupName=f"rg-{tag}", location="West Europe", tags={"team": tag}
)
place = {"resourceGroupName": group.name}
account = made(
    *("storage:StorageAccount", "account"),
    **place,
    sku={"name": "Standard_LRS"},
    kind="StorageV2",
    allowSharedKeyAccess=False,
    enableHttpsTrafficOnly=True,
)
access = {
    "tenantId": "0a3c1f6e-52b0-4f59-9d0e-7d1c5a4b2e10",
    "sku": {"family": "A", "name": "standard"},
    "enableRbacAuthorization": True,
}
vault = made("keyvault:Vault", "vault", **place, vaultName=f"kv-{tag}", properties=access)
logs = made("operationalinsights:Workspace", "logs", **place)
insights = made(
    "applicationinsights:Component",
    "insights",
    **place,
    kind="web",
    applicationType="web",
    workspaceResourceId=logs.id,
)
registry = made("containerregistry:Registry", "registry", **place, sku={"name": "Premium"}, loginServer=None)
workspace = made(
    *("machinelearningservices:Workspace", "workspace"),
    **place,
    workspaceName=f"ws-{tag}",
    identity={"type": "SystemAssigned"},
    storageAccount=account.id,
    keyVault=vault.id,
    applicationInsights=insights.id,
    containerRegistry=registry.id,
    description=config.get("description"),
    workspaceId=None,
)
scale = {
    "minNodeCount": 0,
    "maxNodeCount": config.get_int("nodes") or 2,
    "nodeIdleTimeBeforeScaleDown": "PT120S",
}
size = {
    "vmSize": config.get("size") or "Standard_ND96amsr_A100_v4",
    "vmPriority": "Dedicated",
    "scaleSettings": scale,
}
cluster = made(
    *("machinelearningservices:Compute", "cluster"),
    pulumi.ResourceOptions(
        replace_on_changes=["properties.properties.vmSize"] if replacing else [], delete_before_replace=replacing
    ),
    **place,
    workspaceName=workspace.name,
    computeName=name,
    properties={"computeType": "AmlCompute", "properties": size},
)

pulumi.export("cluster", cluster.id)
pulumi.export("account", account.name)
pulumi.export("vault_uri", vault.properties["vaultUri"])
pulumi.export("login_server", registry.loginServer)
pulumi.export("workspace_id", workspace.workspaceId)
