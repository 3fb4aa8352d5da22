"""Downloads of a job from the internet, named before the job starts."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from amlstack.code_reading.code_files import CodeFile, ImportedNames, files, row_of
from amlstack.code_reading.shell import steps

_TABLE = Path(__file__).with_name("downloads.toml")
_ADDRESS: Final = re.compile(r"(?:https?|s3|gs|abfss?|wasbs?|ftp)://[^\s'\"]+")
_OF_A_MODEL: Final = re.compile(r"(?i)(?:model|base|tokenizer|pretrained)_?(?:name|id)(?!.*path)|^base_?model$")
"""Names in code of what is a model's name, and no folder."""
_FETCHING: Final = ("wget", "curl", "azcopy", "aria2c", "gsutil", "kaggle", "huggingface-cli")


@dataclass(frozen=True, slots=True, order=True)
class Download:
    """A line that fetches something.

    Attributes:
        path: The file, relative to the code folder; empty for the command itself.
        line: From 1; 0 for the command.
        what: What it does, in a few words.
        host: Whence; empty where only the running job knows.
        certain: The run reaches the line whatever is there already; False below a condition or in a `try`.
    """

    path: str
    line: int
    what: str
    host: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class _Row:
    names: tuple[str, ...]
    what: str
    host: str = ""
    when: str = ""
    plain: bool = False
    address: bool = False
    methods: tuple[str, ...] = ()
    local: tuple[str, ...] = ()


def in_code(
    folder: Path, entries: Sequence[str], given: Mapping[str, str] | None = None, *, models: bool = True
) -> tuple[Download, ...]:
    """The downloads in the scripts of a code folder, in the order of files and lines.

    Args:
        folder: The code folder.
        entries: Scripts that the command starts, as of `files`.
        given: Values of the command's options and of the job's variables, by name; empty for what is a path.
        models: Whether an input may be the model whose name nothing says.
    """
    found: set[Download] = set()
    read_files = [*files(folder, entries)]
    trees = [file.tree for file in read_files if file.tree is not None]
    used = {name for tree in trees for name in _used(tree)}
    values = _values(trees, given or {})
    for file in read_files:
        if file.tree is not None:
            reader = _Reader(file, used, values, models=models)
            reader.visit(file.tree)
            found.update(reader.found)
        elif file.path.suffix == ".sh":
            found.update(_of_shell(file))
    return tuple(sorted(found))


def in_command(commands: Iterable[Sequence[str]]) -> tuple[Download, ...]:
    """The downloads of the simple commands of a command line.

    Args:
        commands: The words of each.
    """
    return tuple(each for words in commands if (each := _of_words(list(words), "", 0)) is not None)


def given_by(command: Iterable[Sequence[str]], variables: Mapping[str, str]) -> dict[str, str]:
    """The values of a command's options and of variables, by name; a binding and whatever the shell puts in is a path.

    Args:
        command: The words of each simple command.
        variables: The job's.
    """
    found = {name: str(value) for name, value in variables.items()}
    for words in command:
        for option, following in pairwise([*words, ""]):
            if option.startswith("--"):
                name, equals, value = option[2:].partition("=")
                found[name.replace("-", "_")] = value if equals else following
    return {name: "" if "$" in value or "BOUND" in value else value for name, value in found.items()}


def _values(trees: Iterable[ast.Module], given: Mapping[str, str]) -> dict[str, str]:
    """Texts that names of the code stand for: what is given, else the one text that the code gives them anywhere."""
    found: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                pairs = [(name, node.value)]
            case ast.arguments():
                pairs = [*zip((each.arg for each in reversed(node.args)), reversed(node.defaults), strict=False)]
                pairs += zip((each.arg for each in node.kwonlyargs), node.kw_defaults, strict=True)
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=[*_, ast.Constant(value=str(name))]):
                name = name.lstrip("-").replace("-", "_")
                pairs = [(name, word.value) for word in node.keywords if word.arg == "default"]
            case _:
                continue
        for name, value in pairs:
            if (text := _text(value, given)) is not None:
                found.setdefault(name, set()).add(text)
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1} | dict(given)


def _text(value: ast.AST | None, given: Mapping[str, str]) -> str | None:
    """The text of a constant, or of a variable of the environment that is given or has a default."""
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(func=ast.Attribute(attr="get" | "getenv"), args=[ast.Constant(value=str(name)), *rest]):
            return given.get(name) or _text(rest[0] if rest else None, given)
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))):
            return given.get(name)
    return None


def _of_shell(file: CodeFile) -> Iterator[Download]:
    for number, raw in enumerate(file.text.splitlines(), 1):
        line = raw.partition("#")[0]
        for words in steps(line) or (line.split(),):
            if (found := _of_words(list(words), file.name, number)) is not None:
                yield found


