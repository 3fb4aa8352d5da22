"""Programs followed without being run: names get values, objects of SDK v1 are noted as they are made.

Both ways of a condition are followed where it is not known, and what they leave differently is not known after it.
Functions of the program are followed with the values they are called with; modules of its folder are read, too.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.code_reading.code_files import modules, text_of, tree_of
from amlstack.migrate.constructs import constructs
from amlstack.migrate.expressions import DEPTH, MORE, ROUNDS, Expressions, TooLongError, methods
from amlstack.migrate.values import Bindings, Class, Function, Instance, Made, Name, NameScope, Unread, known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_ON: Final = ""


class Followed(Expressions):
    """One program as it is followed."""

    def __init__(self, folder: Path, shared: dict[Path, Bindings] | None = None) -> None:
        self.folder = folder
        super().__init__()
        self._modules: dict[Path, Bindings] = {}
        self._shared = {} if shared is None else shared
        self._called: set[int] = set()
        self._functions: list[Function] = []
        self._classes: list[Class] = []
        self._touched: dict[int, tuple[Any, Any]] = {}
        self._returned: list[list[Any]] = []

    def follow(self, parts: Iterable[tuple[str, ast.Module]], path: Path) -> None:
        """Follow the parts of a program (a file, or the cells of a notebook), then functions that nothing called."""
        names = Bindings({"__name__": "__main__", "__file__": str(path)})
        try:
            for label, tree in parts:
                self._block(tree.body, NameScope(names, label))
            for of in self._classes:
                if id(of.node) not in self._called:
                    self.instance(of, {}, called=False)
            for function in self._functions:
                if id(function.node) not in self._called:
                    self.apply(function, [], {}, called=False)
        except (TooLongError, RecursionError):
            self.foreign.append(("a program that takes long to follow: its rest", path.name, 0))

    # --- statements: each gives `_ON`, or the word by which it left its block

    def _block(self, body: Sequence[ast.stmt], scope: NameScope) -> str:
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
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._define(node, scope)
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

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: NameScope) -> None:
        if isinstance(node, ast.ClassDef):
            self._classes.append(Class(node, scope))
        else:
            self._functions.append(Function(node, scope))
        self.put(scope.names, node.name, (self._classes if isinstance(node, ast.ClassDef) else self._functions)[-1])

    def _compound(self, node: ast.stmt, scope: NameScope) -> str:
        match node:
            case ast.If():
                test = self.value(node.test, scope)
                if known(test):
                    return self._block(node.body if test else node.orelse, scope)
                return self._fork(node, *(lambda way=way: self._block(way, scope) for way in (node.body, node.orelse)))
            case ast.Try() | ast.TryStar():
                ways = [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)]
                left = self._fork(node, *(lambda way=way: self._block(way, scope) for way in ways))
                return self._block(node.finalbody, scope) or left
            case ast.For() | ast.AsyncFor():
                return self._loop(node, scope)
            case ast.While():
                self._fork(node, lambda: self._block(node.body, scope), lambda: _ON)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    value = self.value(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, value, scope)
                return self._block(node.body, scope)
            case ast.Match():
                self._fork(node, *(lambda case=case: self._block(case.body, scope) for case in node.cases), lambda: _ON)
        return _ON

    def _loop(self, node: ast.For | ast.AsyncFor, scope: NameScope) -> str:
        over = self.value(node.iter, scope)
        if isinstance(over, (list, tuple, dict, set)) and len(over) <= ROUNDS:
            for each in [*over]:
                self.bind(node.target, each, scope)
                left = self._block(node.body, scope)
                if left == "Break":
                    return _ON
                if left not in (_ON, "Continue"):
                    return left
            return self._block(node.orelse, scope)
        self.bind(node.target, Unread(ast.unparse(node.target), scope.file, node.lineno), scope)
        self._fork(node, lambda: self._block(node.body, scope), lambda: _ON)
        return _ON

    def _fork(self, node: ast.stmt, *ways: Callable[[], str]) -> str:
        """Follow each way from the same state on; what they leave differently is not known after it."""
        outer, states, lefts = self._touched, [], []
        for way in ways:
            self._touched = {}
            left = way()
            after = {key: (held, held.copy()) for key, (held, _) in self._touched.items()}
            for held, before in self._touched.values():
                _restore(held, before)
            lefts.append(left)
            if not left:
                states.append(after)
        self._touched = outer
        for key, held in {key: held for state in states for key, (held, _) in state.items()}.items():
            self.touch(held)
            self.spend(len(held))
            now = [state[key][1] if key in state else held.copy() for state in states]
            _restore(held, _merged(now, lambda name: Unread(str(name), self.file, node.lineno)))
        return _ON if states else lefts[0]

    def touch(self, held: Any) -> None:
        """Note the state before, to which the other way of a condition returns."""
        self._touched.setdefault(id(held), (held, held.copy()))

    def bind(self, target: ast.expr, value: Any, scope: NameScope) -> None:
        """Give a name, an attribute or an item its value; of several names each its part."""
        match target:
            case ast.Name():
                self.put(scope.names, target.id, value)
            case ast.Tuple() | ast.List():
                values = value if isinstance(value, (list, tuple)) and len(value) == len(target.elts) else None
                for place, each in enumerate(target.elts):
                    unknown = Unread(ast.unparse(each), scope.file, target.lineno)
                    self.bind(each, values[place] if values else unknown, scope)
            case ast.Attribute():
                owner = self.value(target.value, scope)
                if isinstance(owner, (Made, Instance)):
                    self.put(owner.fields, target.attr, value)
            case ast.Subscript():
                owner, key = self.value(target.value, scope), self.value(target.slice, scope)
                fields = owner.fields if isinstance(owner, Made) else owner
                if isinstance(fields, dict) and isinstance(key, (str, int)):
                    self.put(fields, key, value)
                elif isinstance(fields, list) and isinstance(key, int) and -len(fields) <= key < len(fields):
                    self.put(fields, key, value)  # type: ignore[arg-type]

    def _import(self, node: ast.Import | ast.ImportFrom, scope: NameScope) -> None:
        base = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if isinstance(node, ast.Import):
                top = alias.name.partition(".")[0]
                value = self._module(alias.name, scope) or Name(alias.name if alias.asname else top)
                self.put(scope.names, alias.asname or top, value)
                continue
            module = self._module(base, scope) or self._module(f"{base.rstrip('.')}.{alias.name}", scope)
            if alias.name == "*" and base.startswith("azureml"):
                for row in constructs():
                    if row.isidentifier():
                        self.put(scope.names, row, Name(f"{base}.{row}"))
            elif alias.name == "*":
                for imported, value in (module.fields if module else {}).items():
                    if not imported.startswith("__"):
                        self.put(scope.names, imported, value)
            else:
                found = module.fields.get(alias.name) if module else None
                foreign = Name(f"{base}.{alias.name}" if base else alias.name)
                self.put(scope.names, alias.asname or alias.name, foreign if found is None else found)

    def _module(self, name: str, scope: NameScope) -> Made | None:
        """A module of the folder, followed."""
        if name.startswith("azureml") or len(self._modules) > ROUNDS:
            return None
        own = scope.find("__file__")
        place = own.names["__file__"] if own else None
        importing = Path(place) if isinstance(place, str) else self.folder
        last = name.rpartition(".")[2]
        path = next(
            (each for each in modules(self.folder, importing, name) if last in (each.stem, each.parent.name)), None
        )
        if path is None:
            return None
        if path not in self._modules:
            self._modules[path] = self._shared.get(path) or self._followed(path, name)
        return Made("module", self._modules[path])

    def _followed(self, path: Path, name: str) -> Bindings:
        """The names of a module. Those of one without v1 are the same for all programs that import it."""
        names = self._modules[path] = Bindings({"__name__": name, "__file__": str(path)})
        text = text_of(path) or ""
        if (tree := tree_of(text)) is None:
            return names
        if "azureml" not in text:
            self._shared[path] = names
        outer, before, functions, classes = self._touched, len(self.made), self._functions, self._classes
        self._touched, self._functions, self._classes = {}, [], []
        try:
            self._block(tree.body, NameScope(names, path.relative_to(self.folder).as_posix()))
        finally:
            self._touched, self._functions, self._classes = outer, functions, classes
        for each in self.made[before:]:
            each.fields["_elsewhere"] = True
        return names

    def apply(self, function: Function, args: list[Any], words: dict[str, Any], *, called: bool = True) -> Any:
        """Follow a function of the program; what it returns. Of one that nothing calls no argument is known."""
        self._called.add(id(function.node))
        if self.depth >= DEPTH:
            return NotImplemented
        takes = function.node.args
        names = Bindings()
        positional = [*takes.posonlyargs, *takes.args]
        scope = NameScope(names, function.scope.file, function.scope)
        defaults = dict(zip([each.arg for each in positional][::-1], takes.defaults[::-1], strict=False))
        defaults |= {
            each.arg: default for each, default in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if default
        }
        given = dict(
            zip((each.arg for each in positional), [function.of, *args] if function.of else args, strict=False)
        )
        for each in (*positional, *takes.kwonlyargs):
            if each.arg in given or each.arg in words:
                names[each.arg] = given.get(each.arg, words.get(each.arg))
            elif called and MORE not in words and each.arg in defaults:
                names[each.arg] = self.value(defaults[each.arg], function.scope)
            else:
                names[each.arg] = Unread(each.arg, scope.file, function.node.lineno)
        if takes.kwarg:
            names[takes.kwarg.arg] = {key: value for key, value in words.items() if key not in names}
        if takes.vararg:
            names[takes.vararg.arg] = args[len(positional) :]
        if isinstance(function.node, ast.Lambda):
            return self.value(function.node.body, scope)
        self._returned.append([])
        self.depth += 1
        try:
            self._block(function.node.body, scope)
        finally:
            returned = self._returned.pop()
            self.depth -= 1
        first = returned[0] if returned else None
        return first if all(each == first for each in returned) else NotImplemented

    def instance(self, of: Class, words: dict[str, Any], args: Sequence[Any] = (), *, called: bool = True) -> Instance:
        """Follow the making of an object."""
        self._called.add(id(of.node))
        made = Instance(of, {})
        for statement in of.node.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                if isinstance(target, ast.Name):
                    made.fields[target.id] = self.value(statement.value, of.scope)
        made.fields |= words if not any(each.name == "__init__" for each in methods(of)) else {}
        self._functions += (Function(each, of.scope, made) for each in methods(of) if each.name != "__init__")
        for each in methods(of):
            if each.name == "__init__":
                self.apply(Function(each, of.scope, made), [*args], words, called=called)
        return made


def _restore(held: Any, state: Any) -> None:
    if isinstance(held, list):
        held[:] = state
    else:
        held.clear()
        held.update(state)


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
