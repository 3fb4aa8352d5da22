"""The language of Azure Policy, as its documentation has it: conditions, fields, arrays, functions, effects."""

from __future__ import annotations

import copy
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from amlstack.base.arm_language.conditions import ConditionOutcome, evaluated
from amlstack.base.arm_language.constructs import unknown_in
from amlstack.base.arm_language.effects import PolicyChange, Ruling, assessed
from amlstack.base.arm_language.expressions import PolicyAround, field_value, value_of
from amlstack.base.arm_language.parameters import with_defaults
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget
from amlstack.base.arm_language.values import FailingExpressionError, OpenError
from amlstack.base.pulumi_wire import UNKNOWN
from tests.support.policies.own_definitions import RULES

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
PLACE = PolicyPlace.of("s", "rg-ml", location="westeurope", tags={"team": "vision"})
PARAMETERS = {"sizes": ["standard_nc24R"], "size": "STANDARD_NC24r", "effect": "Deny", "most": 3}


def outcome(condition: Any, target: PolicyTarget = CLUSTER) -> ConditionOutcome:
    return evaluated(condition, PolicyAround(target, PLACE, PARAMETERS))


@pytest.mark.parametrize(
    ("condition", "answer"),
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


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
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
    ],
)  # fmt: skip
def test_a_condition_on_an_array_looks_at_each_element(condition: dict[str, Any], answer: bool) -> None:
    assert outcome(condition, ARRAYS).holds is answer


