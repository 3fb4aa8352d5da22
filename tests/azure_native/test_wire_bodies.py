"""Inputs to bodies, answers to outputs, outputs back to inputs."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amlstack.rpc import UNKNOWN
from amlstack.sandbox.azure_native import shape

STORAGE = shape.find("azure-native:storage:StorageAccount")[0]
COMPUTE = shape.find("azure-native:machinelearningservices:Compute")[0]
COMPONENT = shape.find("azure-native:applicationinsights:Component")[0]
GROUP = shape.find("azure-native:resources:ResourceGroup")[0]
VAULT = shape.find("azure-native:keyvault:Vault")[0]


def test_a_storage_account_is_flattened_renamed_and_its_id_list_made_a_map() -> None:
    inputs = {
        "resourceGroupName": "g",
        "accountName": "a",
        "location": "westeurope",
        "kind": "StorageV2",
        "sku": {"name": "Standard_LRS"},
        "enableHttpsTrafficOnly": True,
        "allowSharedKeyAccess": False,
        "networkRuleSet": {
            "defaultAction": "Deny",
            "ipRules": [{"iPAddressOrRange": "10.0.0.0/8", "action": "Allow"}],
            "virtualNetworkRules": [{"virtualNetworkResourceId": "/subnet"}],
        },
        "identity": {"type": "UserAssigned", "userAssignedIdentities": ["/one", "/two"]},
        "tags": {"ipRules": "not renamed"},
        "azureApiVersion": "2024-01-01",
        "__createBeforeDelete": True,
    }
    assert shape.body(STORAGE, inputs) == {
        "location": "westeurope",
        "kind": "StorageV2",
        "sku": {"name": "Standard_LRS"},
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {"/one": {}, "/two": {}}},
        "tags": {"ipRules": "not renamed"},
        "properties": {
            "supportsHttpsTrafficOnly": True,
            "allowSharedKeyAccess": False,
            "networkAcls": {
                "defaultAction": "Deny",
                "ipRules": [{"value": "10.0.0.0/8", "action": "Allow"}],
                "virtualNetworkRules": [{"id": "/subnet"}],
            },
        },
    }


def test_an_answer_comes_back_under_the_names_of_the_program() -> None:
    answer = {
        "id": "/x",
        "name": "a",
        "etag": "ignored: the class has none",
        "location": "westeurope",
        "sku": {"name": "Standard_LRS", "tier": "Standard"},
        "identity": {"type": "UserAssigned", "principalId": "p", "userAssignedIdentities": {"/two": {"clientId": "c"}}},
        "properties": {
            "supportsHttpsTrafficOnly": True,
            "networkAcls": {"ipRules": [{"value": "10.0.0.0/8"}]},
            "primaryEndpoints": {"blob": "https://a"},
            "unheardOf": 1,
            "customDomain": None,
        },
    }
    outputs = shape.outputs(STORAGE, answer, "2024-01-01")
    assert outputs == {
        "name": "a",
        "location": "westeurope",
        "sku": {"name": "Standard_LRS", "tier": "Standard"},
        "identity": answer["identity"],
        "enableHttpsTrafficOnly": True,
        "networkRuleSet": {"ipRules": [{"iPAddressOrRange": "10.0.0.0/8"}]},
        "primaryEndpoints": {"blob": "https://a"},
        "azureApiVersion": "2024-01-01",
    }
    assert shape.writable(STORAGE, outputs) == {
        "location": "westeurope",
        "sku": {"name": "Standard_LRS"},
        "identity": {"type": "UserAssigned", "userAssignedIdentities": ["/two"]},
        "enableHttpsTrafficOnly": True,
        "networkRuleSet": {"ipRules": [{"iPAddressOrRange": "10.0.0.0/8"}]},
    }


def test_node_counts_and_times_are_never_read_back_as_inputs() -> None:
    outputs = {
        "location": "westeurope",
        "properties": {
            "computeType": "AmlCompute",
            "createdOn": "2026-01-01",
            "provisioningState": "Succeeded",
            "properties": {"vmSize": "S", "currentNodeCount": 2, "nodeStateCounts": {"idleNodeCount": 2}},
        },
    }
    assert shape.writable(COMPUTE, outputs)["properties"] == {
        "computeType": "AmlCompute",
        "properties": {"vmSize": "S"},
    }


def test_at_preview_inputs_are_shown_and_the_rest_is_unknown_but_what_never_changes() -> None:
    known = shape.preview(GROUP, {"location": "westeurope", "tags": {"a": UNKNOWN}}, {}, "2024-03-01")
    assert known["location"] == "westeurope"
    assert known["tags"] == {"a": UNKNOWN}
    assert known["name"] is UNKNOWN
    assert known["properties"] is UNKNOWN
    again = shape.preview(GROUP, {"location": "West Europe"}, {"name": "rg", "location": "westeurope"}, "2024-03-01")
    assert (again["name"], again["location"]) == ("rg", "westeurope")


@pytest.mark.parametrize(
    ("given", "current", "kept"),
    [
        ({}, None, []),
        ({}, {"properties": {"accessPolicies": [{"objectId": "o"}]}}, [{"objectId": "o"}]),
        ({"accessPolicies": [{"objectId": "mine"}]}, {"properties": {"accessPolicies": []}}, [{"objectId": "mine"}]),
    ],
)
def test_access_policies_that_the_program_does_not_name_stay_as_they_are(given: Any, current: Any, kept: Any) -> None:
    request = shape.body(VAULT, {"location": "x", "properties": {"tenantId": "t", **given}})
    shape.keep(VAULT, request, current)
    assert request["properties"] == {"tenantId": "t", "accessPolicies": kept}


VALUES = st.recursive(
    st.booleans() | st.integers(-1000, 1000) | st.text(string.ascii_letters, max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["ipRules", "x", "y.z", "value"]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", [COMPONENT, GROUP, VAULT], ids=lambda kind: kind.token)
@given(data=st.data())
def test_what_is_sent_and_echoed_is_what_was_given(kind: shape.ResourceType, data: st.DataObject) -> None:
    inputs = data.draw(st.dictionaries(st.sampled_from(sorted({*kind.top, *kind.flat})), VALUES))
    echoed = shape.outputs(kind, shape.body(kind, inputs), kind.version)
    assert shape.writable(kind, echoed) == inputs
