"""Each of our statements says of every resource what a small definition of Azure Policy says that was written from it.

The definitions are of our own writing, from the facts in `policies/tenant/data/definitions.json`: the same reading
in Azure's own language, which the evaluator of files and the sandbox judge by.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from policies.tenant import stated_verdicts, statements
from policies.tenant.application import AppliedPolicy
from policies.tenant.library import PolicyDefinition
from policies.tenant.verdicts import of_files
from tests.support.policies.own_definitions import RULES
from tests.support.policies.tenant_stacks import rulings, some_stack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.tenant.statements import StatedDefinition

STATED = [one for one in statements.definitions().values() if not one.judges]


def field(on: str, path: str, **says: Any) -> dict[str, Any]:
    return {"field": f"{on}/{path}", **says}


def absent_or_empty(on: str, path: str) -> dict[str, Any]:
    return {"value": f"[empty(field('{on}/{path}'))]", "equals": True}


def written_out(stated: StatedDefinition) -> dict[str, Any]:
    """A definition in Azure's language that asks the same."""
    on = stated.on
    conditions: list[dict[str, Any]] = [{"field": "type", "equals": on}]
    conditions += (field(on, path, **{"in": values}) for path, values in stated.when.items())
    details: dict[str, Any] = {}
    broken: list[dict[str, Any]] = []
    operations = []
    for requirement in stated.requires:
        if "beside" in requirement:
            kind = requirement["beside"]
            wanted = {**requirement.get("with", {}), **requirement.get("with_any", {})}
            some = [field(kind, path.replace("[*]", ""), equals=value) for path, value in wanted.items()]
            if "with_any" in requirement:
                where = {"count": {"field": f"{kind}/logs[*]", "where": {"allOf": some}}, "greater": 0}
            else:
                where = {"allOf": some}
            details = {"type": kind, "existenceCondition": where}
        else:
            broken.append(breach(on, requirement))
            if "is" in requirement:
                operations.append(
                    {
                        "operation": "addOrReplace",
                        "field": f"{on}/{requirement['property']}",
                        "value": requirement["is"],
                    }
                )
    if stated.effects[0] == "Modify":
        details = {"operations": operations}
    if stated.effects[0] == "AuditIfNotExists" and broken:  # it looks at the resource itself
        details = {"type": on, "name": "[field('name')]", "existenceCondition": {"not": {"anyOf": broken}}}
        broken = []
    conditions += [{"anyOf": broken}] if broken else []
    effect = {"effect": stated.effects[0], **({"details": details} if details else {})}
    return {"if": {"allOf": conditions}, "then": effect}


def breach(on: str, requirement: Mapping[str, Any]) -> dict[str, Any]:
    if "any" in requirement:
        return {"allOf": [breach(on, one) for one in requirement["any"]]}
    if "has" in requirement:
        path = requirement["has"]
        where = [field(on, f"{path}[*].{name}", equals=value) for name, value in requirement.get("with", {}).items()]
        count: dict[str, Any] = {"field": f"{on}/{path}[*]", **({"where": {"allOf": where}} if where else {})}
        return {"count": count, "less": 1}
    path = requirement["property"]
    (word,) = set(requirement) - {"property"}
    value = requirement[word]
    if isinstance(value, dict):
        value = f"[parameters('{value['parameter']}')]"
    match word:
        case "is" if path == "vmSize":
            return field(on, path, notIn=value)
        case "is":
            return {"not": field(on, path, equals=value)}
        case "is_not":
            return field(on, path, equals=value)
        case "given":
            return absent_or_empty(on, path)
        case "empty":
            return {"count": {"field": f"{on}/{path}[*]"}, "greater": 0}
        case "at_most":
            return field(on, path, greater=value)
        case _:  # the number behind the last letter of a duration
            text = f"field('{on}/{path}')"
            for letter in "PYMDTH":
                text = f"replace({text}, '{letter}', '/')"
            return {"value": f"[int(last(split(replace({text}, 'S', ''), '/')))]", "greater": value}


def as_written(stated: StatedDefinition) -> AppliedPolicy:
    definition = PolicyDefinition(stated.id, stated.name, stated.version, stated.mode, written_out(stated), {})
    return AppliedPolicy(stated.id, definition, stated.parameters)


def say_the_same(stated: StatedDefinition, policy: AppliedPolicy, seed: str) -> None:
    """A statement and a definition judge many made-up stacks alike, and both answers are among them."""
    chance, answers = random.Random(seed), set()
    for _ in range(120):
        stack = some_stack(stated, chance)
        by_statement = rulings(stated_verdicts.of_definition(stated, stack))
        assert by_statement == rulings(of_files([policy], stack)), stack.targets
        answers.add(bool(by_statement))
    assert answers == {True, False}


@pytest.mark.parametrize("stated", STATED, ids=lambda one: one.id)
def test_statement_and_definition_say_the_same_of_hundreds_of_resources(stated: StatedDefinition) -> None:
    say_the_same(stated, as_written(stated), stated.id)


@pytest.mark.parametrize("definition_id", RULES)
def test_statement_and_a_rule_written_by_hand_say_the_same(definition_id: str) -> None:
    stated = statements.definitions()[definition_id.lower()]
    definition = PolicyDefinition(stated.id, stated.name, stated.version, stated.mode, RULES[definition_id], {})
    say_the_same(stated, AppliedPolicy(stated.id, definition, stated.parameters), definition_id)


def test_every_member_of_an_initiative_is_stated_with_its_source() -> None:
    for word in statements.words():
        initiative = statements.initiative(word)
        assert initiative.members
        assert initiative.members_in_all >= len(initiative.members)
        for member in initiative.members:
            assert member.definition.source
            assert member.effect.lower() in {each.lower() for each in member.definition.effects}
            asked = set(member.parameters) - set(member.definition.parameters)
            assert not asked, member
    named = {one.definition.id for word in statements.words() for one in statements.initiative(word).members}
    assert named == {one.id for one in statements.definitions().values()}
