"""Constructs of a definition of Azure Policy that are not evaluated here; found without a resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from amlstack.base.arm_language.comparisons import COMPARISONS
from amlstack.base.arm_language.conditions import OPERANDS
from amlstack.base.arm_language.effects import JUDGED, ON_OTHERS
from amlstack.base.arm_language.evaluation import is_expression
from amlstack.base.arm_language.expressions import PolicyAround, tag_of
from amlstack.base.arm_language.functions import FUNCTIONS
from amlstack.base.arm_language.syntax import Access, FunctionCall, Node, NotAnExpressionError, parse

_FIELDS = frozenset({"fullname", "id", "kind", "location", "name", "tags", "type"})
_OPERATIONS = frozenset({"add", "addorreplace", "remove"})


def unknown_in(rule: Mapping[str, Any]) -> tuple[str, ...]:
    """What a rule uses that is not evaluated here, each thing once; in words that end a sentence."""
    try:
        return tuple(dict.fromkeys(_in_rule(rule)))
    except (AttributeError, KeyError, TypeError):
        return ("a form that rules of Azure Policy do not have",)


def _in_rule(rule: Mapping[str, Any]) -> Iterator[str]:
    yield from _in_condition(rule.get("if"))
    then = rule.get("then")
    if not isinstance(then, Mapping) or "effect" not in then:
        yield "a rule without an effect"
        return
    effect = then["effect"]
    if is_expression(effect):
        yield from _in_value(effect)
    elif str(effect).lower() not in JUDGED | ON_OTHERS:
        yield f"the effect `{effect}`"
    yield from _in_details(then.get("details"))


def _in_details(details: Any) -> Iterator[str]:
    if isinstance(details, list):  # append
        for entry in details:
            yield from _in_value(entry)
    if not isinstance(details, Mapping):
        return
    for name, value in details.items():
        match name.lower():
            case "existencecondition":
                yield from _in_condition(value)
            case "operations":
                for operation in value:
                    if str(operation.get("operation")).lower() not in _OPERATIONS:
                        yield f"the operation `{operation.get('operation')}`"
                    yield from _in_value(operation)
            case "name" | "type" | "resourcegroupname":
                yield from _in_value(value)


def _in_condition(condition: Any) -> Iterator[str]:
    if not isinstance(condition, Mapping):
        yield "a condition that is no object"
        return
    words = {key.lower(): value for key, value in condition.items()}
    for group in ("allof", "anyof"):
        if group in words:
            inner = words[group]
            for one in inner if isinstance(inner, list) else [inner]:
                yield from _in_condition(one)
            return
    if "not" in words:
        yield from _in_condition(words["not"])
        return
    operand = next((word for word in OPERANDS if word in words), None)
    operators = set(words) - {operand}
    if operand is None or len(operators) != 1 or not operators <= COMPARISONS.keys():
        yield f"the condition `{', '.join(sorted(words))}`"
        return
    (by,) = operators
    yield from _in_value(words[by])
    if operand == "count":
        count = {key.lower(): value for key, value in words["count"].items()}
        yield from _in_value(count.get("value"))
        if "where" in count:
            yield from _in_condition(count["where"])
    elif operand == "value":
        yield from _in_value(words["value"])
    else:
        yield from _in_field(words["field"])


def _in_field(name: Any) -> Iterator[str]:
    if is_expression(name):
        yield from _in_value(name)
        return
    low = str(name).lower()
    if "/" not in low and low not in _FIELDS and not low.startswith("identity.") and tag_of(low) is None:
        yield f"the field `{name}`"


def _in_value(value: Any) -> Iterator[str]:
    if is_expression(value):
        try:
            used = _functions_in(value)
        except NotAnExpressionError as error:
            yield f"the expression `{value[:60]}`: {error}"
            return
        for name in sorted(used - PolicyAround.special.keys() - FUNCTIONS.keys()):
            yield f"the function `{name}`"
    elif isinstance(value, list):
        for one in value:
            yield from _in_value(one)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _in_value(one)


def _functions_in(expression: str) -> set[str]:
    """The names of the functions that an expression calls, in small letters.

    Raises:
        NotAnExpressionError: It follows no grammar.
    """
    found: set[str] = set()
    todo: list[Node] = [parse(expression)]
    while todo:
        node = todo.pop()
        if isinstance(node, FunctionCall):
            found.add(node.name)
            todo += node.arguments
        elif isinstance(node, Access):
            todo += (node.of, node.key)
    return found
