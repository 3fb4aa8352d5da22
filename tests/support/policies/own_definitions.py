"""Rules of Azure Policy in our own writing: what the landing zones ask of Machine Learning, by definition."""

from __future__ import annotations

from typing import Any

WORKSPACE = "Microsoft.MachineLearningServices/workspaces"
COMPUTE = f"{WORKSPACE}/computes"
DIAGNOSTICS = "Microsoft.Insights/diagnosticSettings"


def of_workspace(*conditions: Any) -> dict[str, Any]:
    return {"allOf": [{"field": "type", "equals": WORKSPACE}, *conditions]}


def of_compute(kinds: list[str], *conditions: Any) -> dict[str, Any]:
    kind = {"field": f"{COMPUTE}/computeType", "in": kinds}
    return {"allOf": [{"field": "type", "equals": COMPUTE}, kind, *conditions]}


BOTH = ["AmlCompute", "ComputeInstance"]
OPEN = {"field": f"{WORKSPACE}/publicNetworkAccess", "notEquals": "Disabled"}
PASSWORDS = {"not": {"field": f"{COMPUTE}/disableLocalAuth", "equals": "true"}}
NO_SUBNET = {
    "anyOf": [
        {"field": f"{COMPUTE}/subnet.id", "exists": "false"},
        {"value": f"[length(field('{COMPUTE}/subnet.id'))]", "less": 1},
    ]
}
IDLE = f"field('{COMPUTE}/scaleSettings.nodeIdleTimeBeforeScaleDown')"

RULES: dict[str, dict[str, Any]] = {
    "a10ee784-7409-4941-b091-663697637c0f": {
        "if": of_workspace(OPEN),
        "then": {
            "effect": "modify",
            "details": {
                "operations": [
                    {"operation": "addOrReplace", "field": f"{WORKSPACE}/publicNetworkAccess", "value": "Disabled"}
                ]
            },
        },
    },
    "5f0c7d88-c7de-45b8-ac49-db49e72eaa78": {
        "if": of_workspace({"value": f"[empty(field('{WORKSPACE}/primaryUserAssignedIdentity'))]", "equals": "true"}),
        "then": {"effect": "audit"},
    },
    "e413671a-dd10-4cc1-a943-45b598596cb7": {
        "if": of_workspace({"not": {"field": f"{WORKSPACE}/v1LegacyMode", "equals": True}}),
        "then": {"effect": "audit"},
    },
    "45e05259-1eb5-4f70-9574-baf73e9d219b": {
        "if": of_workspace(
            {
                "count": {
                    "field": f"{WORKSPACE}/privateEndpointConnections[*]",
                    "where": {
                        "value": f"[current('{WORKSPACE}/privateEndpointConnections[*]"
                        ".privateLinkServiceConnectionState.status')]",
                        "equals": "Approved",
                    },
                },
                "equals": 0,
            }
        ),
        "then": {"effect": "audit"},
    },
    "afe0c3be-ba3b-4544-ba52-0c99672a8ad6": {
        "if": of_workspace(),
        "then": {
            "effect": "auditIfNotExists",
            "details": {
                "type": DIAGNOSTICS,
                "existenceCondition": {
                    "count": {
                        "field": f"{DIAGNOSTICS}/logs[*]",
                        "where": {"field": f"{DIAGNOSTICS}/logs[*].enabled", "equals": True},
                    },
                    "greaterOrEquals": 1,
                },
            },
        },
    },
    "e96a9a5f-07ca-471b-9bc5-6a0f33cbd68f": {"if": of_compute(BOTH, PASSWORDS), "then": {"effect": "audit"}},
    "a6f9a2d0-cff7-4855-83ad-4cd750666512": {
        "if": of_compute(BOTH, PASSWORDS),
        "then": {
            "effect": "modify",
            "details": {
                "operations": [{"operation": "addOrReplace", "field": f"{COMPUTE}/disableLocalAuth", "value": True}]
            },
        },
    },
    "7804b5c7-01dc-4723-969b-ae300cc07ff1": {"if": of_compute(BOTH, NO_SUBNET), "then": {"effect": "audit"}},
    "679ddf89-ab8f-48a5-9029-e76054077449": {
        "if": of_compute(
            ["ComputeInstance"], {"value": f"[empty(field('{COMPUTE}/idleTimeBeforeShutdown'))]", "equals": True}
        ),
        "then": {"effect": "audit"},
    },
    "f110a506-2dcb-422e-bcea-d533fc8c35e2": {
        "if": of_compute(
            ["ComputeInstance"], {"field": f"{COMPUTE}/osImageMetadata.isLatestOsImageVersion", "equals": False}
        ),
        "then": {"effect": "audit"},
    },
    "Deny-MachineLearning-Compute-SubnetId": {"if": of_compute(BOTH, NO_SUBNET), "then": {"effect": "deny"}},
    "Deny-MachineLearning-Compute-VmSize": {
        "if": of_compute(
            BOTH,
            {
                "count": {
                    "value": "[parameters('allowedVmSizes')]",
                    "name": "size",
                    "where": {"field": f"{COMPUTE}/vmSize", "equals": "[current('size')]"},
                },
                "equals": 0,
            },
        ),
        "then": {"effect": "deny"},
    },
    "Deny-MachineLearning-ComputeCluster-Scale": {
        "if": of_compute(
            ["AmlCompute"],
            {
                "anyOf": [
                    {"field": f"{COMPUTE}/scaleSettings.maxNodeCount", "greater": "[parameters('maxNodeCount')]"},
                    {"field": f"{COMPUTE}/scaleSettings.minNodeCount", "greater": "[parameters('minNodeCount')]"},
                    {
                        "value": f"[int(last(split(replace({IDLE}, 'S', ''), "
                        "createArray('P', 'Y', 'M', 'D', 'T', 'H'))))]",
                        "greater": "[parameters('maxNodeIdleTimeInSecondsBeforeScaleDown')]",
                    },
                ]
            },
        ),
        "then": {"effect": "deny"},
    },
    "Deny-MachineLearning-ComputeCluster-RemoteLoginPortPublicAccess": {
        "if": of_compute(["AmlCompute"], {"field": f"{COMPUTE}/remoteLoginPortPublicAccess", "notIn": ["disabled"]}),
        "then": {"effect": "deny"},
    },
    "Deny-MachineLearning-HbiWorkspace": {
        "if": of_workspace({"field": f"{WORKSPACE}/hbiWorkspace", "notEquals": "true"}),
        "then": {"effect": "deny"},
    },
}