@pytest.mark.parametrize(
    ("field", "value"),
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


@pytest.mark.parametrize(
    ("expression", "value"),
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
    assert value_of(expression, PolicyAround(CLUSTER, place, PARAMETERS)) == value


@pytest.mark.parametrize(
    "expression",
    ["[int('')]", "[substring('ab', 0, 3)]", "[length(1)]", "[ipRangeContains('10.0.0.0/24', 'x')]",
     "[ipRangeContains('10.0.0.0/24', '::1')]", "[split('a', ',')[3]]", "[addDays('x', 1)]"],
)  # fmt: skip
def test_what_azure_cannot_work_out_either_fails(expression: str) -> None:
    with pytest.raises(FailingExpressionError):
        value_of(expression, PolicyAround(CLUSTER, PLACE, PARAMETERS))


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ({"value": "x", "sounds": "x"}, "`sounds, value`"),
        ({"field": SIZE}, "`field`"),
        ({"field": "zone", "exists": True}, "zone"),
        ({"field": SIZE, "equals": "[parameters('none')]"}, "`none` has no value"),
        ({"field": SIZE, "equals": "[uniqueString('a')]"}, "uniquestring"),
        ({"value": "[subscription().tags.x]", "equals": "x"}, "`tags`"),
        ({"field": f"{COMPUTES}/none", "less": 3}, "not documented"),
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


IF = {"field": SIZE, "exists": True}


@pytest.mark.parametrize(
    ("then", "ruling"),
    [
        ({"effect": "[parameters('effect')]"}, Ruling.DENIES),
        ({"effect": "audit"}, Ruling.AUDITS),
        ({"effect": "Disabled"}, Ruling.PASSES),
        ({"effect": "denyAction"}, Ruling.NOT_JUDGED),
        ({"effect": "explode"}, Ruling.OPEN),
        ({"effect": "[parameters('none')]"}, Ruling.OPEN),
    ],
)
def test_an_effect_decides_the_ruling(then: dict[str, Any], ruling: Ruling) -> None:
    assert assessed({"if": IF, "then": then}, PARAMETERS, CLUSTER, PLACE).ruling is ruling


def test_a_condition_that_azure_cannot_evaluate_refuses_even_where_it_only_audits() -> None:
    rule = {"if": {"value": "[int('x')]", "equals": 1}, "then": {"effect": "audit"}}
    said = assessed(rule, {}, CLUSTER, PLACE)
    assert said.ruling is Ruling.DENIES
    assert "`x` is no whole number" in said.why


def modify(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"if": IF, "then": {"effect": "modify", "details": {"operations": list(operations)}}}


def test_modify_says_what_it_changes_and_nothing_where_it_changes_nothing() -> None:
    local = f"{COMPUTES}/disableLocalAuth"
    said = assessed(
        modify(
            {"operation": "addOrReplace", "field": PUBLIC, "value": True},
            {"operation": "addOrReplace", "field": local, "value": True},
            {"operation": "add", "field": "tags['Team']", "value": "x"},
            {"operation": "add", "field": "tags['env']", "value": "[resourceGroup().location]"},
            {"operation": "Remove", "field": "tags['owner']"},
            {"operation": "addOrReplace", "field": SIZE, "value": "x", "condition": "[equals('a', 'b')]"},
        ),
        {},
        CLUSTER,
        PLACE,
    )
    assert said.ruling is Ruling.MODIFIES
    assert said.changes == (
        PolicyChange(PUBLIC, before=False, after=True),
        PolicyChange("tags['env']", None, "westeurope"),
        PolicyChange("tags['owner']", "", None),
    )
    unchanged = modify({"operation": "addOrReplace", "field": local, "value": True})
    assert assessed(unchanged, {}, CLUSTER, PLACE).ruling is Ruling.PASSES


def test_append_refuses_another_value() -> None:
    def append(field: str, value: Any) -> Ruling:
        rule = {"if": IF, "then": {"effect": "append", "details": [{"field": field, "value": value}]}}
        return assessed(rule, {}, CLUSTER, PLACE).ruling

    assert append("tags['env']", "x") is Ruling.APPENDS
    assert append("tags['Team']", "vision") is Ruling.PASSES
    assert append("tags['Team']", "x") is Ruling.DENIES


DIAGNOSTICS = "Microsoft.Insights/diagnosticSettings"


def looks_for(kind: str, **more: Any) -> dict[str, Any]:
    return {"if": IF, "then": {"effect": "auditIfNotExists", "details": {"type": kind, **more}}}


@pytest.mark.parametrize(
    ("rule", "ruling"),
    [
        (looks_for(DIAGNOSTICS), Ruling.PASSES),
        (looks_for(DIAGNOSTICS, name="to-logs"), Ruling.PASSES),
        (looks_for(DIAGNOSTICS, name="other"), Ruling.AUDITS_ABSENCE),
        (looks_for(DIAGNOSTICS, existenceCondition={"field": f"{DIAGNOSTICS}/logs.enabled", "equals": True}),
         Ruling.PASSES),
        (looks_for(DIAGNOSTICS, existenceCondition={"field": f"{DIAGNOSTICS}/storageAccountId", "exists": True}),
         Ruling.AUDITS_ABSENCE),
        # `field()` means the resource that asks, `field` the one that is looked for
        (looks_for(DIAGNOSTICS, existenceCondition={"field": "name", "like": "[concat('to-', 'logs', field('kind'))]"}),
         Ruling.PASSES),
        (looks_for(f"{COMPUTES}/none"), Ruling.AUDITS_ABSENCE),
        (looks_for("Microsoft.Security/assessments"), Ruling.OPEN),
        (looks_for("Microsoft.Network/networkWatchers"), Ruling.OPEN),
        (looks_for(COMPUTES, name="[field('name')]", existenceCondition={"field": SIZE, "equals": "x"}),
         Ruling.AUDITS_ABSENCE),
    ],
)  # fmt: skip
def test_what_is_looked_for_is_looked_for_on_the_resource(rule: dict[str, Any], ruling: Ruling) -> None:
    settings = PolicyTarget(
        DIAGNOSTICS,
        f"{CLUSTER.id}/providers/{DIAGNOSTICS}/to-logs",
        {"properties": {"logs": [{"category": "x", "enabled": True}]}},
    )
    elsewhere = PolicyTarget(DIAGNOSTICS, f"{ARRAYS.id}/providers/{DIAGNOSTICS}/other", {})

    def related(kind: str) -> list[PolicyTarget]:
        return [one for one in (settings, elsewhere, CLUSTER) if one.type == kind]

    assert assessed(rule, {}, CLUSTER, PLACE, related).ruling is ruling


def test_indexed_definitions_judge_what_has_tags_and_a_place() -> None:
    rule = {"if": IF, "then": {"effect": "deny"}}
    for indexed, ruling in ((True, Ruling.DENIES), (False, Ruling.PASSES), (None, Ruling.OPEN)):
        target = PolicyTarget(CLUSTER.type, CLUSTER.id, CLUSTER.body, indexed=indexed)
        assert assessed(rule, {}, target, PLACE, mode="Indexed").ruling is ruling
        assert assessed(rule, {}, target, PLACE, mode="All").ruling is Ruling.DENIES


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ({"if": IF, "then": {"effect": "explode"}}, "the effect `explode`"),
        ({"if": {"field": SIZE, "sounds": 1}, "then": {"effect": "deny"}}, "the condition `field, sounds`"),
        ({"if": {"field": "zone", "exists": 1}, "then": {"effect": "deny"}}, "the field `zone`"),
        ({"if": {"value": "[reference('x')]", "equals": 1}, "then": {"effect": "deny"}}, "the function `reference`"),
        (modify({"operation": "flip", "field": SIZE}), "the operation `flip`"),
        (looks_for("x", existenceCondition={"value": "[newGuid()]", "equals": 1}), "the function `newguid`"),
        ({"if": IF, "then": {}}, "a rule without an effect"),
    ],
)
def test_what_a_definition_uses_beyond_this_is_found_without_a_resource(rule: dict[str, Any], what: str) -> None:
    assert unknown_in(rule) == (what,)


def test_a_function_that_is_not_known_is_no_answer() -> None:
    with pytest.raises(OpenError, match="newguid"):
        value_of("[newGuid()]", PolicyAround(CLUSTER, PLACE, {}))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def test_a_rule_of_any_form_is_judged_and_never_a_traceback() -> None:
    chance = random.Random(20261122)
    rules = [*RULES.values(), modify({"operation": "add", "field": PUBLIC, "value": 1}), looks_for(DIAGNOSTICS)]
    found = set()
    for _ in range(1500):
        rule = copy.deepcopy(chance.choice(rules))
        for _ in range(chance.randrange(1, 4)):
            *before, last = chance.choice([place for place in places(rule) if place])
            at = rule
            for key in before:
                at = at[key]
            at[last] = copy.deepcopy(
                chance.choice([None, 3, "x", "[x(", "[field('type')]", [], {}, [1], {"a": 1}, True])
            )
        unknown_in(rule)
        for target in (CLUSTER, ARRAYS):
            found.add(assessed(rule, PARAMETERS, target, PLACE, mode="Indexed").ruling)
    assert found >= {Ruling.OPEN, Ruling.PASSES, Ruling.DENIES, Ruling.AUDITS}
