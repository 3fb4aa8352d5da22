"""The grammar of ARM template expressions: ``[concat(parameters('a'), variables('b').c[0])]`` as a tree.

Source of the grammar: Azure Resource Manager documentation, "Syntax and expressions in ARM templates".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

DEPTH = 60
"""Most levels of one expression; Azure's own limit is on its length."""

LENGTH = 24_576
"""Most characters of one expression, as Azure limits it."""

_TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>[()\[\],.]))")


class NotAnExpressionError(ValueError):
    """The text is no expression; the message says where it stops being one."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text or a whole number."""

    value: Any


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function with its arguments; the name in small letters, a user's own with its namespace before a dot."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """A property or an element of a value."""

    of: Node
    key: Node


Node = Literal | FunctionCall | Access


@lru_cache(maxsize=1024)
def parse(expression: str) -> Node:
    """The tree of an expression.

    Args:
        expression: With its brackets, as a template has it.

    Raises:
        NotAnExpressionError: It does not follow the grammar, is too long or too deep.
    """
    if len(expression) > LENGTH:
        raise NotAnExpressionError(f"it has more than {LENGTH} characters")
    reader = _Reader(expression[1:-1])
    tree = reader.value(0)
    reader.end()
    return tree


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise NotAnExpressionError(f"`{text[at : at + 20]}` is not part of the language")
            kind = str(found.lastgroup)
            self._tokens.append((kind, found[kind]))
            at = found.end()
        self._at = 0

    def _next(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _take(self, sign: str) -> bool:
        if self._next() == ("sign", sign):
            self._at += 1
            return True
        return False

    def _must(self, sign: str) -> None:
        if not self._take(sign):
            raise NotAnExpressionError(f"`{sign}` is missing before `{self._next()[1]}`")

    def end(self) -> None:
        if self._next()[0] != "end":
            raise NotAnExpressionError(f"`{self._next()[1]}` follows its end")

    def value(self, depth: int) -> Node:
        if depth > DEPTH:
            raise NotAnExpressionError(f"it is nested more than {DEPTH} deep")
        kind, word = self._next()
        self._at += 1
        match kind:
            case "text":
                return Literal(word[1:-1].replace("''", "'"))
            case "number":
                return Literal(int(word))
            case "name":
                name = word.lower()
                if self._take("."):
                    name = f"{name}.{self._name()}"
                self._must("(")
                return self._accesses(FunctionCall(name, self._arguments(depth + 1)), depth)
        raise NotAnExpressionError(f"a value is missing before `{word}`")

    def _name(self) -> str:
        kind, word = self._next()
        if kind != "name":
            raise NotAnExpressionError(f"a name is missing before `{word}`")
        self._at += 1
        return word.lower()

    def _arguments(self, depth: int) -> tuple[Node, ...]:
        found: list[Node] = []
        if self._take(")"):
            return ()
        while True:
            found.append(self.value(depth))
            if not self._take(","):
                self._must(")")
                return tuple(found)

    def _accesses(self, node: Node, depth: int) -> Node:
        while True:
            depth += 1
            if depth > DEPTH:
                raise NotAnExpressionError(f"it is nested more than {DEPTH} deep")
            if self._take("."):
                node = Access(node, Literal(self._name()))
            elif self._take("["):
                node = Access(node, self.value(depth + 1))
                self._must("]")
            else:
                return node
