"""Clusters and jobs of the sizes in the setting ``ask``, in any form that asks Azure for them.

An entry is ``{name, as, size, nodes}``; without a size it takes one that is known only when another resource exists.
"""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi_azure_native import machinelearningservices as ml
from pulumi_azure_native import resources

config = pulumi.Config()
PLACE = {"resource_group_name": "group", "workspace_name": "workspace"}


class Later(pulumi.CustomResource):
    """A resource whose output ``size`` is known only after it was created."""

    size: pulumi.Output[str]

    def __init__(self, size: str) -> None:
        super().__init__("azure-native:scenario:Later", "later", {"chosen": size, "size": None})


def cluster(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    scale = ml.ScaleSettingsArgs(max_node_count=nodes, min_node_count=0, node_idle_time_before_scale_down="PT5M")
    properties = ml.AmlComputeArgs(
        compute_type="AmlCompute", properties=ml.AmlComputePropertiesArgs(vm_size=size, scale_settings=scale)
    )
    ml.Compute(name, properties=properties, tags=tags, **PLACE)


def versioned_cluster(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    inner = {"vmSize": size, "scaleSettings": {"maxNodeCount": nodes}}
    properties = {"computeType": "AmlCompute", "properties": inner}
    token = "azure-native:machinelearningservices/v20250901:Compute"
    pulumi.CustomResource(token, name, {"properties": properties, "tags": tags})


def classic_cluster(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    properties = {"vmSize": size, "scaleSettings": {"maxNodeCount": nodes}, "tags": tags}
    pulumi.CustomResource("azure:machinelearning/computeCluster:ComputeCluster", name, properties)


def generic_cluster(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    inner = {"vmSize": size, "scaleSettings": {"maxNodeCount": nodes}}
    resources.Resource(
        name,
        api_version="2025-12-01",
        resource_group_name="group",
        resource_provider_namespace="Microsoft.MachineLearningServices",
        parent_resource_path="workspaces/workspace",
        resource_type="computes",
        properties={"computeType": "AmlCompute", "properties": inner},
        tags=tags,
    )


def serverless_job(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    properties = ml.CommandJobArgs(
        job_type="Command",
        command="python train.py",
        environment_id="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/1",
        resources=ml.JobResourceConfigurationArgs(instance_type=size, instance_count=nodes),
        tags=tags,
    )
    ml.Job(name, properties=properties, **PLACE)


def own_job(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    inner = {"jobType": "Command", "resources": {"instanceType": size, "instanceCount": nodes}, "tags": tags}
    pulumi.CustomResource("amlstack:jobs:Job", name, {"name": name, "body": {"properties": inner}})


FORMS = {
    "cluster": cluster,
    "versioned": versioned_cluster,
    "classic": classic_cluster,
    "generic": generic_cluster,
    "job": serverless_job,
    "own": own_job,
}

asked: list[dict[str, Any]] = config.require_object("ask")
known_later = Later(config.get("later") or "Standard_ND40rs_v2") if any("size" not in one for one in asked) else None
for one in asked:
    size = one["size"] if known_later is None or "size" in one else known_later.size
    FORMS[one["as"]](one["name"], size, one.get("nodes", 1), one.get("tags", {}))
