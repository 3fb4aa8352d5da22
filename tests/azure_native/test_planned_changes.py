"""Plans of the stand-in for a change, and the effect of an outside change on the inputs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime.proto import provider_pb2

from amlstack.rpc import UNKNOWN
from amlstack.sandbox.azure_native import shape
from tests.support.rows import for_each

COMPUTE = shape.find("azure-native:machinelearningservices:Compute")[0]
JOB = shape.find("azure-native:machinelearningservices:Job")[0]
GROUP = shape.find("azure-native:resources:ResourceGroup")[0]
STORAGE = shape.find("azure-native:storage:StorageAccount")[0]

CLUSTER: dict[str, Any] = {
    "resourceGroupName": "g",
    "workspaceName": "w",
    "computeName": "c",
    "location": "westeurope",
    "properties": {
        "computeType": "AmlCompute",
        "properties": {"vmSize": "A", "scaleSettings": {"maxNodeCount": 2, "minNodeCount": 0}},
    },
}


def cluster(**inner: Any) -> dict[str, Any]:
    compute = CLUSTER["properties"]
    return {**CLUSTER, "properties": {**compute, "properties": {**compute["properties"], **inner}}}


def planned(kind: shape.ResourceType, old: Any, new: Any, state: Any = None) -> dict[str, str]:
    answer = shape.diff(kind, old, new, state or {})
    return {
        path: provider_pb2.PropertyDiff.Kind.Name(change.kind).lower() for path, change in answer.detailedDiff.items()
    }


@for_each(
    "kind, old, new, expected",
    [
        (COMPUTE, CLUSTER, CLUSTER, {}),
        (COMPUTE, CLUSTER, cluster(vmSize="B"), {"properties.properties.vmSize": "update"}),
        (
            COMPUTE,
            CLUSTER,
            cluster(scaleSettings={"maxNodeCount": 4}),
            {
                "properties.properties.scaleSettings.maxNodeCount": "update",
                "properties.properties.scaleSettings.minNodeCount": "delete",
            },
        ),
        (COMPUTE, CLUSTER, cluster(vmSize=UNKNOWN), {"properties.properties.vmSize": "update"}),
        (COMPUTE, CLUSTER, {**CLUSTER, "computeName": "d"}, {"computeName": "update_replace"}),
        (COMPUTE, CLUSTER, {**CLUSTER, "workspaceName": UNKNOWN}, {"workspaceName": "update_replace"}),
        (COMPUTE, CLUSTER, {**CLUSTER, "location": "West Europe"}, {}),
        (COMPUTE, CLUSTER, {**CLUSTER, "location": "eastus"}, {"location": "update"}),
        (GROUP, {"location": "westeurope"}, {"location": "eastus"}, {"location": "update_replace"}),
        (STORAGE, {"isHnsEnabled": False}, {"isHnsEnabled": True}, {"isHnsEnabled": "update_replace"}),
        (STORAGE, {"sku": {"name": "a"}}, {"sku": {"name": "b"}}, {"sku.name": "update"}),
        (JOB, {"properties": {"command": "a"}}, {"properties": {"command": "b"}}, {"properties.command": "update"}),
        (
            GROUP,
            {"tags": {"a.b": "1", "plain": "1"}},
            {"tags": {"a.b": "2", 'say "x"': "1"}},
            {'tags["a.b"]': "update", "tags.plain": "delete", 'tags["say \\"x\\""]': "add"},
        ),
        (STORAGE, {"x": [1, 2]}, {"x": [1, 3, 4]}, {"x[1]": "update", "x[2]": "add"}),
        (STORAGE, {"x": [1, 2]}, {"x": [1]}, {"x[1]": "delete"}),
        (STORAGE, {"x": True}, {"x": 1}, {"x": "update"}),
        (STORAGE, {"x": None}, {}, {}),
        (GROUP, {"__createBeforeDelete": True}, {}, {}),
    ],
)
def test_each_difference_is_planned_at_its_path(
    kind: shape.ResourceType, old: Any, new: Any, expected: dict[str, str]
) -> None:
    assert planned(kind, old, new) == expected


def test_an_input_that_says_what_the_service_had_chosen_replaces_nothing() -> None:
    new = {"isHnsEnabled": False}
    assert planned(STORAGE, {}, new, {"isHnsEnabled": False}) == {"isHnsEnabled": "add"}
    assert planned(STORAGE, {}, new, {"isHnsEnabled": True}) == {"isHnsEnabled": "add_replace"}


def test_a_fixed_name_is_deleted_before_its_replacement_and_a_random_one_after() -> None:
    old, new = {"location": "a"}, {"location": "b"}
    assert shape.diff(GROUP, old, new, {}).deleteBeforeReplace
    assert not shape.diff(GROUP, {**old, shape.RANDOMLY_NAMED: True}, new, {}).deleteBeforeReplace
    # An update never says so: where the program forces a replacement, the program says what comes first.
    assert not shape.diff(COMPUTE, CLUSTER, cluster(vmSize="B"), {}).deleteBeforeReplace


@for_each(
    "inputs, before, after, expected",
    [
        # The service's defaults never turn into inputs.
        ({"a": 1}, {"a": 1, "default": 7}, {"a": 1, "default": 7}, {"a": 1}),
        # A change outside does, and only that part.
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, {"a": {"x": 5, "y": 2}}, {"a": {"x": 5}}),
        ({"a": 1}, {"a": 1, "default": 7}, {"a": 1, "default": 8}, {"a": 1, "default": 8}),
        # Taken away outside: gone; never reported by the service: kept.
        ({"a": 1, "name": "n"}, {"a": 1}, {}, {"name": "n"}),
        (
            {"l": [{"x": 1}]},
            {"l": [{"x": 1, "y": 2}]},
            {"l": [{"x": 1, "y": 2}, {"x": 3}]},
            {"l": [{"x": 1}, {"x": 3}]},
        ),
        # What the program wrote in other letters stays, as long as the service's word stays.
        (
            {"location": "West Europe"},
            {"location": "westeurope"},
            {"location": "westeurope"},
            {"location": "West Europe"},
        ),
    ],
)
def test_a_refresh_carries_over_what_changed_and_nothing_else(
    inputs: Any, before: Any, after: Any, expected: Any
) -> None:
    assert shape.merged(inputs, before, after) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4))
def test_nothing_differs_from_itself_and_refreshing_the_same_changes_nothing(value: dict[str, Any]) -> None:
    assert list(shape.changes(value, value)) == []
    assert shape.merged(value, value, value) == value
