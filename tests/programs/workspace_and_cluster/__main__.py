"""A workspace with what it stands on and one cluster, all azure-native; the settings say what to change."""

import asyncio
from pathlib import Path

import pulumi
from pulumi_azure_native import (
    applicationinsights,
    containerregistry,
    keyvault,
    operationalinsights,
    resources,
    storage,
)
from pulumi_azure_native import machinelearningservices as ml

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

group = resources.ResourceGroup("group", resource_group_name=f"rg-{tag}", location="West Europe", tags={"team": tag})
account = storage.StorageAccount(
    "account",
    resource_group_name=group.name,
    sku=storage.SkuArgs(name="Standard_LRS"),
    kind="StorageV2",
    allow_shared_key_access=False,
    enable_https_traffic_only=True,
)
vault = keyvault.Vault(
    "vault",
    resource_group_name=group.name,
    vault_name=f"kv-{tag}",
    properties=keyvault.VaultPropertiesArgs(
        tenant_id="0a3c1f6e-52b0-4f59-9d0e-7d1c5a4b2e10",
        sku=keyvault.SkuArgs(family="A", name="standard"),
        enable_rbac_authorization=True,
    ),
)
logs = operationalinsights.Workspace("logs", resource_group_name=group.name)
insights = applicationinsights.Component(
    "insights", resource_group_name=group.name, kind="web", workspace_resource_id=logs.id
)
registry = containerregistry.Registry(
    "registry", resource_group_name=group.name, sku=containerregistry.SkuArgs(name="Premium")
)
workspace = ml.Workspace(
    "workspace",
    resource_group_name=group.name,
    workspace_name=f"ws-{tag}",
    identity=ml.ManagedServiceIdentityArgs(type="SystemAssigned"),
    storage_account=account.id,
    key_vault=vault.id,
    application_insights=insights.id,
    container_registry=registry.id,
    description=config.get("description"),
)
cluster = ml.Compute(
    "cluster",
    resource_group_name=group.name,
    workspace_name=workspace.name,
    compute_name=name,
    properties=ml.AmlComputeArgs(
        compute_type="AmlCompute",
        properties=ml.AmlComputePropertiesArgs(
            vm_size=config.get("size") or "Standard_ND96amsr_A100_v4",
            vm_priority="Dedicated",
            scale_settings=ml.ScaleSettingsArgs(
                min_node_count=0,
                max_node_count=config.get_int("nodes") or 2,
                node_idle_time_before_scale_down="PT120S",
            ),
        ),
    ),
    opts=pulumi.ResourceOptions(
        replace_on_changes=["properties.properties.vmSize"] if replacing else [], delete_before_replace=replacing
    ),
)

pulumi.export("cluster", cluster.id)
pulumi.export("account", account.name)
pulumi.export("vault_uri", vault.properties.vault_uri)
pulumi.export("login_server", registry.login_server)
pulumi.export("workspace_id", workspace.workspace_id)
