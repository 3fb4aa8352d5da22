"""The arguments of a script, read from its tree.

Of argparse and transformers' HfArgumentParser the one parser that a script makes; of click, typer and fire the one
function that they call.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from amlstack.code_reading.arguments import MANY, Interface, Option
from amlstack.code_reading.code_files import ImportedNames

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_NO_VALUE: Final = frozenset(("store_true", "store_false", "store_const", "append_const", "count", "help", "version"))
_ADDED: Final = {"deepspeed.add_config_arguments": ("--deepspeed", "--deepscale")}
"""Functions that add options to a parser, by how these begin. https://github.com/deepspeedai/DeepSpeed"""


def interface_of(tree: ast.Module) -> Interface | None:
    """The arguments that a script reads; None where it reads none, or in a way that is not known."""
    if (fire_or_click := _decorated(tree)) is not None:
        return fire_or_click
    reader = _Parsers()
    reader.visit(tree)
    walked = [each for each in ast.walk(tree) if isinstance(each, ast.Name | ast.Attribute)]
    return reader.interface({each.id if isinstance(each, ast.Name) else each.attr for each in walked})


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _words(call: ast.Call) -> dict[str, ast.expr]:
    return {word.arg or "**": word.value for word in call.keywords}


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


class _Parsers(ImportedNames, ast.NodeVisitor):
    """Goes through a script that makes one parser, of argparse or transformers."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[ast.Call] = []
        self._adds: list[tuple[ast.Call, bool]] = []
        self._parses: list[tuple[ast.Call, bool, str]] = []
        self._parsers: set[str] = set()
        self._classes: dict[str, ast.ClassDef] = {}
        self._functions: set[str] = set()
        self._passed: list[ast.Call] = []
        self._depth = 0
        self._inside = ""
        self._loose = False
        self._open = False

    def _below(self, node: ast.AST) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    visit_For = visit_While = visit_Try = visit_IfExp = _below  # noqa: N815 - the visitor's names

    def visit_If(self, node: ast.If) -> None:
        # The other branch of a test of sys.argv is for a file in place of arguments.
        if re.search(r"__name__|sys\.argv", ast.unparse(node.test)):
            self.generic_visit(node)
        else:
            self._below(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._classes[node.name] = node
        self._open |= any("ArgumentParser" in (self.dotted(base) or "") for base in node.bases)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._functions.add(node.name)
        outer, self._inside = self._inside, node.name
        self.generic_visit(node)
        self._inside = outer

    def visit_Assign(self, node: ast.Assign) -> None:
        self._loose |= any("sys.argv" in ast.unparse(each) for each in node.targets)
        if self._makes(node.value):
            self._parsers |= {ast.unparse(target) for target in node.targets}
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._loose |= "sys.argv" in ast.unparse(node.target)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._loose |= "sys.argv" in ast.unparse(node)

    def _makes(self, node: ast.expr) -> bool:
        name = self.dotted(node.func) or "" if isinstance(node, ast.Call) else ""
        return name == "argparse.ArgumentParser" or name.endswith(".HfArgumentParser")

    def visit_Call(self, node: ast.Call) -> None:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if self._makes(node):
            self._made.append(node)
        elif method == "add_argument":
            self._adds.append((node, self._depth == 0))
        elif method in _READS_WORDS:
            self._parses.append((node, self._depth == 0, self._inside))
        elif method in {"add_subparsers", "add_argparse_args", "add_model_specific_args"}:
            self._open = True
        elif method in {"append", "insert", "extend", "remove", "pop"} and ast.unparse(node.func).startswith(
            "sys.argv"
        ):
            self._loose = True
        else:
            self._passed.append(node)
        self.generic_visit(node)

    def interface(self, used: Collection[str]) -> Interface | None:
        """The result; None where nothing can be said. Functions that are not among the used names do not run."""
        if len(self._made) != 1 or not self._parses or self._loose:
            return None
        made, words = self._made[0], _words(self._made[0])
        hf = "HfArgumentParser" in (self.dotted(made.func) or "")
        found = Interface(
            "HfArgumentParser" if hf else "argparse", abbreviated=not _is(words.get("allow_abbrev"), False)
        )
        if words.keys() & {"exit_on_error", "fromfile_prefix_chars", "prefix_chars", "**"}:
            return None
        found.open = self._open or "parents" in words
        for call, always, inside in self._parses:
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            given = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "args")]
            known = not given or _is(given[0], None) or ast.unparse(given[0]) == "sys.argv[1:]"
            if not known and not isinstance(given[0], ast.Name):
                return None
            found.sure &= known
            found.open |= "known" in method or "return_remaining_strings" in _words(call)
            found.sure &= always and (not inside or inside in used)
        if not _is(words.get("add_help"), False):
            found.add(("-h", "--help"), Option(0, 0))
        self._given_away(found)
        for call, always in self._adds:
            self._argument(found, call, always=always)
        if hf:
            self._dataclasses(found, made)
        return found

    def _given_away(self, found: Interface) -> None:
        """Another module that gets the parser may add to it."""
        for call in self._passed:
            name = self.dotted(call.func)
            if not any(ast.unparse(each) in self._parsers for each in (*call.args, *_words(call).values())):
                continue
            if name in _ADDED:
                found.prefixes = (*found.prefixes, *_ADDED[name])
            elif not (isinstance(call.func, ast.Name) and call.func.id in {*self._functions, "print", "isinstance"}):
                found.open = True

    def _argument(self, found: Interface, call: ast.Call, *, always: bool) -> None:
        names, words = [_text(each) for each in call.args], _words(call)
        if not names or None in names or "**" in words:
            found.open, found.most = True, MANY
            return
        least, most = _span(words.get("nargs"), _text(words.get("action")), words)
        spelt = [name for name in names if name is not None]
        if not spelt[0].startswith("-"):
            found.add_positional(least if always else 0, most)
            return
        if ast.unparse(words.get("action", ast.Constant(""))).endswith("BooleanOptionalAction"):
            spelt += [f"--no-{name[2:]}" for name in spelt if name.startswith("--")]
            least, most = 0, 0
        found.add(spelt, Option(least, most, always and _is(words.get("required"), True), call.lineno))

    def _dataclasses(self, found: Interface, made: ast.Call) -> None:
        given = [*made.args, *(word.value for word in made.keywords if word.arg == "dataclass_types")]
        listed = [each for one in given for each in (one.elts if isinstance(one, ast.Tuple | ast.List) else [one])]
        for each in listed:
            self._fields(found, each)

    def _fields(self, found: Interface, name: ast.expr) -> None:
        one = self._classes.get(name.id) if isinstance(name, ast.Name) else None
        if one is None:
            found.open = True
            return
        for base in one.bases:
            self._fields(found, base)
        for node in one.body:
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            kind = ast.unparse(node.annotation)
            if kind.startswith(("ClassVar", "typing.ClassVar")):
                continue
            made = _words(node.value) if isinstance(node.value, ast.Call) else {}
            plain_field = isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith("field")
            required = node.value is None or (
                plain_field and not made.keys() & {"default", "default_factory", "init", "**"}
            )
            names = [f"--{node.target.id}", *(each for each in (_text(made.get("aliases")),) if each)]
            if "bool" in kind:
                names.append(f"--no_{node.target.id}")
            many = re.search(r"\b[Ll]ist\b|Dict|dict|Sequence", kind) is not None
            least = 0 if "bool" in kind else 1
            found.add(names, Option(least, MANY if many else 1, required and "bool" not in kind, node.lineno))


_READS_WORDS: Final = frozenset(
    ("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args")
) | {"parse_args_into_dataclasses"}


def _span(nargs: ast.expr | None, action: str | None, words: dict[str, ast.expr]) -> tuple[int, int]:
    """The least and the most words of an argument."""
    if action in _NO_VALUE:
        return 0, 0
    if "action" in words and action is None:
        return 0, MANY
    if nargs is None or _is(nargs, None):
        return 1, 1
    value = nargs.value if isinstance(nargs, ast.Constant) else None
    if isinstance(value, int):
        return value, value
    return {"?": (0, 1), "+": (1, MANY)}.get(str(value), (0, MANY))


def _decorated(tree: ast.Module) -> Interface | None:
    """The arguments of the one function that click, typer or fire calls."""
    names = ImportedNames()
    names.visit(tree)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    apps = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and names.dotted(node.value.func) == "typer.Typer"
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: list[Interface] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and names.dotted(node.func) in {"typer.run", "fire.Fire"}:
            called = functions.get(node.args[0].id) if node.args and isinstance(node.args[0], ast.Name) else None
            if called is None or len(node.args) + len(node.keywords) > 1:
                return None
            found.append(_of_fire(called) if names.dotted(node.func) == "fire.Fire" else _of_typer(called, names))
    for function in functions.values():
        for one in function.decorator_list:
            target = one.func if isinstance(one, ast.Call) else one
            if names.dotted(target) in {"click.command", "rich_click.command"}:
                found.append(_of_click(function, names))
            elif names.dotted(target) in {"click.group", "rich_click.group"}:
                return None
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in apps:
                if target.attr != "command":
                    return None
                found.append(_of_typer(function, names))
    return found[0] if len(found) == 1 else None


def _of_click(function: ast.FunctionDef, names: ImportedNames) -> Interface:
    found = Interface("click")
    found.add(("--help",), Option(0, 0))
    for one in reversed(function.decorator_list):
        name = (names.dotted(one.func) or "" if isinstance(one, ast.Call) else "").rpartition(".")[2]
        words = _words(one) if isinstance(one, ast.Call) else {}
        spelt = [text for each in (one.args if isinstance(one, ast.Call) else ()) if (text := _text(each)) is not None]
        if name == "command":
            found.open |= bool(words.keys() - {"name", "help", "short_help", "epilog"})
            break
        if name == "option" and spelt and "**" not in words:
            options = [each for text in spelt for each in re.split(r"\s*/\s*", text) if each.startswith("-")]
            flag = bool("/" in "".join(spelt) or words.keys() & {"is_flag", "count", "flag_value"})
            least, most = (
                (0, 0 if not _is(words.get("is_flag"), False) else 1) if flag else _span(words.get("nargs"), None, {})
            )
            free = bool(words.keys() & {"default", "envvar", "prompt"})
            found.add(options, Option(least, most, _is(words.get("required"), True) and not free, one.lineno))
        elif name == "argument" and "**" not in words:
            least, most = _span(words.get("nargs"), None, {})
            free = bool(words.keys() & {"default", "envvar"}) or _is(words.get("required"), False)
            found.add_positional(0 if free else least, most)
        elif name not in {"pass_context", "pass_obj"} and not (isinstance(one, ast.Attribute) and "pass_" in one.attr):
            found.open = True
    return found


def _parameters(function: ast.FunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """The parameters that may be named, with their defaults."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    yield from zip(plain, [*[None] * (len(plain) - len(given.defaults)), *given.defaults], strict=True)
    yield from zip(given.kwonlyargs, given.kw_defaults, strict=True)


