"""Names, locations and refusals of Check."""

from __future__ import annotations

from typing import Any

import pytest

from amlstack.rpc import UNKNOWN, decode
from amlstack.sandbox.azure_native import shape
from tests.support.rows import for_each

GROUP = shape.find("azure-native:resources:ResourceGroup")[0]
COMPUTE = shape.find("azure-native:machinelearningservices:Compute")[0]
JOB = shape.find("azure-native:machinelearningservices:Job")[0]


def test_a_resource_of_its_own_gets_a_random_name_that_preview_and_update_agree_on() -> None:
    first = shape.name(GROUP, "group", b"seed", {}, None)
    assert first == shape.name(GROUP, "group", b"seed", {}, None)
    assert first["resourceGroupName"].startswith("group")
    assert len(first["resourceGroupName"]) == len("group") + 8
    assert first["__createBeforeDelete"] is True
    assert shape.name(GROUP, "group", b"other", {}, None) != first


def test_a_resource_inside_another_one_is_named_as_in_the_program() -> None:
    assert shape.name(COMPUTE, "cluster", b"seed", {}, None) == {"computeName": "cluster"}
    assert shape.name(JOB, "train", b"seed", {}, None) == {"id": "train"}


def test_a_name_once_given_stays() -> None:
    old = {"resourceGroupName": "group1", "__createBeforeDelete": True, "location": "x"}
    assert shape.name(GROUP, "renamed", b"other", old, (shape.ENFORCE, "p")) == {
        "resourceGroupName": "group1",
        "__createBeforeDelete": True,
    }


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (shape.PROPOSE, {"resourceGroupName": "p", "__createBeforeDelete": True}),
        (shape.ENFORCE, {"resourceGroupName": "p", "__createBeforeDelete": True}),
        (shape.DISABLE, {}),
    ],
)
def test_the_stacks_own_naming_is_followed(mode: int, expected: dict[str, Any]) -> None:
    assert shape.name(GROUP, "group", b"seed", {}, (mode, "p")) == expected


@for_each(
    "old, new, config, expected",
    [
        ({"location": "old"}, {"resourceGroupName": "g"}, {"location": "stack"}, "old"),
        ({}, {"resourceGroupName": "g"}, {"location": "stack"}, "stack"),
        ({}, {"resourceGroupName": "g"}, {}, "of g"),
        ({}, {"resourceGroupName": UNKNOWN}, {}, UNKNOWN),
        ({}, {"resourceGroupName": "lost"}, {}, None),
        ({}, {}, {}, None),
    ],
)
def test_a_location_comes_from_before_the_stack_or_the_group(old: Any, new: Any, config: Any, expected: Any) -> None:
    assert shape.location(old, new, config, lambda group: f"of {group}" if group == "g" else None) == expected


@for_each(
    "kind, inputs, expected",
    [
        (GROUP, {"resourceGroupName": "g", "location": "x"}, []),
        (GROUP, {"resourceGroupName": UNKNOWN, "location": UNKNOWN, "azureApiVersion": "v"}, []),
        (
            GROUP,
            {},
            [
                "missing required property 'resourceGroupName'",
                (
                    "missing required property 'location'. Either set it explicitly or configure it with "
                    "'pulumi config set azure-native:location <value>'."
                ),
            ],
        ),
        (
            GROUP,
            {"resourceGroupName": "g", "location": "x", "tag": {}},
            ["'tag' is no property of azure-native:resources:ResourceGroup. Did you mean `tags`?"],
        ),
        (
            GROUP,
            {"resourceGroupName": "g/h", "location": "x"},
            ["'resourceGroupName' must be a name (a string without '/'), not 'g/h'"],
        ),
        (
            GROUP,
            {"resourceGroupName": 7, "location": "x"},
            ["'resourceGroupName' must be a name (a string without '/'), not 7"],
        ),
    ],
)
def test_all_mistakes_are_shown_at_once(kind: shape.ResourceType, inputs: Any, expected: list[str]) -> None:
    answer = shape.failures(kind, inputs).response(inputs)
    assert [failure.reason for failure in answer.failures] == expected
    assert decode(answer.inputs) == inputs
