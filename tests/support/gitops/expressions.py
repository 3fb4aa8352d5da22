"""GitHub's expressions, as far as our files use them: whatever else is met is an error, never a guess."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<word>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)|(?P<sign>==|!=|&&|\|\||[!(),\[\].]))"
)
STATUS = frozenset({"always", "cancelled", "failure", "success"})
"""Functions by which an ``if`` decides by itself; any other is met only while nothing has failed."""


class ExpressionError(Exception):
    """An expression that the stand-in does not know, or a value that does not exist."""


@dataclass(frozen=True)
class Surroundings:
    """The names that expressions may use.

    Attributes:
        contexts: ``github``, ``env``, ``vars``, ``needs``, ``steps``, ``runner``.
        folder: The checkout, for ``hashFiles``.
        failed, cancelled: How the job stands.
    """

    contexts: Mapping[str, Any]
    folder: Path
    failed: bool = False
    cancelled: bool = False

    def fill(self, text: str) -> str:
        """A text with each ``${{ … }}`` replaced by its value."""
        return re.sub(r"\$\{\{(.*?)\}\}", lambda found: shown(self.value(found[1])), text, flags=re.DOTALL)

    def met(self, condition: str | None) -> bool:
        """True where an ``if`` lets its step or job run."""
        if condition is None:
            return not self.failed and not self.cancelled
        expression = re.sub(r"^\s*\$\{\{(.*)\}\}\s*$", r"\1", str(condition), flags=re.DOTALL)
        words = {found["word"] for found in TOKEN.finditer(expression)}
        answer = truth(self.value(expression))
        return answer if words & STATUS else answer and not self.failed and not self.cancelled

    def value(self, expression: str) -> Any:
        """The value of an expression."""
        tokens, at = [], 0
        text = expression.strip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if not found:
                raise ExpressionError(f"not understood: {text[at:]!r} in {expression!r}")
            tokens.append((str(found.lastgroup), found[found.lastgroup or 0]))
            at = found.end()
        reading = _Reading(tokens, self)
        answer = reading.either()
        if reading.rest:
            raise ExpressionError(f"not understood: {reading.rest} in {expression!r}")
        return answer

    def named(self, path: str) -> Any:
        """A value of a context; what GitHub would leave empty is empty where a context may lack it."""
        first, *rest = path.split(".")
        if first in {"true", "false"} and not rest:
            return first == "true"
        if first not in self.contexts:
            raise ExpressionError(f"no context `{first}` in {path!r}")
        value = self.contexts[first]
        for name in rest:
            if not isinstance(value, dict):
                raise ExpressionError(f"`{path}` leads nowhere")
            if name not in value and first in {"github", "runner", "needs"} and "outputs" not in rest:
                raise ExpressionError(f"the stand-in has no `{path}`")
            value = value.get(name, "")
        return value

    def called(self, name: str, arguments: Sequence[Any]) -> Any:
        """The value of a function."""
        if name in STATUS and not arguments:
            return {
                "always": True,
                "cancelled": self.cancelled,
                "failure": self.failed,
                "success": not self.failed and not self.cancelled,
            }[name]
        if name == "fromJSON" and len(arguments) == 1:
            return json.loads(arguments[0])
        if name == "hashFiles":
            return self._hash(arguments)
        raise ExpressionError(f"no function `{name}` with {len(arguments)} arguments")

    def _hash(self, patterns: Sequence[str]) -> str:
        files = sorted({file for pattern in patterns for file in self.folder.glob(pattern) if file.is_file()})
        if not files:
            return ""
        total = hashlib.sha256()
        for file in files:
            total.update(hashlib.sha256(file.read_bytes()).digest())
        return total.hexdigest()


class _Reading:
    """Recursive descent: ``||`` binds least, then ``&&``, comparison, ``!``."""

    def __init__(self, tokens: list[tuple[str, str]], around: Surroundings) -> None:
        self.rest, self.around = tokens, around

    def either(self) -> Any:
        left = self.both()
        while self._takes("||"):
            right = self.both()
            left = left if truth(left) else right
        return left

    def both(self) -> Any:
        left = self.compared()
        while self._takes("&&"):
            right = self.compared()
            left = right if truth(left) else left
        return left

    def compared(self) -> Any:
        left = self.single()
        for sign in ("==", "!="):
            if self._takes(sign):
                same = shown(left).lower() == shown(self.single()).lower()
                return same if sign == "==" else not same
        return left

    def single(self) -> Any:
        if self._takes("!"):
            return not truth(self.single())
        if self._takes("("):
            value = self.either()
            self._expect(")")
            return value
        if not self.rest:
            raise ExpressionError("an expression ends too early")
        kind, token = self.rest.pop(0)
        if kind == "text":
            return token[1:-1].replace("''", "'")
        if kind != "word":
            raise ExpressionError(f"not understood: {token!r}")
        if not self._takes("("):
            return self.around.named(token)
        return self.inside(self.call(token))

    def inside(self, value: Any) -> Any:
        """``[index]`` and ``.name`` behind a call; what is not there is empty, as GitHub has it."""
        while True:
            if self._takes("["):
                name = shown(self.either())
                self._expect("]")
            elif self._takes("."):
                name = self.rest.pop(0)[1]
            else:
                return value
            value = value.get(name, "") if isinstance(value, dict) else ""

    def call(self, token: str) -> Any:
        arguments: list[Any] = []
        while not self._takes(")"):
            if arguments:
                self._expect(",")
            arguments.append(self.either())
        return self.around.called(token, arguments)

    def _takes(self, sign: str) -> bool:
        if self.rest and self.rest[0] == ("sign", sign):
            self.rest.pop(0)
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise ExpressionError(f"{sign!r} is missing")


def truth(value: Any) -> bool:
    """The truth of a value in a condition."""
    return bool(value)


def shown(value: Any) -> str:
    """A value as GitHub puts it into a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ExpressionError(f"no text for a {type(value).__name__}")
