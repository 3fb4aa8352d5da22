"""The operators of Azure Policy, as its documentation says them."""

from __future__ import annotations

from typing import Any

import pytest

from amlstack.base import azure_policy_language
from amlstack.base.azure_policy_language import COMPUTES

SIZE = f"{COMPUTES}/vmSize"
PUBLIC = f"{COMPUTES}/enableNodePublicIp"
CLUSTER: dict[str, Any] = {
    "location": "West Europe",
    "tags": {"Team": "vision", "owner": ""},
    "identity": {"type": "SystemAssigned,UserAssigned"},
    "properties": {
        "computeType": "AmlCompute",
        "disableLocalAuth": True,
        "properties": {"vmSize": "Standard_NC24r", "enableNodePublicIp": False, "subnet": {"id": "/x"}},
    },
}
PARAMETERS = {"sizes": ["standard_nc24R"], "size": "STANDARD_NC24r", "effect": "Deny"}


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ({"field": "type", "equals": COMPUTES.upper()}, True),
        ({"field": "type", "notEquals": COMPUTES}, False),
        ({"field": SIZE, "in": "[parameters('sizes')]"}, True),
        ({"field": SIZE, "in": ["Standard_NC24"]}, False),
        ({"field": SIZE, "notIn": "[parameters('sizes')]"}, False),
        ({"field": SIZE, "notIn": []}, True),
        ({"field": SIZE, "equals": "[parameters('size')]"}, True),
        ({"field": SIZE, "contains": "nc24"}, True),
        ({"field": SIZE, "contains": "nd4"}, False),
        ({"field": SIZE, "exists": "true"}, True),
        ({"field": SIZE, "exists": False}, False),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "exists": "false"}, True),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "equals": "Disabled"}, False),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "notEquals": "Disabled"}, True),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "notIn": ["Disabled"]}, True),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "in": ["Disabled"]}, False),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "contains": ""}, False),
        ({"field": PUBLIC, "equals": "false"}, True),
        ({"field": PUBLIC, "notEquals": "false"}, False),
        ({"field": f"{COMPUTES}/subnet.id", "equals": "/X"}, True),
        ({"field": "identity.type", "contains": "userassigned"}, True),
        ({"field": "location", "in": ["westeurope"]}, True),
        ({"field": "tags['TEAM']", "equals": "Vision"}, True),
        ({"field": "tags['owner']", "equals": ""}, True),
        ({"field": "tags['none']", "exists": "false"}, True),
        ({"allOf": []}, True),
        ({"anyOf": []}, False),
        ({"allOf": [{"field": SIZE, "exists": True}, {"field": SIZE, "equals": "x"}]}, False),
        ({"anyOf": [{"field": SIZE, "exists": True}, {"field": SIZE, "equals": "x"}]}, True),
        ({"not": {"field": SIZE, "equals": "x"}}, True),
    ],
)
def test_a_condition_is_true_or_not(condition: dict[str, Any], answer: bool) -> None:
    assert azure_policy_language.hits(condition, COMPUTES, CLUSTER, PARAMETERS) is answer


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ({"field": SIZE, "like": "Standard_*"}, "field, like"),
        ({"value": "x", "equals": "x"}, "equals, value"),
        ({"field": SIZE}, "field"),
        ({"field": f"{COMPUTES}/scaleSettings", "exists": "true"}, "scaleSettings"),
        ({"field": SIZE, "equals": "[resourceGroup().name]"}, "resourceGroup"),
        ({"field": SIZE, "equals": "[parameters('none')]"}, "none"),
        ({"anyOf": [{"field": SIZE, "exists": True}, {"field": SIZE, "match": "x"}]}, "match"),
    ],
)
def test_what_is_not_evaluated_is_never_taken_for_an_answer(condition: dict[str, Any], what: str) -> None:
    with pytest.raises(azure_policy_language.NotEvaluatedError, match=what):
        azure_policy_language.hits(condition, COMPUTES, CLUSTER, PARAMETERS)


def test_an_alias_of_another_type_has_no_value() -> None:
    assert azure_policy_language.hits(
        {"field": SIZE, "exists": "false"}, "Microsoft.Storage/storageAccounts", CLUSTER, {}
    )


def test_given_values_stand_over_defaults_and_what_is_not_declared_is_left_out() -> None:
    declared = {"effect": {"type": "String", "defaultValue": "Audit"}, "sizes": {"type": "Array"}}
    assert azure_policy_language.values(declared, {}) == {"effect": "Audit"}
    assert azure_policy_language.values(declared, {"effect": "Deny", "x": 1}) == {"effect": "Deny"}