def _of_typer(function: ast.FunctionDef, names: ImportedNames) -> Interface:
    found = Interface("typer", open=function.args.kwarg is not None or function.args.vararg is not None)
    found.add(("--help", "--install-completion", "--show-completion"), Option(0, 1))
    for parameter, default in _parameters(function):
        kind = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
        if kind.endswith("Context"):
            continue
        inside = [*ast.walk(parameter.annotation or ast.Constant(None)), *([default] if default is not None else [])]
        info = next(
            (
                each
                for each in inside
                if isinstance(each, ast.Call) and (names.dotted(each.func) or "").startswith("typer.")
            ),
            None,
        )
        words, role = (_words(info), names.dotted(info.func)) if info is not None else ({}, "")
        value = (
            default
            if info is not default
            else words.get("default", info.args[0] if info is not None and info.args else None)
        )
        required = (value is None or _is(value, ...)) and "envvar" not in words
        many = re.search(r"\b([Ll]ist|[Tt]uple|Sequence)\b", kind) is not None
        if role == "typer.Argument" or (not role and value is None):
            found.add_positional(int(required), MANY if many else 1)
            continue
        spelt = [
            text for each in (info.args if info is not None else ()) if (text := _text(each) or "").startswith("-")
        ]
        name = f"--{parameter.arg.replace('_', '-')}"
        options = [each for text in spelt for each in text.split("/")] or [
            name,
            *([f"--no-{name[2:]}"] if "bool" in kind else []),
        ]
        tuples = "uple" in kind
        least, most = (0, 0) if "bool" in kind else (0, MANY) if tuples else (1, 1)
        found.add(options, Option(least, most, required, parameter.lineno))
    return found


def _of_fire(function: ast.FunctionDef) -> Interface:
    returns = any(isinstance(node, ast.Return | ast.Yield) and node.value is not None for node in ast.walk(function))
    # What a function returns may take the words that are left.
    found = Interface("fire", open=function.args.kwarg is not None or returns, by_place=True)
    found.add(("--help", "-h"), Option(0, 0))
    for parameter, default in _parameters(function):
        found.add((f"--{parameter.arg}",), Option(0, 1, default is None, parameter.lineno))
        found.add_positional(0, 1)
    found.add_positional(0, MANY if function.args.vararg is not None else 0)
    return found
