"""Expressions of a program, followed without being run: plain values, paths, calls of its functions and of SDK v1."""

from __future__ import annotations

import ast
import math
import operator
import posixpath
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from amlstack.migrate.constructs import construct, constructs
from amlstack.migrate.objects import attribute, called
from amlstack.migrate.values import Bindings, Class, Function, Instance, Made, Name, NameScope, Unread, known

_OPERATORS: Final[dict[Any, Callable[..., Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Not: operator.not_, ast.USub: operator.neg,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, group: item in group, ast.NotIn: lambda item, group: item not in group,
}  # fmt: skip
_PLAIN: Final[dict[str, Callable[..., Any]]] = {
    each.__name__: each
    for each in (int, str, float, bool, len, list, dict, tuple, set, min, max, abs, round, sorted, sum, zip, enumerate)
}
_PATHS: Final[dict[str, Callable[..., Any]]] = {
    "os.path.join": posixpath.join, "os.path.dirname": posixpath.dirname, "os.path.basename": posixpath.basename,
    "os.path.abspath": posixpath.normpath, "os.path.realpath": posixpath.normpath,
    "os.path.normpath": posixpath.normpath, "os.path.normcase": str, "os.path.expanduser": str, "os.fspath": str,
    "os.getcwd": ".".strip, "pathlib.Path": PurePosixPath, "pathlib.PurePath": PurePosixPath,
    "pathlib.PurePosixPath": PurePosixPath, "pathlib.Path.cwd": PurePosixPath,
}  # fmt: skip
_SAME_PATH: Final = frozenset(("resolve", "absolute", "expanduser"))
_CHANGES: Final = frozenset(("append", "extend", "insert", "update", "setdefault", "pop", "remove", "clear"))
MORE: Final = "**"
"""Stands among the arguments of a call where others are handed on that are not known."""
_LONGEST: Final = 10_000
_STEPS: Final = 60_000
DEPTH: Final = 30
ROUNDS: Final = 64


class TooLongError(Exception):
    """A program takes more steps to follow than are given to one."""


class Expressions:
    """The expressions of one program. As in `ast.NodeVisitor`, the method for a kind of expression has its name.

    Attributes:
        made: The objects of v1, in order.
        foreign: What of v1 was called that the table does not know: name, file, line.
        assumed: The defaults that were taken for what the command line or the environment may say otherwise.
    """

    def __init__(self) -> None:
        self.made: list[Made] = []
        self.foreign: list[tuple[str, str, int]] = []
        self.assumed: dict[tuple[str, int], str] = {}
        self.depth = 0
        self.functions: list[Function] = []
        self.called: set[int] = set()
        self.touched: dict[int, tuple[Any, Any]] = {}
        self.file, self.line = "", 0
        self._steps = 0
        self._returned: list[list[Any]] = []

    def block(self, body: Sequence[ast.stmt], scope: NameScope) -> str:
        """Follow statements."""
        raise NotImplementedError

    def spend(self, steps: int) -> None:
        """Count steps; too many end the following."""
        self._steps += steps
        if self._steps > _STEPS:
            raise TooLongError

    def touch(self, held: Any) -> None:
        """Note the state before, to which the other way of a condition returns."""
        self.touched.setdefault(id(held), (held, held.copy()))

    def bind(self, target: ast.expr, value: Any, scope: NameScope) -> None:
        """Give a name, an attribute or an item its value; of several names each its part."""
        match target:
            case ast.Name():
                self.put(scope.names, target.id, value)
            case ast.Tuple() | ast.List():
                values = value if isinstance(value, (list, tuple)) and len(value) == len(target.elts) else None
                for place, each in enumerate(target.elts):
                    unknown = Unread(each, scope.file, target.lineno)
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

    def put(self, held: dict[Any, Any], key: Any, value: Any) -> None:
        """Set an item, an attribute or a name."""
        self.touch(held)
        held[key] = value

    def value(self, node: ast.expr, scope: NameScope) -> Any:
        """The value of an expression."""
        self.spend(1)
        self.file, self.line = scope.file, node.lineno
        reader = getattr(self, f"_{type(node).__name__.lower()}", None)
        try:
            found = NotImplemented if reader is None else reader(node, scope)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ZeroDivisionError, OverflowError):
            found = NotImplemented  # the program would raise, or does what is not followed
        if found is NotImplemented or (isinstance(found, (str, list, tuple, dict)) and len(found) > _LONGEST):
            return Unread(node, scope.file, node.lineno)
        return found

    def _constant(self, node: ast.Constant, _: NameScope) -> Any:
        return node.value if known(node.value) else NotImplemented

    def _joinedstr(self, node: ast.JoinedStr, scope: NameScope) -> str:
        return "".join(str(self.value(part, scope)) for part in node.values)

    def _formattedvalue(self, node: ast.FormattedValue, scope: NameScope) -> str:
        value = self.value(node.value, scope)
        form = str(self.value(node.format_spec, scope)) if node.format_spec else ""
        return format(value, form) if known(value) else str(value)

    def _list(self, node: ast.List | ast.Tuple | ast.Set, scope: NameScope) -> Any:
        found = [each for element in node.elts for each in self._elements(element, scope)]
        return tuple(found) if isinstance(node, ast.Tuple) else found

    _tuple = _set = _list

    def _lambda(self, node: ast.Lambda, scope: NameScope) -> Function:
        return Function(node, scope)

    def _namedexpr(self, node: ast.NamedExpr, scope: NameScope) -> Any:
        value = self.value(node.value, scope)
        self.bind(node.target, value, scope)
        return value

    def _await(self, node: ast.Await | ast.Starred, scope: NameScope) -> Any:
        return self.value(node.value, scope)

    _starred = _await

    def _name(self, node: ast.Name, scope: NameScope) -> Any:
        found = scope.find(node.id)
        if found is None:
            if node.id in constructs() and node.id[0].isupper():  # by `import *`, or a part of a whole
                return Name(f"azureml.{node.id}", scope.file, node.lineno)
            return Name(node.id, scope.file, node.lineno) if node.id in _PLAIN or node.id == "range" else NotImplemented
        return found.names[node.id]

    def _elements(self, node: ast.expr, scope: NameScope) -> list[Any]:
        value = self.value(node, scope)
        return [*value] if isinstance(node, ast.Starred) and isinstance(value, (list, tuple)) else [value]

    def _dict(self, node: ast.Dict, scope: NameScope) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            inner = self.value(value, scope)
            if key is not None:
                name = self.value(key, scope)
                found[name if known(name) else str(name)] = inner
            elif isinstance(inner, dict):
                found |= inner
        return found

    def _attribute(self, node: ast.Attribute, scope: NameScope) -> Any:
        owner = self.value(node.value, scope)
        if isinstance(owner, Name):
            return Name(f"{owner.dotted}.{node.attr}", scope.file, node.lineno)
        if isinstance(owner, Made):
            if owner.kind == "arguments" and node.attr in owner.fields:
                if known(owner.fields[node.attr]):
                    self.assumed[scope.file, node.lineno] = f"the default of `--{node.attr}`"
                return owner.fields[node.attr]
            return attribute(owner, node.attr, scope.file, node.lineno)
        if isinstance(owner, Instance) and node.attr in owner.fields:
            return owner.fields[node.attr]
        if isinstance(owner, (Instance, Class)):
            of, itself = (owner.of, owner) if isinstance(owner, Instance) else (owner, None)
            found = (Function(each, of.scope, itself) for each in methods(of) if each.name == node.attr)
            return next(found, NotImplemented)
        if isinstance(owner, PurePosixPath) and node.attr in ("parent", "name", "stem", "suffix"):
            return getattr(owner, node.attr)
        return NotImplemented

    def _subscript(self, node: ast.Subscript, scope: NameScope) -> Any:
        owner = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            ends = [each and self.value(each, scope) for each in (node.slice.lower, node.slice.upper, node.slice.step)]
            return owner[slice(*ends)] if known(owner) and known(ends) else NotImplemented
        key = self.value(node.slice, scope)
        if isinstance(owner, Made):
            return called(owner, "[]", [key], {}, (scope.file, node.lineno))
        return owner[key] if isinstance(owner, (str, list, tuple, dict)) and known(key) else NotImplemented

    def _binop(self, node: ast.BinOp, scope: NameScope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(left, PurePosixPath) and isinstance(node.op, ast.Div):
            return left / str(right)
        if isinstance(node.op, ast.Add) and isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            return [*left, *right]
        if isinstance(node.op, ast.Add) and (isinstance(left, str) or isinstance(right, str)):
            return str(left) + str(right)
        if isinstance(node.op, ast.Mod) and isinstance(left, str):
            return left % right
        small = all(isinstance(each, (int, float)) and abs(each) < 1e12 for each in (left, right))
        if isinstance(node.op, ast.Mult) and not small:
            return NotImplemented
        return self._operated(node.op, left, right)

    def _operated(self, op: ast.AST, *values: Any) -> Any:
        return _OPERATORS[type(op)](*values) if all(map(known, values)) else NotImplemented

    def _boolop(self, node: ast.BoolOp, scope: NameScope) -> Any:
        values = [self.value(each, scope) for each in node.values]
        for value in values[:-1]:
            if not known(value) and not isinstance(value, Made):
                return NotImplemented
            if bool(value) is isinstance(node.op, ast.Or):
                return value
        return values[-1]

    def _unaryop(self, node: ast.UnaryOp, scope: NameScope) -> Any:
        return self._operated(node.op, self.value(node.operand, scope))

    def _compare(self, node: ast.Compare, scope: NameScope) -> Any:
        [op], [other] = node.ops, node.comparators
        left, right = self.value(node.left, scope), self.value(other, scope)
        if isinstance(left, Made) and right is None:
            return isinstance(op, (ast.NotEq, ast.IsNot))
        return self._operated(op, left, right)

    def _ifexp(self, node: ast.IfExp, scope: NameScope) -> Any:
        test = self.value(node.test, scope)
        ways = [self.value(each, scope) for each in (node.body, node.orelse)]
        if known(test):
            return ways[0] if test else ways[1]
        return ways[0] if ways[0] == ways[1] else NotImplemented

    def _listcomp(self, node: Any, scope: NameScope) -> Any:
        [*rest, generator] = node.generators
        over = self.value(generator.iter, scope)
        if rest or not isinstance(over, (list, tuple, dict)) or len(over) > ROUNDS:
            return NotImplemented
        found: list[Any] = []
        for each in over:
            inner = NameScope(Bindings(), scope.file, scope)
            self.bind(generator.target, each, inner)
            tests = [self.value(test, inner) for test in generator.ifs]
            if not all(map(known, tests)):
                return NotImplemented
            if all(tests) and isinstance(node, ast.DictComp):
                found.append((self.value(node.key, inner), self.value(node.value, inner)))
            elif all(tests):
                found.append(self.value(node.elt, inner))
        return dict(found) if isinstance(node, ast.DictComp) else found

    _generatorexp = _dictcomp = _setcomp = _listcomp

    # --- calls

    def apply(self, function: Function, args: list[Any], words: dict[str, Any], *, called: bool = True) -> Any:
        """Follow a function of the program; what it returns. Of one that nothing calls no argument is known."""
        self.called.add(id(function.node))
        if self.depth >= DEPTH:
            return NotImplemented
        takes = function.node.args
        names = Bindings()
        scope = NameScope(names, function.scope.file, function.scope)
        ordered = [each.arg for each in (*takes.posonlyargs, *takes.args)]
        further = [each.arg for each in takes.kwonlyargs]
        defaults = dict(zip(reversed(ordered), reversed(takes.defaults), strict=False))
        defaults |= {name: default for name, default in zip(further, takes.kw_defaults, strict=True) if default}
        given = words | dict(zip(ordered, [function.of, *args] if function.of else args, strict=False))
        for name in (*ordered, *further):
            if name in given:
                names[name] = given[name]
            elif called and MORE not in words and name in defaults:
                names[name] = self.value(defaults[name], function.scope)
            else:
                names[name] = Unread(name, scope.file, function.node.lineno)
        if takes.kwarg:
            names[takes.kwarg.arg] = {key: value for key, value in words.items() if key not in names}
        if takes.vararg:
            names[takes.vararg.arg] = args[len(ordered) :]
        if isinstance(function.node, ast.Lambda):
            return self.value(function.node.body, scope)
        self._returned.append([])
        self.depth += 1
        try:
            self.block(function.node.body, scope)
        finally:
            returned = self._returned.pop()
            self.depth -= 1
        first = returned[0] if returned else None
        return first if all(each == first for each in returned) else NotImplemented

    def instance(self, of: Class, words: dict[str, Any], args: Sequence[Any] = (), *, called: bool = True) -> Instance:
        """Follow the making of an object."""
        self.called.add(id(of.node))
        made = Instance(of, {})
        for statement in of.node.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                if isinstance(target, ast.Name):
                    made.fields[target.id] = self.value(statement.value, of.scope)
        starts = [Function(each, of.scope, made) for each in methods(of) if each.name == "__init__"]
        made.fields |= {} if starts else words
        self.functions += (Function(each, of.scope, made) for each in methods(of) if each.name != "__init__")
        for each in starts:
            self.apply(each, [*args], words, called=called)
        return made

    def _call(self, node: ast.Call, scope: NameScope) -> Any:
        args = [each for argument in node.args for each in self._elements(argument, scope)]
        words: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            further = value if isinstance(value, dict) else {MORE: value}
            words |= {keyword.arg: value} if keyword.arg else further
        if any(isinstance(each, ast.Starred) for each in node.args) and not known(args):
            words[MORE] = Unread("arguments", scope.file, node.lineno)
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, scope)
            if not isinstance(owner, (Name, Instance, Class)) and getattr(owner, "kind", "") != "module":
                return self._method(owner, node.func.attr, args, words, (scope.file, node.lineno))
        function = self.value(node.func, scope)
        if isinstance(function, Function):
            return self.apply(function, args, words)
        if isinstance(function, Class):
            return self.instance(function, words, args)
        named = isinstance(function, Name)
        return self._named_call(function, args, words, (scope.file, node.lineno)) if named else NotImplemented

    def _named_call(self, name: Name, args: list[Any], words: dict[str, Any], place: tuple[str, int]) -> Any:
        dotted = name.dotted
        if dotted.startswith("azureml."):
            row = construct(dotted)
            if row is None:
                self.foreign.append((dotted, *place))
                return NotImplemented
            if row.takes[:1] == ("*values",):
                several = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
                fields: dict[str, Any] = {"values": several}
            else:
                more = {name: Unread(name, *place) for name in row.takes} if MORE in words else {}
                fields = {**more, **dict(zip(row.takes, args, strict=False)), **words}
            made = Made(row.returns or row.name, fields, *place)
            made.fields.setdefault("_row", row.name)
            self.made.append(made)
            return Made("Compute", {"name": made.get("name")}, *place) if made.kind == "Compute" else made
        if dotted in ("os.environ.get", "os.getenv"):
            args = [*args, words["default"]] if "default" in words else args
            if len(args) < 2 or not known(args[1]):
                return NotImplemented
            self.assumed[place] = f"the default of the variable `{args[0]!s}`"
            return args[1]
        if dotted.endswith("ArgumentParser"):
            return Made("parser", {}, *place)
        if dotted in _PATHS and all(isinstance(each, (str, PurePosixPath, Unread)) for each in args):
            return _PATHS[dotted](*map(str, args))
        if dotted == "range" and known(args) and len(range(*args)) <= ROUNDS:
            return [*range(*args)]
        if dotted.startswith("math.") and known(args):
            return getattr(math, dotted[5:])(*args)
        if dotted == "str" and len(args) == 1:
            return str(args[0])
        if dotted in _PLAIN and not words and (known(args) or dotted in ("list", "dict", "tuple", "enumerate", "zip")):
            found = _PLAIN[dotted](*args)
            return [*found] if dotted in ("enumerate", "zip", "set") else found
        return dict(words) if dotted == "dict" and not args else NotImplemented

    def _method(self, owner: Any, name: str, args: list[Any], words: dict[str, Any], place: tuple[str, int]) -> Any:
        if isinstance(owner, Made):
            if owner.kind == "parser" or name in ("parse_args", "parse_known_args"):
                return self._parser(owner, name, args, words, place)
            self.touch(owner.fields)
            return called(owner, name, args, words, place)
        if isinstance(owner, str):
            if name == "format":
                return owner.format(*args, **words)
            if name == "join" and args and isinstance(args[0], (list, tuple)):
                return owner.join(map(str, args[0]))
            plain = name in ("split", "strip", "lstrip", "rstrip", "replace", "lower", "upper", "splitlines", "title",
                             "startswith", "endswith", "rsplit", "capitalize")  # fmt: skip
            return getattr(owner, name)(*args) if plain and known(args) else NotImplemented
        if isinstance(owner, (list, dict)):
            if name in _CHANGES:
                self.touch(owner)
                return getattr(owner, name)(*args, **(words if name == "update" else {}))
            if name in ("copy", "get", "keys", "values", "items", "index", "count"):
                found = getattr(owner, name)(*args)
                return found if name in ("copy", "get", "index", "count") else [*found]
        if isinstance(owner, PurePosixPath):
            if name in ("joinpath", "with_suffix", "with_name"):
                return getattr(owner, name)(*map(str, args))
            return {"as_posix": str(owner)}.get(name, owner if name in _SAME_PATH else NotImplemented)
        return NotImplemented

    def _parser(self, owner: Made, name: str, args: list[Any], words: dict[str, Any], place: tuple[str, int]) -> Any:
        """`argparse`: an option is what its default says, as long as nobody gives another."""
        if name == "add_argument" and args:
            option = next((each for each in args if str(each).startswith("--")), args[0])
            flag = {"store_true": False, "store_false": True}.get(words.get("action", ""))
            default = words.get("default", Unread(str(option), *place) if flag is None else flag)
            if words.get("type") == Name("int") and isinstance(default, str) and default.isdigit():
                default = int(default)
            self.put(owner.fields, words.get("dest", str(option).lstrip("-").replace("-", "_")), default)
            return None
        if name in ("add_argument_group", "add_mutually_exclusive_group"):
            return owner
        made = Made("arguments", owner.fields, *place)
        return (made, []) if name == "parse_known_args" else made if name == "parse_args" else NotImplemented


def methods(of: Class) -> Iterable[ast.FunctionDef]:
    """The methods of a class."""
    return (each for each in of.node.body if isinstance(each, ast.FunctionDef))
