"""The value of an expression: one walk of its tree for templates, rules of Azure Policy and deployments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from amlstack.base.arm_language.functions import FUNCTIONS, truth
from amlstack.base.arm_language.resources import PartlyKnown
from amlstack.base.arm_language.syntax import Access, Literal, Node, NotAnExpressionError, parse
from amlstack.base.arm_language.values import OpenError

_BROKEN = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)


def is_expression(value: Any) -> bool:
    """Whether Azure works a value out; two brackets at its start stand for a text with one."""
    return isinstance(value, str) and value.startswith("[") and value.endswith("]") and not value.startswith("[[")


class Evaluator:
    """The names that expressions see: a language overrides what is unknown or absent, and adds its functions.

    Attributes:
        special: Functions that see the names, or do not need all of their arguments: from names and nodes to a value.
    """

    __slots__ = ()
    special: ClassVar[Mapping[str, Callable[..., Any]]]

    def expression(self, text: str) -> Any:
        """The value of an expression, brackets included.

        Raises:
            OpenError: It cannot be worked out here; `FailingExpressionError` where Azure cannot either.
        """
        try:
            return self.value(parse(text))
        except NotAnExpressionError as error:
            raise OpenError(f"`{text[:80]}` is no expression: {error}") from None
        except OpenError:
            raise
        except _BROKEN as error:
            raise OpenError(f"`{text[:80]}` does not work out here: {str(error)[:80]}") from None

    def worked_out(self, value: Any) -> Any:
        """A value with the expressions in it replaced by their values; raises as `expression` does."""
        if is_expression(value):
            return self.expression(value)
        if isinstance(value, str):
            return value[1:] if value.startswith("[[") else value
        if isinstance(value, list):
            return [self.worked_out(one) for one in value]
        if isinstance(value, Mapping):
            return {key: self.worked_out(one) for key, one in value.items()}
        return value

    def value(self, node: Node) -> Any:
        """The value of one node."""
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Access):
            value, key = self.value(node.of), self.closed(node.key)
            try:
                return lookup(value, key)
            except LookupError:
                return self.absent(value, key)
        if node.name in self.special:
            return self.special[node.name](self, *node.arguments)
        if node.name in FUNCTIONS:
            return FUNCTIONS[node.name](*map(self.closed, node.arguments))
        raise OpenError(f"the function `{node.name[:60]}` is not worked out here")

    def closed(self, node: Node) -> Any:
        """The value of a node, of which every part is known."""
        return self.value(node)

    def absent(self, value: Any, key: Any) -> Any:
        """The value of a property or an element that is not there."""
        raise OpenError(f"there is no `{str(key)[:60]}` in {'it' if value is None else 'the value'}")


def lookup(value: Any, key: Any) -> Any:
    """A property of an object, in any letter case, or an element of a list; raises LookupError where there is none."""
    if isinstance(value, Mapping) and isinstance(key, str):
        found = [one for name, one in value.items() if name.lower() == key.lower()]
        if len(found) == 1:
            return found[0]
    if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(value):
        return value[key]
    raise LookupError


def _if(names: Evaluator, condition: Node, yes: Node, no: Node) -> Any:
    return names.value(yes if truth(names.closed(condition)) else no)


def _try_get(names: Evaluator, of: Node, *keys: Node) -> Any:
    value = names.closed(of)
    for key in keys:
        wanted = names.closed(key)
        try:
            value = lookup(value, wanted)
        except LookupError:
            return names.absent(value, wanted) if isinstance(value, PartlyKnown) else None
    return value


LAZY: Mapping[str, Callable[..., Any]] = {
    "and": lambda names, *parts: all(truth(names.closed(one)) for one in parts),
    "coalesce": lambda names, *parts: next((one for one in map(names.closed, parts) if one is not None), None),
    "if": _if,
    "or": lambda names, *parts: any(truth(names.closed(one)) for one in parts),
    "tryget": _try_get,
}
"""Functions of every language that look at an argument only when they need it."""
