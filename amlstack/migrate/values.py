"""Values that reading a program without running it comes to: plain ones, objects of SDK v1, and what is not known."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any, Final

MARK: Final = re.compile(r"<fill:(?P<what>[^<>,]*),(?P<file>[^<>]*):(?P<line>\d+)>")
"""A value that a person has to fill in, with the place that did not say it."""
_UNSHOWN: Final = re.compile(r"[^\w.\[\]()=+*/-]+")


class Open:
    """A value that no file of v2 can hold: as text, in lists and mappings, too, it is a placeholder."""

    def _said(self) -> tuple[str, str, int]:
        """Its expression or name, with the file and the line where it stands."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """The placeholder in its place."""
        text, file, line = self._said()
        return f"<fill:{_UNSHOWN.sub('_', text)[:60].strip('_')},{_UNSHOWN.sub('_', file)}:{line}>"


@dataclass(frozen=True, repr=False)
class Unread(Open):
    """A value that reading does not find.

    Attributes:
        of: The expression, or its text.
        file: The file in which it stands.
        line: Its line.
    """

    of: ast.expr | str
    file: str
    line: int

    def _said(self) -> tuple[str, str, int]:
        try:  # few of them are ever written down
            text = self.of if isinstance(self.of, str) else ast.unparse(self.of)
        except RecursionError:
            text = ""
        return text, self.file, self.line


@dataclass(frozen=True, repr=False)
class Name(Open):
    """Something that a file imports from elsewhere, by its full name."""

    dotted: str
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    def _said(self) -> tuple[str, str, int]:
        return self.dotted, self.file, self.line


@dataclass(repr=False)
class Made(Open):
    """An object of SDK v1.

    Attributes:
        kind: Its row of the table, or the attribute of another object that it is.
        fields: Arguments and attributes by name.
        file: The file that makes it.
        line: The line there.
    """

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    def _said(self) -> tuple[str, str, int]:
        return self.kind, self.file, self.line

    @property
    def calls(self) -> tuple[tuple[str, dict[Any, Any]], ...]:
        """The methods that were called on it, with their arguments by place or by name."""
        found = self.fields.get("_calls", ())
        return found if isinstance(found, tuple) else (("", {0: found}),)

    def get(self, *names: str) -> Any:
        """The first of some fields that is given; None where none is."""
        return next((self.fields[name] for name in names if self.fields.get(name) is not None), None)

    def part(self, *names: str, kind: str = "") -> Made:
        """The object in the first of some fields that is given; an empty one where none is known."""
        found = self.get(*names)
        return found if isinstance(found, Made) else Made(kind, {}, self.file, self.line)

    def open(self, name: str) -> str:
        """The placeholder for something of it that is not known."""
        return str(Unread(name, self.file, self.line))

    def given(self) -> dict[str, Any]:
        """Its arguments and attributes that have a value."""
        return {name: value for name, value in self.fields.items() if not name.startswith("_") and value is not None}

    @property
    def key(self) -> tuple[str, ...]:
        """The part that the object and its changed copies have in common."""
        return self.kind, str(self.fields.get("name")), self.file, str(self.line)

    def copy(self, **fields: Any) -> Made:
        """The same with some fields changed."""
        return Made(self.kind, {**self.fields, **fields}, self.file, self.line)


class Bindings(dict[str, Any]):
    """The names of a scope."""


@dataclass(eq=False)
class NameScope:
    """A place where names are bound.

    Attributes:
        names: They themselves.
        file: The file.
        outer: The scope around it.
    """

    names: Bindings
    file: str
    outer: NameScope | None = None

    def find(self, name: str) -> NameScope | None:
        """The scope that binds a name."""
        scope: NameScope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.outer
        return scope


@dataclass(eq=False, repr=False)
class Function(Open):
    """A function of the program's own, or one of its methods with the object it was taken from."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: NameScope
    of: Instance | None = None

    def _said(self) -> tuple[str, str, int]:
        return getattr(self.node, "name", "lambda"), self.scope.file, self.node.lineno


@dataclass(eq=False, repr=False)
class Class(Open):
    """A class of the program's own."""

    node: ast.ClassDef
    scope: NameScope

    def _said(self) -> tuple[str, str, int]:
        return self.node.name, self.scope.file, self.node.lineno


@dataclass(eq=False, repr=False)
class Instance(Open):
    """An object of such a class."""

    of: Class
    fields: dict[str, Any]

    def _said(self) -> tuple[str, str, int]:
        return self.of._said()  # noqa: SLF001 - its class stands for it


def known(value: Any) -> bool:
    """True for a plain value without a part that has to be filled in."""
    if isinstance(value, (list, tuple)):
        return all(map(known, value))
    if isinstance(value, dict):
        return all(map(known, (*value, *value.values())))
    if isinstance(value, str):
        return "<fill:" not in value
    return value is None or isinstance(value, (bool, int, float))
