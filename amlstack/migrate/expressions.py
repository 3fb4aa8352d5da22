"""Expressions of a program, followed without being run: plain values, paths, calls of its functions and of SDK v1."""

from __future__ import annotations

import ast
import math
import operator
import posixpath
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from amlstack.migrate.constructs import construct, constructs
from amlstack.migrate.objects import attribute, called
from amlstack.migrate.values import Bindings, Class, Function, Instance, Made, Name, NameScope, Unread, known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_BINARY: Final = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_UNARY: Final[dict[Any, Any]] = {ast.Not: operator.not_, ast.USub: operator.neg}
_COMPARE: Final[dict[Any, Any]] = {
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


_READERS: Final = {
    ast.Constant: "_constant", ast.Name: "_named", ast.Attribute: "_attribute", ast.Call: "_call",
    ast.JoinedStr: "_joined", ast.FormattedValue: "_formatted", ast.Dict: "_dict", ast.Subscript: "_item",
    ast.BinOp: "_binary", ast.Lambda: "_lambda", ast.NamedExpr: "_walrus",
    **dict.fromkeys((ast.List, ast.Tuple, ast.Set), "_group"),
    **dict.fromkeys((ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp), "_logic"),
    **dict.fromkeys((ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp), "_comprehension"),
    **dict.fromkeys((ast.Await, ast.Starred), "_inner"),
}  # fmt: skip
"""The method for each kind of expression."""


class TooLongError(Exception):
    """A program takes more steps to follow than are given to one."""


class Expressions:
    """The expressions of one program.

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
        self._steps, self.file = 0, ""

    def apply(self, function: Function, args: list[Any], words: dict[str, Any], *, called: bool = True) -> Any:
        """Follow a function of the program; what it returns."""
        raise NotImplementedError

    def instance(self, of: Class, words: dict[str, Any], args: Sequence[Any] = (), *, called: bool = True) -> Instance:
        """Follow the making of an object."""
        raise NotImplementedError

    def spend(self, steps: int) -> None:
        """Count steps; too many end the following."""
        self._steps += steps
        if self._steps > _STEPS:
            raise TooLongError

    def touch(self, held: Any) -> None:
        """Note a list, a mapping or a scope that is about to change."""
        raise NotImplementedError

    def put(self, held: dict[Any, Any], key: Any, value: Any) -> None:
        """Set an item, an attribute or a name."""
        self.touch(held)
        held[key] = value

    def bind(self, target: ast.expr, value: Any, scope: NameScope) -> None:
        """Give a name, an attribute or an item its value."""
        raise NotImplementedError

    def value(self, node: ast.expr, scope: NameScope) -> Any:
        """The value of an expression."""
        self.spend(1)
        self.file = scope.file
        try:
            found = self._value(node, scope)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ZeroDivisionError, OverflowError):
            found = NotImplemented  # the program would raise, or does what is not followed
        if found is NotImplemented or (isinstance(found, (str, list, tuple, dict)) and len(found) > _LONGEST):
            return Unread(ast.unparse(node) if self.depth < DEPTH else "", scope.file, node.lineno)
        return found

    def _value(self, node: ast.expr, scope: NameScope) -> Any:
        reader = _READERS.get(type(node))
        return NotImplemented if reader is None else getattr(self, reader)(node, scope)

    def _constant(self, node: ast.Constant, _: NameScope) -> Any:
        return NotImplemented if node.value is ... else node.value

    def _joined(self, node: ast.JoinedStr, scope: NameScope) -> str:
        return "".join(_text(self.value(part, scope)) for part in node.values)

    def _formatted(self, node: ast.FormattedValue, scope: NameScope) -> str:
        value = self.value(node.value, scope)
        form = _text(self.value(node.format_spec, scope)) if node.format_spec else ""
        return format(value, form) if known(value) else _text(value)

    def _group(self, node: ast.List | ast.Tuple | ast.Set, scope: NameScope) -> Any:
        found = [each for element in node.elts for each in self._elements(element, scope)]
        return tuple(found) if isinstance(node, ast.Tuple) else found

    def _lambda(self, node: ast.Lambda, scope: NameScope) -> Function:
        return Function(node, scope)

    def _walrus(self, node: ast.NamedExpr, scope: NameScope) -> Any:
        value = self.value(node.value, scope)
        self.bind(node.target, value, scope)
        return value

    def _inner(self, node: ast.Await | ast.Starred, scope: NameScope) -> Any:
        return self.value(node.value, scope)

    def _named(self, node: ast.Name, scope: NameScope) -> Any:
        found = scope.find(node.id)
        if found is None:
            if node.id in constructs() and node.id[0].isupper():  # by `import *`, or a part of a whole
                return Name(f"azureml.{node.id}")
            return Name(node.id) if node.id in _PLAIN or node.id == "range" else NotImplemented
        return found.names[node.id]

    def _elements(self, node: ast.expr, scope: NameScope) -> list[Any]:
        value = self.value(node, scope)
        if isinstance(node, ast.Starred) and isinstance(value, (list, tuple)):
            return [*value]
        return [value]

    def _dict(self, node: ast.Dict, scope: NameScope) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            inner = self.value(value, scope)
            if key is not None:
                name = self.value(key, scope)
                found[name if known(name) else _text(name)] = inner
            elif isinstance(inner, dict):
                found |= inner
        return found

    def _attribute(self, node: ast.Attribute, scope: NameScope) -> Any:
        owner = self.value(node.value, scope)
        if isinstance(owner, Name):
            return Name(f"{owner.dotted}.{node.attr}")
        if isinstance(owner, Made):
            if owner.kind == "arguments" and node.attr in owner.fields:
                text = f"the default of `--{node.attr}`" if known(owner.fields[node.attr]) else ""
                if text:
                    self.assumed[scope.file, node.lineno] = text
                return owner.fields[node.attr]
            return attribute(owner, node.attr, scope.file, node.lineno)
        if isinstance(owner, Instance):
            if node.attr in owner.fields:
                return owner.fields[node.attr]
            method = next((each for each in methods(owner.of) if each.name == node.attr), None)
            return NotImplemented if method is None else Function(method, owner.of.scope, owner)
        if isinstance(owner, Class):
            return next(
                (Function(each, owner.scope) for each in methods(owner) if each.name == node.attr), NotImplemented
            )
        if isinstance(owner, PurePosixPath) and node.attr in ("parent", "name", "stem", "suffix"):
            return getattr(owner, node.attr)
        return NotImplemented

    def _item(self, node: ast.Subscript, scope: NameScope) -> Any:
        owner = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            ends = [each and self.value(each, scope) for each in (node.slice.lower, node.slice.upper, node.slice.step)]
            return owner[slice(*ends)] if known(owner) and known(ends) else NotImplemented
        key = self.value(node.slice, scope)
        if isinstance(owner, Made):
            return called(owner, "[]", [key], {}, (scope.file, node.lineno))
        return owner[key] if isinstance(owner, (str, list, tuple, dict)) and known(key) else NotImplemented

    def _binary(self, node: ast.BinOp, scope: NameScope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(left, PurePosixPath) and isinstance(node.op, ast.Div):
            return left / _text(right)
        if isinstance(node.op, ast.Add) and isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            return [*left, *right]
        if isinstance(node.op, ast.Add) and (isinstance(left, str) or isinstance(right, str)):
            return _text(left) + _text(right)
        if isinstance(node.op, ast.Mod) and isinstance(left, str):
            if isinstance(right, dict):
                return left % {name: _shown(value) for name, value in right.items()}
            return left % tuple(map(_shown, right if isinstance(right, tuple) else (right,)))
        if not (known(left) and known(right)) or type(node.op) not in _BINARY:
            return NotImplemented
        small = all(isinstance(each, (int, float)) and abs(each) < 1e12 for each in (left, right))
        if isinstance(node.op, ast.Mult) and not small:
            return NotImplemented
        return _BINARY[type(node.op)](left, right)

    def _logic(self, node: ast.expr, scope: NameScope) -> Any:
        match node:
            case ast.BoolOp():
                values = [self.value(each, scope) for each in node.values]
                for value in values[:-1]:
                    if not known(value) and not isinstance(value, Made):
                        return NotImplemented
                    if bool(value) is isinstance(node.op, ast.Or):
                        return value
                return values[-1]
            case ast.UnaryOp():
                value = self.value(node.operand, scope)
                if not known(value):
                    return NotImplemented
                return _UNARY[type(node.op)](value)
            case ast.Compare(ops=[op], comparators=[other]):
                left, right = self.value(node.left, scope), self.value(other, scope)
                if isinstance(left, Made) and right is None:
                    return isinstance(op, (ast.NotEq, ast.IsNot))
                return _COMPARE[type(op)](left, right) if known(left) and known(right) else NotImplemented
            case ast.IfExp():
                test = self.value(node.test, scope)
                ways = [self.value(each, scope) for each in (node.body, node.orelse)]
                if known(test):
                    return ways[0] if test else ways[1]
                return ways[0] if ways[0] == ways[1] else NotImplemented
        return NotImplemented

    def _comprehension(self, node: Any, scope: NameScope) -> Any:
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

    # --- calls

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
        if not isinstance(function, Name):
            return NotImplemented
        return self._named_call(function, args, words, (scope.file, node.lineno))

    def _named_call(self, name: Name, args: list[Any], words: dict[str, Any], place: tuple[str, int]) -> Any:
        dotted = name.dotted
        if dotted.startswith("azureml."):
            row = construct(dotted)
            if row is None:
                self.foreign.append((dotted, *place))
                return NotImplemented
            if row.takes[:1] == ("*values",):
                args = [args[0]] if len(args) == 1 and isinstance(args[0], (list, tuple)) else [args]
                fields = {"values": args[0]}
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
            self.assumed[place] = f"the default of the variable `{_text(args[0])}`"
            return args[1]
        if dotted.endswith("ArgumentParser"):
            return Made("parser", {}, *place)
        if dotted in _PATHS and all(isinstance(each, (str, PurePosixPath, Unread)) for each in args):
            return _PATHS[dotted](*map(_text, args))
        if dotted == "range" and known(args) and len(range(*args)) <= ROUNDS:
            return [*range(*args)]
        if dotted.startswith("math.") and known(args):
            return getattr(math, dotted[5:])(*args)
        if dotted == "str" and len(args) == 1:
            return _text(args[0])
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
                return owner.format(*map(_shown, args), **{key: _shown(value) for key, value in words.items()})
            if name == "join" and args and isinstance(args[0], (list, tuple)):
                return owner.join(map(_text, args[0]))
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
                return getattr(owner, name)(*map(_text, args))
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


def _text(value: Any) -> str:
    """A value as text; objects, whose text may be long, as a placeholder."""
    if isinstance(value, Made):
        return value.open(value.kind)
    return str(value) if known(value) or isinstance(value, (str, Unread, PurePosixPath)) else "<fill:object,program:0>"


def _shown(value: Any) -> Any:
    return str(value) if isinstance(value, (Unread, PurePosixPath)) else value
