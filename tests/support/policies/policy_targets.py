"""Resources that tests of Azure Policy's language judge, and one condition judged."""

from __future__ import annotations

from typing import Any

from amlstack.base.arm_language.conditions import ConditionOutcome, evaluated
from amlstack.base.arm_language.expressions import PolicyAround
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget
from amlstack.base.pulumi_wire import UNKNOWN

COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
SIZE, PUBLIC, TEST = f"{COMPUTES}/vmSize", f"{COMPUTES}/enableNodePublicIp", "Microsoft.Test/resourceType"
CLUSTER = PolicyTarget(
    COMPUTES,
    "/subscriptions/s/resourceGroups/rg-ml/providers/Microsoft.MachineLearningServices/workspaces/ml/computes/gpu",
    {
        "location": "West Europe",
        "tags": {"Team": "vision", "owner": "", "cost.center": "7"},
        "identity": {"type": "SystemAssigned,UserAssigned"},
        "properties": {
            "computeType": "AmlCompute",
            "disableLocalAuth": True,
            "properties": {
                "vmSize": "Standard_NC24r",
                "enableNodePublicIp": False,
                "subnet": {"id": "/x"},
                "scaleSettings": {"maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": "PT900S"},
            },
        },
    },
    "2025-12-01",
)
ARRAYS = PolicyTarget(
    TEST,
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Test/resourceType/one",
    {
        "sku": {"name": "Premium"},
        "properties": {
            "stringArray": ["a", "b", "c"],
            "objectArray": [
                {"property": "value1", "nestedArray": [1, 2]},
                {"property": "value2", "nestedArray": [3, 4]},
            ],
            "parts": [{"name": "one", "properties": {"state": "Approved"}}, {"name": "two"}],
            "later": UNKNOWN,
        },
    },
)
PLACE = PolicyPlace.in_group("s", "rg-ml", location="westeurope", tags={"team": "vision"})
PARAMETERS = {"sizes": ["standard_nc24R"], "size": "STANDARD_NC24r", "effect": "Deny", "most": 3}


def outcome(condition: Any, target: PolicyTarget = CLUSTER) -> ConditionOutcome:
    """Judges one condition with the parameters above."""
    return evaluated(condition, PolicyAround(target, PLACE, PARAMETERS))