def _of_words(words: list[str], path: str, line: int) -> Download | None:
    while words and (re.fullmatch(r"\w+=\S*", words[0]) or words[0] in {"then", "do", "else", "sudo", "-E"}):
        words = words[1:]
    if not words:
        return None
    program, text = words[0].rsplit("/", 1)[-1], " ".join(words)
    address = _ADDRESS.search(text)
    host = urlsplit(address[0]).hostname or "" if address else ""
    if program in _FETCHING and (address or program != "curl"):
        return Download(path, line, f"`{program}` fetches {address[0] if address else 'from the internet'}", host)
    if program == "git" and words[1:2] in (["clone"], ["fetch"], ["pull"]):
        return Download(path, line, f"`git {words[1]}` {address[0] if address else ''}".rstrip(), host)
    if "pip" in words[:4] and "install" in words and (git := re.search(r"git\+https?://\S+", text)) is not None:
        return Download(path, line, f"pip installs from {git[0]}", urlsplit(git[0].removeprefix("git+")).hostname or "")
    return None


def _used(tree: ast.Module) -> Iterator[str]:
    """Names that a file uses: a function that no line names is not run."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


class _Reader(ImportedNames, ast.NodeVisitor):
    """Goes through one file; ``found`` are its downloads."""

    def __init__(self, file: CodeFile, used: set[str], values: Mapping[str, str], *, models: bool) -> None:
        super().__init__()
        self.found: list[Download] = []
        self._file = file
        self._used = used
        self._values = values
        self._models = models
        self._open = 0  # conditions, handlers and functions that no line names, around the line

    def visit_Assign(self, node: ast.Assign) -> None:
        name = self.dotted(node.value)
        for target in node.targets if name else ():
            if isinstance(target, ast.Name) and name is not None:
                self.names[target.id] = name
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        main = any(isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test))
        self._below([*node.body, *node.orelse], uncertain=not main)

    def visit_Try(self, node: ast.Try) -> None:
        self._below([*node.body, *node.orelse], uncertain=bool(node.handlers))
        self._below([each for handler in node.handlers for each in handler.body], uncertain=True)
        self._below(node.finalbody, uncertain=False)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._below(node.body, uncertain=node.name not in self._used and not node.name.startswith("__"))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._below(node.body, uncertain=node.name not in self._used)

    def visit_Call(self, node: ast.Call) -> None:
        name = self.dotted(node.func)
        row = _row(name) if name else None
        if row is not None and name is not None and (what := self._fetched(node, row)) is not None:
            host = urlsplit(what).hostname or "" if row.address else row.host
            text = f"{row.what} (`{name}`)" if not row.address else f"`{name}` reads {what}"
            certain = self._open == 0 and not (row.plain and not what and self._models)
            self.found.append(Download(self._file.name, node.lineno, text, host, certain))
        self.generic_visit(node)

    def _fetched(self, node: ast.Call, row: _Row) -> str | None:
        """As `_fetches`; of a name that stands elsewhere its text, or an empty one for a model that nothing names."""
        if not row.plain or not node.args or isinstance(node.args[0], ast.Constant):
            return _fetches(node, row)
        name = getattr(node.args[0], "attr", getattr(node.args[0], "id", ""))
        if (text := self._values.get(name)) is None:
            return "" if _OF_A_MODEL.search(name) else None
        if not text or (self._file.path.parent / text).exists():
            return None
        return _fetches(ast.Call(ast.Name(""), [ast.Constant(text)], []), row)

    def _below(self, body: Iterable[ast.AST], *, uncertain: bool) -> None:
        self._open += uncertain
        for each in body:
            self.visit(each)
        self._open -= uncertain

    def dotted(self, node: ast.expr) -> str | None:
        """Its full name, where Keras has one name for its places in TensorFlow."""
        name = super().dotted(node)
        return name and re.sub(r"^(tensorflow\.|tf\.)(?:python\.)?keras\.", "keras.", name)


def _fetches(node: ast.Call, row: _Row) -> str | None:
    """The text of a call's first argument, where the call fetches; None where it does not, or nothing says so."""
    words = {word.arg: word.value for word in node.keywords if word.arg}
    if row.when:
        loose, names = row.when.startswith("!"), row.when.removeprefix("!").split()
        given = [words[name] for name in names if name in words]
        constants = [each.value for each in given if isinstance(each, ast.Constant)]
        sure = any(constants) or (loose and any(not isinstance(each, ast.Constant) for each in given))
        return "" if sure else None
    first = node.args[0] if node.args else words.get("path", words.get("url"))
    text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
    if row.address:
        return text if text is not None and re.match(r"https?://", text) else None
    if row.plain:
        fetched = text is not None and not text.startswith((".", "/", "~")) and text not in row.local
        return text if fetched else None
    return text or ""


def _row(name: str) -> _Row | None:
    """The row of a dotted name; one with methods is that of these alone."""
    row = row_of(_table(), name)
    return row if row is None or not row.methods or name.rpartition(".")[2] in row.methods else None


@functools.cache
def _table() -> dict[str, _Row]:
    found: dict[str, _Row] = {}
    for row in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["rows"]:
        fields: dict[str, Any] = {key: tuple(of) if isinstance(of, list) else of for key, of in row.items()}
        found |= dict.fromkeys(fields["names"], _Row(**fields))
    return found
