"""Decisions of a definition of Azure Policy: its effect, its changes, its existence conditions."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from amlstack.base.arm_language.effects import PolicyChange, Ruling, assessed, unknown_in
from amlstack.base.arm_language.expressions import PolicyAround
from amlstack.base.arm_language.functions import OpenError
from amlstack.base.arm_language.resources import PolicyTarget
from policies.tenant import library
from tests.support.policies.policy_targets import ARRAYS, CLUSTER, COMPUTES, PARAMETERS, PLACE, PUBLIC, SIZE
from tests.support.rows import for_each

IF = {"field": SIZE, "exists": True}


@for_each(
    "then, ruling",
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
    assessment = assessed(rule, {}, CLUSTER, PLACE)
    assert assessment.ruling is Ruling.DENIES
    assert "`x` is no whole number" in assessment.why


def modify(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"if": IF, "then": {"effect": "modify", "details": {"operations": list(operations)}}}


def test_modify_says_what_it_changes_and_nothing_where_it_changes_nothing() -> None:
    local = f"{COMPUTES}/disableLocalAuth"
    assessment = assessed(
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
    assert assessment.ruling is Ruling.MODIFIES
    assert assessment.changes == (
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


@for_each("rule, ruling", [
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
])  # fmt: skip
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


def test_indexed_definitions_judge_no_resource_group() -> None:
    group = PolicyTarget("Microsoft.Resources/subscriptions/resourceGroups", "/subscriptions/s/resourceGroups/rg", {})
    untagged = {"if": {"field": "tags.cost", "exists": False}, "then": {"effect": "deny"}}
    assert assessed(untagged, {}, group, PLACE, mode="Indexed").ruling is Ruling.PASSES
    assert assessed(untagged, {}, group, PLACE, mode="All").ruling is Ruling.DENIES


def test_an_open_effect_is_no_matter_of_what_an_indexed_definition_does_not_judge() -> None:
    rule = {"if": IF, "then": {"effect": "[parameters('none')]"}}
    target = PolicyTarget(CLUSTER.type, CLUSTER.id, CLUSTER.body, indexed=False)
    assert assessed(rule, {}, target, PLACE, mode="Indexed").ruling is Ruling.PASSES
    assert assessed(rule, {}, target, PLACE, mode="All").ruling is Ruling.OPEN


@for_each(
    "rule, what",
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
        PolicyAround(CLUSTER, PLACE, {}).expression("[newGuid()]")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def test_a_rule_of_any_form_is_judged_and_never_a_traceback() -> None:
    chance = random.Random(20261122)
    stated = [one.rule for one in library.definitions().values() if one.rule]
    rules = [*stated, modify({"operation": "add", "field": PUBLIC, "value": 1}), looks_for(DIAGNOSTICS)]
    found = set()
    for _ in range(1500):
        rule = copy.deepcopy(chance.choice(rules))
        for _ in range(chance.randrange(1, 4)):
            *before, last = chance.choice([place for place in places(rule) if place])
            at: Any = rule
            for key in before:
                at = at[key]
            at[last] = copy.deepcopy(
                chance.choice([None, 3, "x", "[x(", "[field('type')]", [], {}, [1], {"a": 1}, True])
            )
        unknown_in(rule)
        for target in (CLUSTER, ARRAYS):
            found.add(assessed(rule, PARAMETERS, target, PLACE, mode="Indexed").ruling)
    assert found >= {Ruling.OPEN, Ruling.PASSES, Ruling.DENIES, Ruling.AUDITS}
