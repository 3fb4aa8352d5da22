"""Clusters and jobs that keep every rule, and what a pack says of them when they are bent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulumi.runtime.proto import analyzer_pb2 as proto

from policies.pack.server import Pack
from tests.support.policies.showing import TODAY, request, shown

if TYPE_CHECKING:
    from datetime import date


COMPUTE = "azure-native:machinelearningservices:Compute"
WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
ENVIRONMENT = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7"


def cluster(**inner: Any) -> dict[str, Any]:
    scale = {"minNodeCount": 0, "maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": "PT10M"}
    inner = {"vmSize": "Standard_ND96isr_H100_v5", "scaleSettings": scale, "enableNodePublicIp": False,
             "remoteLoginPortPublicAccess": "Disabled", **inner}  # fmt: skip
    return {
        "computeName": "train",
        "properties": {"computeType": "AmlCompute", "disableLocalAuth": True, "properties": inner},
    }


def command(**more: Any) -> dict[str, Any]:
    return {
        "jobType": "Command",
        "command": "python t.py",
        "environmentId": ENVIRONMENT,
        "computeId": f"{WORKSPACE}/computes/Train",
        "limits": {"timeout": "PT1H"},
        "resources": {"instanceCount": 2, "shmSize": "950g"},
        **more,
    }


def own(properties: Any) -> dict[str, Any]:
    return {"body": {"properties": properties}}


def seen(pack: Pack, token: str, props: dict[str, Any], name: str = "it") -> list[str]:
    return [f"{level} {code}" for level, code, _ in shown(pack.Analyze(request(token, props, name), None))]


def stack_of(pack: Pack, *resources: tuple[str, dict[str, Any]]) -> list[tuple[str, str, str]]:
    asked = [request(token, props) for token, props in resources]
    each = [
        proto.AnalyzerResource(type=one.type, urn=one.urn, name=one.name, properties=one.properties) for one in asked
    ]
    return shown(pack.AnalyzeStack(proto.AnalyzeStackRequest(resources=each), None))


def pack(config: dict[str, Any] | None = None, on: date = TODAY) -> Pack:
    return Pack("amlstack", "1.2.3", on, config)
