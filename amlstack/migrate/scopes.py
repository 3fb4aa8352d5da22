"""Programs followed without being run: names get values, objects of SDK v1 are noted as they are made.

Both ways of a condition are followed where it is not known, and what they leave differently is not known after it.
Functions of the program are followed with the values they are called with; modules of its folder are read, too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from amlstack.code_reading.code_files import modules, text_of, tree_of
from amlstack.migrate.constructs import constructs
from amlstack.migrate.expressions import ROUNDS, Expressions, TooLongError
from amlstack.migrate.values import Bindings, Class, Function, Made, Name, NameScope, Unread, known

_ON: Final = ""


class Shared(NamedTuple):
    """The modules of folders, as their programs share them.

    Attributes:
        places: The file of each name, by the folder and the folder of the file that imports it.
        names: The names of modules without v1.
    """

    places: dict[tuple[str, str, str], Path | None]
    names: dict[Path, Bindings]


class Followed(Expressions):
    """One program as it is followed."""

    def __init__(self, folder: Path, shared: Shared | None = None) -> None:
        self.folder = folder
        super().__init__()
        self._modules: dict[Path, Bindings] = {}
        self._shared = shared or Shared({}, {})
        self._classes: list[Class] = []

    def follow(self, parts: Iterable[tuple[str, ast.Module]], path: Path) -> None:
        """Follow the parts of a program (a file, or the cells of a notebook), then functions that nothing called."""
        names = Bindings({"__name__": "__main__", "__file__": str(path)})
        try:
            for label, tree in parts:
                self.block(tree.body, NameScope(names, label))
            for of in self._classes:
                if id(of.node) not in self.called:
                    self.instance(of, {}, called=False)
            for function in self.functions:
                if id(function.node) not in self.called:
                    self.apply(function, [], {}, called=False)
        except (TooLongError, RecursionError):
            self.foreign.append(("a program that takes long to follow: its rest", path.name, 0))

    # --- statements: each gives `_ON`, or the word by which it left its block

    def block(self, body: Sequence[ast.stmt], scope: NameScope) -> str:
        """Follow statements; `_ON`, or the word by which one left them."""
        for statement in body:
            if left := self._statement(statement, scope):
                return left
        return _ON

    def _statement(self, node: ast.stmt, scope: NameScope) -> str:
        match node:
            case ast.Assign():
                value = self.value(node.value, scope)
                for target in node.targets:
                    self.bind(target, value, scope)
            case ast.AnnAssign(value=ast.expr() as expression):
                self.bind(node.target, self.value(expression, scope), scope)
            case ast.AugAssign():
                whole = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
                self.bind(node.target, self.value(whole, scope), scope)
            case ast.Expr():
                self.value(node.value, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.functions.append(Function(node, scope))
                self.put(scope.names, node.name, self.functions[-1])
            case ast.ClassDef():
                self._classes.append(Class(node, scope))
                self.put(scope.names, node.name, self._classes[-1])
            case ast.Import() | ast.ImportFrom():
                self._import(node, scope)
            case ast.Return():
                value = None if node.value is None else self.value(node.value, scope)
                if self._returned:
                    self._returned[-1].append(value)
                return "return"
            case ast.Raise() | ast.Break() | ast.Continue():
                return type(node).__name__
            case _:
                return self._compound(node, scope)
        return _ON

    def _compound(self, node: ast.stmt, scope: NameScope) -> str:
        match node:
            case ast.If():
                test = self.value(node.test, scope)
                if known(test):
                    return self.block(node.body if test else node.orelse, scope)
                return self._fork(node, scope, node.body, node.orelse)
            case ast.Try() | ast.TryStar():
                ways = [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)]
                left = self._fork(node, scope, *ways)
                return self.block(node.finalbody, scope) or left
            case ast.For() | ast.AsyncFor():
                return self._loop(node, scope)
            case ast.While():
                self._fork(node, scope, node.body, [])
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    value = self.value(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, value, scope)
                return self.block(node.body, scope)
            case ast.Match():
                self._fork(node, scope, *(case.body for case in node.cases), [])
        return _ON

    def _loop(self, node: ast.For | ast.AsyncFor, scope: NameScope) -> str:
        over = self.value(node.iter, scope)
        if isinstance(over, (list, tuple, dict, set)) and len(over) <= ROUNDS:
            for each in [*over]:
                self.bind(node.target, each, scope)
                left = self.block(node.body, scope)
                if left == "Break":
                    return _ON
                if left not in (_ON, "Continue"):
                    return left
            return self.block(node.orelse, scope)
        self.bind(node.target, Unread(node.target, scope.file, node.lineno), scope)
        self._fork(node, scope, node.body, [])
        return _ON

    def _fork(self, node: ast.stmt, scope: NameScope, *ways: Sequence[ast.stmt]) -> str:
        """Follow each way from the same state on; what they leave differently is not known after it."""
        outer, states, lefts = self.touched, [], []
        for way in ways:
            self.touched = {}
            left = self.block(way, scope)
            after = {key: (held, held.copy()) for key, (held, _) in self.touched.items()}
            for held, before in self.touched.values():
                _restore(held, before)
            lefts.append(left)
            if not left:
                states.append(after)
        self.touched = outer
        for key, held in {key: held for state in states for key, (held, _) in state.items()}.items():
            self.touch(held)
            self.spend(len(held))
            now = [state[key][1] if key in state else held.copy() for state in states]
            _restore(held, _merged(now, lambda name: Unread(str(name), self.file, node.lineno)))
        return _ON if states else lefts[0]

    def _import(self, node: ast.Import | ast.ImportFrom, scope: NameScope) -> None:
        base = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        place = scope.file, node.lineno
        for alias in node.names:
            if isinstance(node, ast.Import):
                top = alias.name.partition(".")[0]
                value = self._module(alias.name, scope) or Name(alias.name if alias.asname else top, *place)
                self.put(scope.names, alias.asname or top, value)
                continue
            module = self._module(base, scope) or self._module(f"{base.rstrip('.')}.{alias.name}", scope)
            if alias.name == "*":
                rows = (row for row in constructs() if row.isidentifier() and base.startswith("azureml"))
                names = module.fields if module else {row: Name(f"{base}.{row}", *place) for row in rows}
                for imported, value in names.items():
                    if not imported.startswith("__"):
                        self.put(scope.names, imported, value)
            else:
                found = module.fields.get(alias.name) if module else None
                foreign = Name(f"{base}.{alias.name}" if base else alias.name, *place)
                self.put(scope.names, alias.asname or alias.name, foreign if found is None else found)

    def _module(self, name: str, scope: NameScope) -> Made | None:
        """A module of the folder, followed."""
        if name.startswith("azureml") or len(self._modules) > ROUNDS:
            return None
        own = scope.find("__file__")
        place = own.names["__file__"] if own else None
        importing = place if isinstance(place, str) else str(self.folder)
        key = str(self.folder), importing.rpartition("/")[0], name
        if key not in self._shared.places:
            last, files = name.rpartition(".")[2], modules(self.folder, Path(importing), name)
            found = (each for each in files if last in (each.stem, each.parent.name))
            self._shared.places[key] = next(found, None)
        path = self._shared.places[key]
        if path is None:
            return None
        if path not in self._modules:
            self._modules[path] = self._shared.names.get(path) or self._followed(path, name)
        return Made("module", self._modules[path])

    def _followed(self, path: Path, name: str) -> Bindings:
        """The names of a module. Those of one without v1 are the same for all programs that import it."""
        names = self._modules[path] = Bindings({"__name__": name, "__file__": str(path)})
        text = text_of(path) or ""
        if (tree := tree_of(text)) is None:
            return names
        if "azureml" not in text:
            self._shared.names[path] = names
        outer, before, functions, classes = self.touched, len(self.made), self.functions, self._classes
        self.touched, self.functions, self._classes = {}, [], []
        try:
            self.block(tree.body, NameScope(names, path.relative_to(self.folder).as_posix()))
        finally:
            self.touched, self.functions, self._classes = outer, functions, classes
        for each in self.made[before:]:
            each.fields["_elsewhere"] = True
        return names


def _restore(held: Any, state: Any) -> None:
    held.clear()
    (held.extend if isinstance(held, list) else held.update)(state)


def _merged(states: list[Any], different: Callable[[Any], Unread]) -> Any:
    """One state of several: what differs is not known; a name that only some ways bind is what they bind."""
    first = states[0]
    if all(state == first for state in states):
        return first
    if isinstance(first, list):
        return [*first[: min(map(len, states))], different("further")]
    merged = {}
    for key in dict.fromkeys(key for state in states for key in state):
        values = [state[key] for state in states if key in state]
        some = len(values) < len(states) and not isinstance(first, Bindings)
        merged[key] = different(key) if some or any(value != values[0] for value in values) else values[0]
    return merged
