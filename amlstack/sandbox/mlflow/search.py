"""MLflow's search language, as far as clients write it: conditions joined by AND, orders by a name."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.mlflow.runs import MlflowRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_NAME = r"(?:(?P<of>attributes?|run|tags?|params?|parameters?|metrics?)\.)?(?P<key>`[^`]+`|\"[^\"]+\"|[\w./-]+)"
_CONDITION = re.compile(
    rf"\s*{_NAME}\s*(?P<how>!=|>=|<=|=|>|<|(?:NOT\s+)?IN\b|I?LIKE\b)\s*"
    r"(?P<value>'[^']*'|\"[^\"]*\"|-?[\d.]+(?:e[+-]?\d+)?|\([^)]*\))\s*",
    re.IGNORECASE,
)
_ORDER = re.compile(rf"\s*{_NAME}(?:\s+(?P<way>ASC|DESC))?\s*", re.IGNORECASE)
_AND = re.compile(r"AND\b", re.IGNORECASE)
_WORDS = re.compile(r"'([^']*)'|\"([^\"]*)\"")
PROMPT = "mlflow.prompt.is_prompt"
"""Clients keep prompts out of every list of models by this tag, which models do not have."""
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def matches(text: str, facts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether all conditions of a filter hold; an empty one does.

    Args:
        text: The filter.
        facts: What is known of one thing: ``attributes``, ``tags``, ``params``, ``metrics``, each by name.

    Raises:
        MlflowRefused: It is not understood.
    """
    held, at = True, 0
    while text[at:].strip():
        found = _CONDITION.match(text, at)
        if found is None:
            raise _unread("filter", text)
        held = _holds(found, facts) and held
        at = found.end()
        if joint := _AND.match(text, at):
            at = joint.end()
        elif text[at:].strip():
            raise _unread("filter", text)
    return held


def ordered(things: list[Any], orders: Sequence[str], facts: Callable[[Any], Any]) -> list[Any]:
    """Things in the order asked for; those without the value come last, and what is equal keeps its order.

    Raises:
        MlflowRefused: An order is not understood.
    """
    for order in reversed(orders):
        found = _ORDER.fullmatch(order)
        if found is None:
            raise _unread("order_by", order)
        pairs = [(thing, _value(found, facts(thing))) for thing in things]
        down = (found["way"] or "ASC").upper() == "DESC"
        there = sorted((pair for pair in pairs if pair[1] is not None), key=lambda pair: pair[1], reverse=down)
        things = [thing for thing, _ in there] + [thing for thing, value in pairs if value is None]
    return things


def page(things: list[Any], fields: Mapping[str, Any], most: int = 1000) -> tuple[list[Any], dict[str, str]]:
    """One page of an answer, and ``next_page_token`` when there are more."""
    begin, count = int(fields.get("page_token") or 0), int(fields.get("max_results") or most)
    more = {"next_page_token": str(begin + count)} if len(things) > begin + count else {}
    return things[begin : begin + count], more


def _holds(found: re.Match[str], facts: Mapping[str, Mapping[str, Any]]) -> bool:
    value, how, literal = _value(found, facts), " ".join(found["how"].upper().split()), found["value"]
    if how.endswith("IN"):
        words = [first or second for first, second in _WORDS.findall(literal)]
        return value is not None and (str(value) in words) is not how.startswith("NOT")
    if value is None:
        return how == "!=" and PROMPT in found["key"]
    if how.endswith("LIKE"):
        pattern = ".*".join(re.escape(part) for part in literal[1:-1].split("%"))
        return re.fullmatch(pattern, str(value), re.IGNORECASE if how == "ILIKE" else 0) is not None
    if isinstance(value, str):
        return _COMPARED[how](value, literal[1:-1] if literal[0] in "'\"" else literal)
    return _COMPARED[how](float(value), float(literal.strip("'\"")))


def _value(found: re.Match[str], facts: Mapping[str, Mapping[str, Any]]) -> Any:
    kind = (found["of"] or "attributes").lower()
    kind = {"p": "params", "t": "tags", "m": "metrics"}.get(kind[0], "attributes")
    name = found["key"].strip('`"')
    if kind == "attributes" and name not in facts["attributes"]:
        known = ", ".join(sorted(facts["attributes"]))
        message = f"Invalid attribute key '{name}' specified. Valid keys are '{known}'."
        raise MlflowRefused(400, "INVALID_PARAMETER_VALUE", message)
    return facts.get(kind, {}).get(name)


def _unread(what: str, text: str) -> MlflowRefused:
    return MlflowRefused(400, "INVALID_PARAMETER_VALUE", f"The sandbox does not understand the {what} {text!r}.")
