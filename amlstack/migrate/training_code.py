"""Training code that logs to a run of SDK v1: a patch by which it logs to MLflow, all else as it was written."""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from amlstack.code_reading.code_files import ImportedNames, tree_of
from amlstack.migrate.constructs import Construct, constructs
from amlstack.migrate.report import Item

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTEXT = "azureml.core.Run.get_context"
_LONG = "azureml.core.run.Run.get_context"


class Patched(NamedTuple):
    """A file with its calls of a run replaced.

    Attributes:
        text: The new text; the old one where nothing changes.
        items: What became of each call.
    """

    text: str
    items: tuple[Item, ...]


class _Edit(NamedTuple):
    """New text in the place of some bytes of a file."""

    begin: int
    end: int
    text: str


def patched(text: str, file: str) -> Patched:
    """Training code with MLflow in place of SDK v1."""
    tree = tree_of(text) if "get_context" in text else None
    if tree is None:
        return Patched(text, ())
    reader = _Reader(tree, text, file)
    edits = [*reader.edits()] if reader.runs else []
    data = text.encode()
    for edit in sorted(edits, reverse=True):
        data = data[: edit.begin] + edit.text.encode() + data[edit.end :]
    return Patched(data.decode() if edits else text, tuple(reader.items))


def difference(before: str, after: str, name: str) -> str:
    """The unified diff of a file."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class _Reader(ImportedNames):
    """The runs of a file, and what is done with them."""

    def __init__(self, tree: ast.Module, text: str, file: str) -> None:
        super().__init__()
        self.runs: set[str] = set()
        self.items: list[Item] = []
        self._tree, self._file = tree, file
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._lines = [0]
        for line in text.encode().splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._assigned: list[ast.Assign] = []
        self._imports: list[ast.stmt] = []
        self._leaves: list[ast.stmt] = []
        self._gone: set[int] = set()
        self._data = text.encode()
        self._hand = False
        self.visit(tree)

    def imported(self, node: ast.stmt, name: str) -> None:
        """Notes where v1 is imported."""
        if name.startswith("azureml.core"):
            self._imports.append(node)

    def visit_Assign(self, node: ast.Assign) -> None:  # noqa: N802 - as `ast` calls it
        """Notes the names of runs."""
        if self._is_context(node.value) and all(isinstance(each, (ast.Name, ast.Attribute)) for each in node.targets):
            self.runs |= {ast.unparse(each) for each in node.targets}
            self._assigned.append(node)
        self.generic_visit(node)

    def _is_context(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self.dotted(node.func) in (_CONTEXT, _LONG)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin = self._lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, self._lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def edits(self) -> Iterator[_Edit]:
        """The edits: calls, then the run itself and its import where nothing else needs them."""
        found: list[_Edit] = []
        uses: list[ast.expr] = [node for node in ast.walk(self._tree) if self._is_run(node)]
        uses += [node for node in ast.walk(self._tree) if isinstance(node, ast.Call) and self._is_context(node)
                 and not any(node is each.value for each in self._assigned)]  # fmt: skip
        uses = [node for node in uses if not any(node in each.targets for each in self._assigned)]
        for node in uses:
            found += self._use(node)
        if not found and not self._leaves:
            return
        yield from found
        leaves = [*self._leaves, *([] if self._hand else self._assigned)]
        self._gone = {id(each) for each in leaves}
        yield from map(self._whole, leaves)
        first = min(self._imports or [self._assigned[0]], key=lambda node: node.lineno)
        alone = not self._hand and self._imports == [first] and len(getattr(first, "names", ())) == 1
        begin, end = self._span(first)
        if alone and not self._used_elsewhere(first):
            yield _Edit(begin, end, "import mlflow")
        else:
            yield _Edit(begin, begin, f"import mlflow\n{' ' * first.col_offset}")

    def _used_elsewhere(self, node: ast.stmt) -> bool:
        [alias] = node.names  # type: ignore[attr-defined]
        name = str(alias.asname or alias.name).partition(".")[0]
        uses = sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(self._tree))
        return uses > sum(self._is_context(each) for each in ast.walk(self._tree) if isinstance(each, ast.Call))

    def _is_run(self, node: ast.AST) -> TypeGuard[ast.expr]:
        return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in self.runs

    def _use(self, node: ast.expr) -> Iterator[_Edit]:
        parent = self._parents.get(node)
        if not isinstance(parent, ast.Attribute):
            self._open(node, "Run", "the run is handed on", "Log with mlflow where it arrives; it needs no run there.")
            return
        call = self._parents.get(parent)
        row = constructs().get(f"Run.{parent.attr}")
        if row is None or row.call is None or not isinstance(call, ast.Call) or call.func is not parent:
            self._open(
                node,
                f"Run.{parent.attr}",
                row.becomes if row else "not known",
                row.how if row else "Look for its like in MLflow.",
            )
            return
        if not row.call:
            if isinstance(statement := self._parents.get(call), ast.Expr):
                self._note(node, row)
                self._leaves.append(statement)
            else:
                self._open(node, row.name, row.becomes, "Remove it.")
            return
        if row.name == "Run.log" and any(
            isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
            for each in (*call.args[1:2], *(word.value for word in call.keywords if word.arg == "value"))
        ):
            self._open(node, row.name, "a text, which is no metric", "Write `mlflow.set_tag(NAME, TEXT)`.")
            return
        names = dict(zip(row.takes, call.args, strict=False)) | {each.arg or "**": each.value for each in call.keywords}
        if any(isinstance(each, ast.Starred) for each in call.args) or not names.keys() <= {*row.takes}:
            self._open(node, row.name, row.becomes, "Its arguments are not known.")
            return
        self._note(node, row)
        yield _Edit(*self._span(parent), row.call)
        new = {each.partition(":")[0]: each.rpartition(":")[2] for each in row.keeps}
        for name, each in names.items():
            keyword = next((keyword for keyword in call.keywords if keyword.value is each), None)
            whole = keyword or each
            begin, end = self._span(whole)
            if name not in new:  # with the comma before it
                ends = (self._span(other)[1] for other in (*call.args, *call.keywords))
                yield _Edit(max((other for other in ends if other <= begin), default=begin), end, "")
            elif keyword is not None and new[name] != name:
                yield _Edit(begin, begin + len(name), new[name])

    def _whole(self, node: ast.stmt) -> _Edit:
        """A statement that goes: with its line where it has that to itself, and never the last of its block."""
        begin, end = self._span(node)
        parent = self._parents[node]
        body = next((held for _, held in ast.iter_fields(parent) if isinstance(held, list) and node in held), [])
        if all(id(each) in self._gone for each in body) and not isinstance(parent, ast.Module):
            return _Edit(begin, end, "pass")
        line = self._lines[node.lineno - 1]
        after = self._lines[node.end_lineno or node.lineno]
        if not self._data[line:begin].strip() and not self._data[end:after].strip():
            return _Edit(line, after, "")
        return _Edit(begin, end, "pass")

    def _note(self, node: ast.expr, row: Construct) -> None:
        self.items.append(Item(self._file, node.lineno, row.name, row.state, row.becomes))

    def _open(self, node: ast.expr, construct: str, what: str, how: str) -> None:
        self._hand = True
        self.items.append(Item(self._file, node.lineno, construct, "hand", what, how))
