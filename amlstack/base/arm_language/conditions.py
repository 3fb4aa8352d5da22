"""Conditions of Azure Policy on one resource: true, false, or open because a value is not known here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amlstack.base.arm_language import resources
from amlstack.base.arm_language.expressions import COMPARISONS, PolicyAround, field_of, field_value
from amlstack.base.arm_language.functions import FailingExpressionError, OpenError
from amlstack.base.pulumi_wire import UNKNOWN

_FIELD = re.compile(r"field\('([^']+)'\)", re.IGNORECASE)
OPERANDS = ("field", "value", "count")


@dataclass(frozen=True, slots=True)
class ConditionOutcome:
    """The outcome of a condition.

    Attributes:
        holds: Whether it holds; None where that is open.
        seen: Fields with their values that made it so; of a condition that holds.
        open: Why it is open, each reason once.
        failure: Why Azure cannot evaluate it, which counts as a refusal of the request; empty where it can.
    """

    holds: bool | None
    seen: tuple[tuple[str, Any], ...] = ()
    open: tuple[str, ...] = ()
    failure: str = ""


def evaluated(condition: Any, around: PolicyAround) -> ConditionOutcome:
    """The outcome of a condition (the ``if`` of a rule, or an ``existenceCondition``) on a resource."""
    try:
        return _evaluated(condition, around)
    except FailingExpressionError as error:
        return ConditionOutcome(None, failure=error.why)
    except OpenError as error:
        return ConditionOutcome(None, open=(error.why,))


def _evaluated(condition: Any, around: PolicyAround) -> ConditionOutcome:
    if not isinstance(condition, Mapping):
        raise OpenError("a condition is no object")
    words = {key.lower(): value for key, value in condition.items()}
    if "allof" in words:
        return _group(words["allof"], around, decisive=False)
    if "anyof" in words:
        return _group(words["anyof"], around, decisive=True)
    if "not" in words:
        inner = evaluated(words["not"], around)
        return ConditionOutcome(None if inner.holds is None else not inner.holds, inner.seen, inner.open, inner.failure)
    operand = next((word for word in OPERANDS if word in words), None)
    operators = set(words) - {operand}
    if operand is None or len(operators) != 1 or not operators <= COMPARISONS.keys():
        raise OpenError(f"the condition `{', '.join(sorted(words))}` is not evaluated here")
    (by,) = operators
    return _compared(operand, words[operand], by, around.worked_out(words[by]), around)


def _group(conditions: Any, around: PolicyAround, *, decisive: bool) -> ConditionOutcome:
    seen: list[tuple[str, Any]] = []
    still_open: list[str] = []
    for condition in conditions if isinstance(conditions, list) else [conditions]:
        one = evaluated(condition, around)
        if one.failure:
            if not still_open:
                return one
            still_open.append(one.failure)
        elif one.holds is decisive:
            return ConditionOutcome(decisive, one.seen)
        elif one.holds is None:
            still_open += one.open
        seen += one.seen
    if still_open:
        return ConditionOutcome(None, open=tuple(dict.fromkeys(still_open)))
    return ConditionOutcome(not decisive, tuple(dict.fromkeys(_hashable(seen))))


def _hashable(seen: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(name, value if isinstance(value, str | int | float | bool | None) else str(value)) for name, value in seen]


def _compared(operand: str, subject: Any, by: str, wanted: Any, around: PolicyAround) -> ConditionOutcome:
    holds = COMPARISONS[by]
    if operand == "count":
        number = _counted(subject, around)
        return ConditionOutcome(holds(number, wanted), ((_count_name(subject), number),))
    if operand == "value":
        try:
            value = around.worked_out(subject)
        except FailingExpressionError as error:
            if _FIELD.search(str(subject)) is None:
                raise
            return ConditionOutcome(None, (_seen(subject, None, around),), failure=error.why)
        return ConditionOutcome(holds(value, wanted), (_seen(subject, value, around),))
    name = str(around.worked_out(subject))
    found = field_of(name, around)
    if any(value is UNKNOWN for value in found.values):
        raise OpenError(f"`{name}` is known once the stack is up", later=True)
    shown = list(found.values) if found.every else found.values[0]
    return ConditionOutcome(
        all(holds(value, wanted) for value in found.values), ((name, shown),) if name.lower() != "type" else ()
    )


def _seen(subject: Any, value: Any, around: PolicyAround) -> tuple[str, Any]:
    """The field that an expression looks at with its value; the expression itself where it looks at none."""
    named = _FIELD.search(str(subject))
    return (str(subject), value) if named is None else (named[1], field_value(named[1], around))


def _counted(count: Any, around: PolicyAround) -> int:
    words = {key.lower(): value for key, value in count.items()}
    where = words.get("where")
    if "field" in words:
        alias = str(around.worked_out(words["field"]))
        turns = [
            around.choosing(choice, value) for value, choice in resources.elements(alias, around.target, around.chosen)
        ]
        if any(one.counted["default"] is UNKNOWN for one in turns):
            raise OpenError(f"`{alias}` is known once the stack is up", later=True)
    else:
        listed = around.worked_out(words["value"])
        if not isinstance(listed, list):
            raise FailingExpressionError("`count` takes a list")
        turns = [around.counting(str(words.get("name", "default")), value) for value in listed]
    if where is None:
        return len(turns)
    total = 0
    for turn in turns:
        one = evaluated(where, turn)
        if one.failure:
            raise FailingExpressionError(one.failure)
        if one.holds is None:
            raise OpenError("; ".join(one.open))
        total += one.holds
    return total


def _count_name(count: Mapping[str, Any]) -> str:
    return str(next((value for key, value in count.items() if key.lower() in {"field", "name"}), "count"))
