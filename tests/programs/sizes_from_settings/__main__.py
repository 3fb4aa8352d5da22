"""Clusters and jobs of the sizes in the setting ``ask``, in any form that asks Azure for them.

An entry is ``{name, as, size, nodes}``; without a size it takes one that is known only when another resource exists.
Types are named, since azure-native's classes take seconds to import.
"""

from __future__ import annotations

from typing import Any

import pulumi

config = pulumi.Config()
PLACE = {"resourceGroupName": "group", "workspaceName": "workspace"}


class Later(pulumi.CustomResource):
    """A resource whose output ``size`` is known only after it was created."""

    size: pulumi.Output[str]

    def __init__(self, size: str) -> None:
        super().__init__("azure-native:scenario:Later", "later", {"chosen": size, "size": None})


def azure_native_cluster(
    kind: str, name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str], **more: str
) -> None:
    scale = {"maxNodeCount": nodes, "minNodeCount": 0, "nodeIdleTimeBeforeScaleDown": "PT5M"}
    properties = {"computeType": "AmlCompute", "properties": {"vmSize": size, "scaleSettings": scale}}
    pulumi.CustomResource(f"azure-native:{kind}", name, {**PLACE, "properties": properties, "tags": tags, **more})


def cluster(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    azure_native_cluster("machinelearningservices:Compute", name, size, nodes, tags)


def versioned_cluster(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    azure_native_cluster("machinelearningservices/v20250901:Compute", name, size, nodes, tags)


def classic_cluster(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    properties = {"vmSize": size, "scaleSettings": {"maxNodeCount": nodes}, "tags": tags}
    pulumi.CustomResource("azure:machinelearning/computeCluster:ComputeCluster", name, properties)


def generic_cluster(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    azure_native_cluster(
        *("resources:Resource", name, size, nodes, tags),
        apiVersion="2025-12-01",
        resourceProviderNamespace="Microsoft.MachineLearningServices",
        parentResourcePath="workspaces/workspace",
        resourceType="computes",
    )


def serverless_job(name: str, size: pulumi.Input[str], nodes: int, tags: dict[str, str]) -> None:
    properties = {
        "jobType": "Command",
        "command": "python train.py",
        "environmentId": "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/1",
        "resources": {"instanceType": size, "instanceCount": nodes},
        "tags": tags,
    }
    pulumi.CustomResource("azure-native:machinelearningservices:Job", name, {**PLACE, "properties": properties})


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
