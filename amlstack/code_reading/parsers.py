"""The arguments of a script, read from its tree.

Of argparse and transformers' HfArgumentParser the one parser that a script makes; of click, typer and fire the one
function that they call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from amlstack.code_reading.code_files import ImportedNames

MANY: Final = 1 << 20
"""Words without an end."""
_EXPANDS: Final = re.compile(r"BOUND|[$*?`\[{~]")
"""Words of a command that may be none or several when it runs."""
_NUMBER: Final = re.compile(r"-\d+(\.\d*)?(e[-+]?\d+)?|-\.\d+", re.IGNORECASE)


class Option(NamedTuple):
    """One option: the least and the most words that follow it, and whether the script ends without it."""

    least: int = 1
    most: int = 1
    required: bool = False
    line: int = 0


@dataclass(slots=True)
class Interface:
    """The arguments of one script.

    Attributes:
        reads: The library that reads them, as people call it.
        options: By each spelling.
        groups: Spellings of one and the same option.
        least: Positional arguments that it must get.
        most: Positional arguments that it may get.
        open: It may take further options.
        prefixes: How further options begin.
        abbreviated: An option may be cut short.
        by_place: What options name may stand without them, too.
        sure: The arguments are read whenever the script runs.
    """

    reads: str
    options: dict[str, Option] = field(default_factory=dict)
    groups: list[tuple[str, ...]] = field(default_factory=list)
    least: int = 0
    most: int = 0
    open: bool = False
    prefixes: tuple[str, ...] = ()
    abbreviated: bool = False
    by_place: bool = False
    sure: bool = True

    def add(self, names: Sequence[str], option: Option) -> None:
        """Take an option over."""
        self.groups.append(tuple(names))
        self.options |= dict.fromkeys(names, option)

    def add_positional(self, least: int, most: int) -> None:
        """Take a positional argument over."""
        self.least, self.most = self.least + least, self.most + most

    def named(self, word: str) -> str | None:
        """The option that a word names; None for none that is known."""
        name = word.partition("=")[0]
        if name in self.options:
            return name
        if self.reads in {"HfArgumentParser", "fire"}:
            plain = f"--{name.lstrip('-').replace('-', '_')}"
            if plain in self.options:
                return plain
            if self.reads == "fire" and (plain.startswith("--no") or len(plain) == len("--x")):
                return next(
                    (each for each in self.options if each in {f"--{plain[4:]}", name} or each[:3] == plain), None
                )
        if name.startswith("--"):
            return next((each for each in self.options if each.startswith(name)), None) if self.abbreviated else None
        return name[:2] if name[:2] in self.options else None  # -n4, and flags together


class Fault(NamedTuple):
    """One thing that a script would refuse.

    Attributes:
        kind: ``unknown``, ``missing``, ``value`` (an option without its value) or ``extra`` (a word too many).
        word: The word of the command, or the option that is missing.
        line: The line of the script that requires it; 0 for none.
    """

    kind: str
    word: str
    line: int = 0


def faults(interface: Interface, words: Sequence[str]) -> Iterator[Fault]:
    """The faults of the words that follow a script; BOUND stands for a binding."""
    if interface.reads == "HfArgumentParser" and len(words) == 1 and not words[0].startswith("-"):
        return  # a file of JSON or YAML in place of all arguments
    waiting, given, loose, opaque, before = list(words), set[str](), list[str](), False, ""
    vague = interface.open
    while waiting:
        word = waiting.pop(0)
        stem, equals, _ = word.partition("=")
        if not _is_option(word):
            opaque |= word == "--" or _EXPANDS.search(word) is not None
            loose.append(f"{before} {word}".strip())
        elif (name := interface.named(word)) is not None:
            option, joined = interface.options[name], bool(equals or (name[:2] != "--" and len(stem) > len(name)))
            given.add(name)
            taken, before = int(joined), name if option.most == 0 else ""
            while taken < option.most and not joined and waiting and not _is_option(waiting[0]):
                opaque |= _EXPANDS.search(waiting.pop(0)) is not None and option.most > 1
                taken += 1
            if taken < option.least and not opaque:
                yield Fault("value", name, option.line)
        else:
            vague = True
            opaque |= _EXPANDS.search(stem) is not None
            if not (interface.open or opaque or stem.startswith(interface.prefixes)):
                yield Fault("unknown", stem)
            while waiting and not _is_option(waiting[0]):
                waiting.pop(0)
    if not opaque:
        yield from _of_the_whole(interface, given, loose, vague=vague)


def _of_the_whole(
    interface: Interface, given: Collection[str], loose: Sequence[str], *, vague: bool
) -> Iterator[Fault]:
    """Words too many, and options and positional arguments that are not there."""
    if len(loose) > interface.most and not vague:
        yield Fault("extra", loose[interface.most])
    for names in interface.groups:
        option = interface.options[names[0]]
        if option.required and not {*given} & {*names} and not (interface.by_place and loose):
            yield Fault("missing", names[-1], option.line)
    if len(loose) < interface.least and not vague:
        yield Fault("missing", "a positional argument")


def _is_option(word: str) -> bool:
    return word.startswith("-") and word not in {"-", "--"} and not _NUMBER.fullmatch(word)


_NO_VALUE: Final = frozenset(("store_true", "store_false", "store_const", "append_const", "count", "help", "version"))
_ADDED: Final = {"deepspeed.add_config_arguments": ("--deepspeed", "--deepscale")}
"""Functions that add options to a parser, by how these begin. https://github.com/deepspeedai/DeepSpeed"""
_READS: Final = re.compile(r"parse_((known_)?(intermixed_)?args|args_into_dataclasses)")
_CHANGED: Final = re.compile(
    r"sys\.argv(\[[^\]]*\])?\s*\+?=[^=]|del\s+sys\.argv|sys\.argv\.(append|insert|extend|remove|pop)\("
    r"|exit_on_error|fromfile_prefix_chars|prefix_chars|ArgumentParser\(\*\*"
)
"""Texts of scripts whose arguments are not those of the command, or are not read as others are."""
_OPEN: Final = re.compile(r"add_subparsers|add_argparse_args|add_model_specific_args|parents\s*=|ArgumentParser\)\s*:")
_ONCE: Final = re.compile(r"__name__|sys\.argv")
"""Conditions that hold for a script; the other branch of a test of its words is for a file in place of arguments."""


