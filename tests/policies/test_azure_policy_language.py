"""The language of Azure Policy, as its documentation has it: conditions, fields, arrays, functions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from amlstack.base.arm_language.expressions import PolicyAround, field_value
from amlstack.base.arm_language.functions import FailingExpressionError
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget, with_defaults
from tests.support.policies.policy_targets import (
    ARRAYS,
    CLUSTER,
    COMPUTES,
    PARAMETERS,
    PLACE,
    PUBLIC,
    SIZE,
    TEST,
    outcome,
)
from tests.support.rows import for_each


@for_each("condition, answer",
    [
        ({"field": "type", "equals": COMPUTES.upper()}, True),
        ({"field": "type", "notEquals": COMPUTES}, False),
        ({"field": SIZE, "in": "[parameters('sizes')]"}, True),
        ({"field": SIZE, "in": ["Standard_NC24"]}, False),
        ({"field": SIZE, "notIn": "[parameters('sizes')]"}, False),
        ({"field": SIZE, "notin": []}, True),
        ({"field": SIZE, "Equals": "[parameters('SIZE')]"}, True),
        ({"field": SIZE, "contains": "nc24"}, True),
        ({"field": SIZE, "notContains": "nd4"}, True),
        ({"field": SIZE, "like": "standard_*R"}, True),
        ({"field": SIZE, "like": "Standard_ND*"}, False),
        ({"field": SIZE, "notLike": "Standard_ND*"}, True),
        ({"field": SIZE, "match": "Standard_??##r"}, True),
        ({"field": SIZE, "match": "standard_??##r"}, False),
        ({"field": SIZE, "matchInsensitively": "standard_..##R"}, True),
        ({"field": SIZE, "notMatch": "standard_??##r"}, True),
        ({"field": SIZE, "notMatchInsensitively": "standard_??##r"}, False),
        ({"field": SIZE, "exists": "true"}, True),
        ({"field": SIZE, "exists": False}, False),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "exists": "false"}, True),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "equals": "Disabled"}, False),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "notEquals": "Disabled"}, True),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "notIn": ["Disabled"]}, True),
        ({"field": f"{COMPUTES}/remoteLoginPortPublicAccess", "contains": ""}, False),
        ({"field": PUBLIC, "equals": "false"}, True),
        ({"field": PUBLIC, "notEquals": False}, False),
        ({"field": f"{COMPUTES}/scaleSettings.maxNodeCount", "greater": "[parameters('most')]"}, True),
        ({"field": f"{COMPUTES}/scaleSettings.maxNodeCount", "greaterOrEquals": 4}, True),
        ({"field": f"{COMPUTES}/scaleSettings.maxNodeCount", "less": 4}, False),
        ({"field": f"{COMPUTES}/scaleSettings.maxNodeCount", "lessOrEquals": 4}, True),
        ({"field": f"{COMPUTES}/subnet.id", "equals": "/X"}, True),
        ({"field": "identity.type", "contains": "userassigned"}, True),
        ({"field": "location", "in": ["westeurope"]}, True),
        ({"field": "name", "equals": "gpu"}, True),
        ({"field": "fullName", "equals": "ml/gpu"}, True),
        ({"field": "id", "contains": "/resourceGroups/RG-ml/"}, True),
        ({"field": "tags", "containsKey": "team"}, True),
        ({"field": "tags", "notContainsKey": "none"}, True),
        ({"field": "tags['TEAM']", "equals": "Vision"}, True),
        ({"field": "tags[cost.center]", "equals": "7"}, True),
        ({"field": "tags.owner", "equals": ""}, True),
        ({"field": "[concat('tags[', 'none', ']')]", "exists": "false"}, True),
        ({"value": "[resourceGroup().name]", "like": "RG-*"}, True),
        ({"value": "[less(length(field('tags')), 3)]", "equals": "true"}, False),
        ({"count": {"value": "[parameters('sizes')]", "where": {"field": SIZE, "equals": "[current()]"}}, "equals": 1},
         True),
        ({"count": {"value": ["a", "b"], "name": "x", "where": {"value": "[current('x')]", "equals": "b"}},
          "equals": 1}, True),
        ({"allOf": []}, True),
        ({"anyOf": []}, False),
        ({"allof": [{"field": SIZE, "exists": True}, {"field": SIZE, "equals": "x"}]}, False),
        ({"AnyOf": [{"field": SIZE, "exists": True}, {"field": SIZE, "equals": "x"}]}, True),
        ({"not": {"field": SIZE, "equals": "x"}}, True),
    ],
)  # fmt: skip
def test_a_condition_holds_or_not(condition: dict[str, Any], answer: bool) -> None:
    assert outcome(condition).holds is answer


@for_each("condition, answer", [
        ({"field": f"{TEST}/stringArray[*]", "equals": "a"}, False),
        ({"field": f"{TEST}/stringArray[*]", "in": ["a", "b", "c"]}, True),
        ({"field": f"{TEST}/missing[*]", "equals": "a"}, True),  # all of none
        ({"field": f"{TEST}/missing[*].id", "exists": "false"}, True),
        ({"field": f"{TEST}/missing", "exists": "false"}, True),
        ({"field": f"{TEST}/objectArray[*].property", "like": "value*"}, True),
        ({"field": f"{TEST}/sku.name", "equals": "premium"}, True),
        ({"count": {"field": f"{TEST}/stringArray[*]"}, "equals": 3}, True),
        ({"count": {"field": f"{TEST}/missing[*]"}, "equals": 0}, True),
        ({"count": {"field": f"{TEST}/objectArray[*].nestedArray[*]"}, "greaterOrEquals": 4}, True),
        ({"count": {"field": f"{TEST}/stringArray[*]", "where": {"field": f"{TEST}/stringArray[*]", "equals": "a"}},
          "equals": 1}, True),
        ({"count": {"field": f"{TEST}/objectArray[*]", "where": {"allOf": [
            {"field": f"{TEST}/objectArray[*].property", "equals": "value2"},
            {"field": f"{TEST}/objectArray[*].nestedArray[*]", "greater": 2}]}}, "equals": 1}, True),
        ({"count": {"field": f"{TEST}/objectArray[*]", "where": {
            "count": {"field": f"{TEST}/objectArray[*].nestedArray[*]",
                      "where": {"field": f"{TEST}/objectArray[*].nestedArray[*]", "greater": 1}}, "equals": 2}},
          "equals": 1}, True),
        ({"count": {"field": f"{TEST}/objectArray[*]", "where": {
            "value": f"[current('{TEST}/objectArray[*].property')]", "equals": "value1"}}, "equals": 1}, True),
        ({"count": {"field": f"{TEST}/parts[*]", "where": {"field": f"{TEST}/parts[*].state", "equals": "Approved"}},
          "equals": 1}, True),  # ARM's sub-resources keep their own under `properties`
        ({"count": {"field": f"{TEST}/parts[*]", "where": {"field": f"{TEST}/parts.name", "equals": "two"}},
          "equals": 1}, True),  # an alias of the old kind
])  # fmt: skip
def test_a_condition_on_an_array_looks_at_each_element(condition: dict[str, Any], answer: bool) -> None:
    assert outcome(condition, ARRAYS).holds is answer


@for_each(
    "field, value",
    [
        ("missing", ""),
        ("missing[*]", []),
        ("missing[*].property", []),
        ("stringArray", ["a", "b", "c"]),
        ("stringArray[*]", ["a", "b", "c"]),
        ("objectArray[*].property", ["value1", "value2"]),
        ("objectArray[*].nestedArray", [[1, 2], [3, 4]]),
        ("objectArray[*].nestedArray[*]", [1, 2, 3, 4]),
    ],
)
def test_the_function_field_gives_what_the_documentation_lists(field: str, value: Any) -> None:
    assert field_value(f"{TEST}/{field}", PolicyAround(ARRAYS, PLACE, {})) == value


@for_each(
    "expression, value",
    [
        ("[if(equals(field('name'), 'gpu'), 'yes', parameters('none'))]", "yes"),
        ("[empty(field('tags.none'))]", True),
        ("[toLower(first(split('A,b', ',')))]", "a"),
        ("[last(createArray(1, 2))]", 2),
        ("[int('7')]", 7),
        ("[contains('abc', 'b')]", True),
        ("[and(true(), or(false(), not(false())))]", True),
        ("[addDays('2026-01-01T00:00:00Z', 31)]", "2026-02-01T00:00:00.0000000Z"),
        ("[utcNow()]", "2026-11-22T12:00:00.0000000Z"),
        ("[ipRangeContains('10.0.0.0/24', '10.0.0.7')]", True),
        ("[ipRangeContains('10.0.0.0-10.0.0.9', '10.0.0.4/30')]", True),
        ("[ipRangeContains('10.0.0.0/24', '10.0.1.0/30')]", False),
        ("[greaterOrEquals(requestContext().apiVersion, '2021-10-01')]", True),
        ("[subscription().subscriptionId]", "s"),
        ("[resourceGroup().tags['Team']]", "vision"),
        ("[resourceGroup().managedBy]", ""),
        ("[tryGet(field('tags'), 'none')]", None),
        ("[padLeft('7', 3, '0')]", "007"),
        ("[coalesce(null(), 'x')]", "x"),
        ("[format('{0}-{1}', 'a', 1)]", "a-1"),
        ("[split(concat(field('id'), '//'), '/')[2]]", "s"),
    ],
)
def test_a_function_gives_its_value(expression: str, value: Any) -> None:
    place = PolicyPlace(PLACE.subscription, PLACE.group, datetime(2026, 11, 22, 12, tzinfo=UTC))
    assert PolicyAround(CLUSTER, place, PARAMETERS).expression(expression) == value


@for_each("expression", ["[int('')]", "[substring('ab', 0, 3)]", "[length(1)]", "[ipRangeContains('10.0.0.0/24', 'x')]",
     "[ipRangeContains('10.0.0.0/24', '::1')]", "[split('a', ',')[3]]", "[addDays('x', 1)]"])  # fmt: skip
def test_what_azure_cannot_work_out_either_fails(expression: str) -> None:
    with pytest.raises(FailingExpressionError):
        PolicyAround(CLUSTER, PLACE, PARAMETERS).expression(expression)


@for_each(
    "condition, what",
    [
        ({"value": "x", "sounds": "x"}, "`sounds, value`"),
        ({"field": SIZE}, "`field`"),
        ({"field": "zone", "exists": True}, "zone"),
        ({"field": SIZE, "equals": "[parameters('none')]"}, "`none` has no value"),
        ({"field": SIZE, "equals": "[uniqueString('a')]"}, "uniquestring"),
        ({"value": "[subscription().tags.x]", "equals": "x"}, "`tags`"),
        ({"field": f"{COMPUTES}/none", "less": 3}, "not proven"),
        ({"anyOf": [{"field": SIZE, "equals": "x"}, {"field": SIZE, "sounds": "x"}]}, "sounds"),
        ({"not": {"field": SIZE, "sounds": "x"}}, "sounds"),
        ({"field": SIZE, "equals": "[concat(]"}, "no expression"),
    ],
)
def test_what_is_not_known_is_open_and_named(condition: dict[str, Any], what: str) -> None:
    found = outcome(condition)
    assert found.holds is None
    assert what in "; ".join(found.open)


def test_what_the_stack_alone_will_know_is_open() -> None:
    assert outcome({"field": f"{TEST}/later", "equals": "x"}, ARRAYS).holds is None
    assert outcome({"value": f"[field('{TEST}/later')]", "equals": "x"}, ARRAYS).holds is None
    assert outcome({"field": f"{TEST}/later[*].x", "equals": "x"}, ARRAYS).holds is None


def test_a_certain_answer_stands_whatever_else_is_open() -> None:
    odd = {"field": SIZE, "sounds": "x"}
    assert outcome({"anyOf": [odd, {"field": SIZE, "exists": True}]}).holds is True
    assert outcome({"allOf": [odd, {"field": SIZE, "equals": "x"}]}).holds is False


def test_functions_behind_a_false_condition_are_never_asked() -> None:
    of_others = {"allOf": [{"field": "type", "equals": TEST}, {"value": "[int('')]", "equals": 1}]}
    assert outcome(of_others).holds is False
    assert outcome(of_others, ARRAYS).failure


@pytest.mark.parametrize(("left", "right"), [(True, 1), ("4", 4), (4, "a")])
def test_two_kinds_of_values_have_no_order(left: Any, right: Any) -> None:
    assert outcome({"value": left, "less": right}).failure


def test_an_alias_of_another_type_has_no_value() -> None:
    storage = PolicyTarget("Microsoft.Storage/storageAccounts", "", CLUSTER.body)
    assert outcome({"field": SIZE, "exists": "false"}, storage).holds is True
    workspace = PolicyTarget("Microsoft.MachineLearningServices/workspaces", "", CLUSTER.body)
    assert outcome({"field": SIZE, "exists": "false"}, workspace).holds is True


def test_given_values_stand_over_defaults_and_what_is_not_declared_is_left_out() -> None:
    declared = {"effect": {"type": "String", "defaultValue": "Audit"}, "sizes": {"type": "Array"}}
    assert with_defaults(declared, {}) == {"effect": "Audit"}
    assert with_defaults(declared, {"Effect": "Deny", "x": 1}) == {"effect": "Deny"}