def interface_of(tree: ast.Module, text: str) -> Interface | None:
    """The arguments that a script reads; None where it reads none, or in a way that is not known."""
    names = ImportedNames()
    names.visit(tree)
    return _of_function(tree, names) or (None if _CHANGED.search(text) else _of_parser(tree, text, names))


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _words(call: ast.Call) -> dict[str, ast.expr]:
    return {word.arg or "**": word.value for word in call.keywords}


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _name(node: ast.AST) -> str:
    """The last part of ``a.b.c``; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _placed(node: ast.AST, inside: str = "", *, always: bool = True) -> Iterator[tuple[ast.AST, str, bool]]:
    """All below a node, each with the function around it, and whether no condition or loop is."""
    for child in ast.iter_child_nodes(node):
        yield child, inside, always
        below = isinstance(child, ast.For | ast.While | ast.Try | ast.IfExp)
        below |= isinstance(child, ast.If) and not _ONCE.search(ast.unparse(child.test))
        yield from _placed(child, getattr(child, "name", inside) or inside, always=always and not below)


def _of_parser(tree: ast.Module, text: str, names: ImportedNames) -> Interface | None:
    placed = [*_placed(tree)]
    calls = [(node, inside, always) for node, inside, always in placed if isinstance(node, ast.Call)]
    made = [
        call
        for call, _, _ in calls
        if (names.dotted(call.func) or "").endswith((".HfArgumentParser", "argparse.ArgumentParser"))
    ]
    parses = [each for each in calls if _READS.fullmatch(_name(each[0].func))]
    if len(made) != 1 or not parses:
        return None
    hf, words = "Hf" in (names.dotted(made[0].func) or ""), _words(made[0])
    found = Interface("HfArgumentParser" if hf else "argparse", abbreviated=not _is(words.get("allow_abbrev"), False))
    found.open = _OPEN.search(text) is not None
    used = {_name(node) for node, _, _ in placed}
    for call, inside, always in parses:
        given = _words(call).get("args", call.args[0] if call.args else ast.Constant(None))
        known = _is(given, None) or ast.unparse(given) == "sys.argv[1:]"
        if not known and not isinstance(given, ast.Name):
            return None
        found.sure &= known and always and (not inside or inside in used)
        found.open |= "known" in _name(call.func) or "return_remaining_strings" in _words(call)
    if not _is(words.get("add_help"), False):
        found.add(("-h", "--help"), Option(0, 0))
    own = {"print", "isinstance", *(node.name for node, _, _ in placed if isinstance(node, ast.FunctionDef))}
    assigned = [node for node, _, _ in placed if isinstance(node, ast.Assign) and node.value is made[0]]
    parsers = {_name(target) for node in assigned for target in node.targets} - {""}
    for call, _, always in calls:
        if _name(call.func) == "add_argument":
            _argument(found, call, always=always)
        elif parsers & {_name(each) for each in (*call.args, *_words(call).values())}:
            # Another module that gets the parser may add to it.
            found.prefixes += (added := _ADDED.get(names.dotted(call.func) or "", ()))
            found.open |= not added and not (isinstance(call.func, ast.Name) and call.func.id in own)
    classes = {node.name: node for node, _, _ in placed if isinstance(node, ast.ClassDef)}
    for one in (*made[0].args, *words.values()) if hf else ():
        for each in one.elts if isinstance(one, ast.Tuple | ast.List) else [one]:
            _fields(found, each, classes)
    return found


def _argument(found: Interface, call: ast.Call, *, always: bool) -> None:
    names, words = [_text(each) for each in call.args], _words(call)
    if not all(names) or not names or "**" in words:
        found.open, found.most = True, MANY
        return
    least, most = _span(words)
    if not names[0].startswith("-"):
        found.add_positional(least if always else 0, most)
        return
    if "action" in words and _name(words["action"]) == "BooleanOptionalAction":
        names, least, most = [*names, *(f"--no-{name[2:]}" for name in names if name[:2] == "--")], 0, 0
    found.add(names, Option(least, most, always and _is(words.get("required"), True), call.lineno))


def _fields(found: Interface, name: ast.expr, classes: dict[str, ast.ClassDef]) -> None:
    """Takes over the fields of a dataclass; one of another module has fields that are not known."""
    one = classes.get(name.id) if isinstance(name, ast.Name) else None
    classes = {key: each for key, each in classes.items() if each is not one}
    found.open |= one is None
    for base in one.bases if one is not None else ():
        _fields(found, base, classes)
    for node in one.body if one is not None else ():
        kind = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else "ClassVar"
        if not isinstance(node, ast.AnnAssign) or kind.startswith(("ClassVar", "typing.ClassVar")):
            continue
        call, flag = node.value if isinstance(node.value, ast.Call) else None, "bool" in kind
        words = _words(call) if call is not None else {}
        free = words.keys() & {"default", "default_factory", "init", "**"} or (call and _name(call.func) != "field")
        required = node.value is None or (call is not None and not free)
        names = [f"--{_name(node.target)}", *([f"--no_{_name(node.target)}"] if flag else [])]
        most = MANY if re.search(r"\b[Ll]ist\b|[Dd]ict|Sequence", kind) else 1
        found.add(names, Option(int(not flag), most, required and not flag, node.lineno))


def _span(words: dict[str, ast.expr]) -> tuple[int, int]:
    """The least and the most words of an argument."""
    action, nargs = words.get("action"), words.get("nargs", ast.Constant(None))
    if _text(action) in _NO_VALUE or (action is not None and not _text(action)):
        return 0, 0 if _text(action) else MANY
    value: object = nargs.value if isinstance(nargs, ast.Constant) else ""
    known: dict[object, tuple[int, int]] = {None: (1, 1), "?": (0, 1), "+": (1, MANY)}
    return (value, value) if isinstance(value, int) else known.get(value, (0, MANY))


def _of_function(tree: ast.Module, names: ImportedNames) -> Interface | None:
    """The arguments of the one function that click, typer or fire calls."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    made = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    typers = [
        node for node in made if isinstance(node.value, ast.Call) and names.dotted(node.value.func) == "typer.Typer"
    ]
    apps = {_name(target) for node in typers for target in node.targets}
    found: list[Interface | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (started := names.dotted(node.func)) in {"typer.run", "fire.Fire"}:
            called = functions.get(_name(node.args[0])) if len(node.args) == 1 and not node.keywords else None
            of_fire = started == "fire.Fire"
            found.append(None if called is None else _of_fire(called) if of_fire else _of_typer(called, names))
    for function in functions.values():
        for one in function.decorator_list:
            target = one.func if isinstance(one, ast.Call) else one
            if (names.dotted(target) or "").startswith(("click.command", "click.group")):
                found.append(None if _name(target) == "group" else _of_click(function, names))
            elif isinstance(target, ast.Attribute) and _name(target.value) in apps:
                found.append(_of_typer(function, names) if target.attr == "command" else None)
    return found[0] if len(found) == 1 else None


def _of_click(function: ast.FunctionDef, names: ImportedNames) -> Interface:
    found = Interface("click")
    found.add(("--help",), Option(0, 0))
    for one in reversed(function.decorator_list):
        call = one if isinstance(one, ast.Call) else ast.Call(one, [], [])
        name, words = (names.dotted(call.func) or "").rpartition(".")[2], _words(call)
        if name == "command":
            found.open |= bool(words.keys() - {"name", "help", "short_help", "epilog"})
            break
        free = bool(words.keys() & {"default", "envvar", "prompt"})
        least, most = _span({key: each for key, each in words.items() if key == "nargs"})
        options = [each.strip() for text in call.args for each in _text(text).split("/") if each.strip()[:1] == "-"]
        if name == "option" and options and "**" not in words:
            if words.keys() & {"is_flag", "count", "flag_value"} or any("/" in _text(each) for each in call.args):
                least, most = 0, int(_is(words.get("is_flag"), False))
            found.add(options, Option(least, most, _is(words.get("required"), True) and not free, one.lineno))
        elif name == "argument" and "**" not in words:
            found.add_positional(0 if free or _is(words.get("required"), False) else least, most)
        elif not _name(call.func).startswith("pass_"):
            found.open = True
    return found


def _parameters(function: ast.FunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """The parameters that may be named, with their defaults."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    yield from zip(plain, [*[None] * (len(plain) - len(given.defaults)), *given.defaults], strict=True)
    yield from zip(given.kwonlyargs, given.kw_defaults, strict=True)


def _of_typer(function: ast.FunctionDef, names: ImportedNames) -> Interface:
    found = Interface("typer", open=bool(function.args.kwarg or function.args.vararg))
    found.add(("--help", "--install-completion", "--show-completion"), Option(0, 1))
    for parameter, default in _parameters(function):
        kind = ast.unparse(parameter.annotation) if parameter.annotation else ""
        inside = [each for part in (parameter.annotation, default) if part for each in ast.walk(part)]
        calls = [
            each for each in inside if isinstance(each, ast.Call) and (names.dotted(each.func) or "")[:6] == "typer."
        ]
        call = calls[0] if calls else ast.Call(ast.Name(""), [], [])
        words = _words(call)
        value = words.get("default", call.args[0] if call.args else None) if call is default else default
        required = (value is None or _is(value, ...)) and "envvar" not in words
        if kind.endswith("Context"):
            continue
        if _name(call.func) == "Argument" or (not calls and value is None):
            found.add_positional(int(required), MANY if re.search(r"\b([Ll]ist|[Tt]uple|Sequence)\b", kind) else 1)
            continue
        name, flag = parameter.arg.replace("_", "-"), "bool" in kind
        spelt = [each for text in call.args if _text(text)[:1] == "-" for each in _text(text).split("/")]
        options = spelt or [f"--{name}", *([f"--no-{name}"] if flag else [])]
        least, most = (0, 0) if flag else (0, MANY) if "uple" in kind else (1, 1)
        found.add(options, Option(least, most, required, parameter.lineno))
    return found


def _of_fire(function: ast.FunctionDef) -> Interface:
    returns = any(isinstance(node, ast.Return | ast.Yield) and node.value is not None for node in ast.walk(function))
    # What a function returns may take the words that are left.
    found = Interface("fire", open=function.args.kwarg is not None or returns, by_place=True)
    found.add(("--help", "-h"), Option(0, 0))
    for parameter, default in _parameters(function):
        found.add((f"--{parameter.arg}",), Option(0, 1, default is None, parameter.lineno))
        found.add_positional(0, MANY if function.args.vararg else 1)
    return found
