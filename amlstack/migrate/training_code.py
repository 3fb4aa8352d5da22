"""Training code that logs to a run of SDK v1: a patch by which it logs to MLflow, all else as it was written."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple, TypeGuard

from amlstack.code_reading.code_files import ImportedNames, tree_of
from amlstack.migrate.constructs import Construct, constructs
from amlstack.migrate.report import Item

Edit = tuple[int, int, str]
"""New text in the place of some bytes of a file: where they begin, where they end, and the text."""

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


def patched(text: str, file: str) -> Patched:
    """Training code with MLflow in place of SDK v1."""
    tree = tree_of(text) if "get_context" in text else None
    if tree is None:
        return Patched(text, ())
    reader = _Reader(tree, text, file)
    edits = [*reader.edits()] if reader.runs else []
    data = text.encode()
    for begin, end, new in sorted(edits, reverse=True):
        data = data[:begin] + new.encode() + data[end:]
    return Patched(data.decode() if edits else text, tuple(reader.items))


def difference(before: str, after: str, name: str) -> str:
    """The unified diff of a file."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class _Reader(ImportedNames):
    """The runs of a file, and what is done with them."""

    def __init__(self, tree: ast.Module, text: str, file: str) -> None:
        super().__init__()
        self.runs: set[str] = set()
        self.items: list[Item] = []
        self._tree, self._file = tree, file
        self._parents: dict[ast.AST, ast.AST] = {}
        self._data = text.encode()
        self._lines = [0, *accumulate(map(len, self._data.splitlines(keepends=True)))]
        self._assigned: list[ast.Assign] = []
        self._imports: list[ast.stmt] = []
        self._leaves: list[ast.stmt] = []
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

    def _is_context(self, node: ast.AST) -> TypeGuard[ast.Call]:
        return isinstance(node, ast.Call) and self.dotted(node.func) in (_CONTEXT, _LONG)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin = self._lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, self._lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def edits(self) -> Iterator[Edit]:
        """The edits: calls, then the run itself and its import where nothing else needs them."""
        self._parents = {child: node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)}
        self._ends = {each.rpartition(".")[2] for each in self.runs}
        assigned = {id(part) for each in self._assigned for part in (each.value, *each.targets)}
        nodes = [node for node in self._parents if id(node) not in assigned]
        uses = [*filter(self._is_run, nodes), *filter(self._is_context, nodes)]
        found = [edit for node in uses for edit in self._use(node)]
        if not found and not self._leaves:
            return
        yield from found
        hand = any(item.state == "hand" for item in self.items)
        leaves = [*self._leaves, *([] if hand else self._assigned)]
        yield from (self._without(each, leaves) for each in leaves)
        first = min(self._imports or [self._assigned[0]], key=lambda node: node.lineno)
        alone = not hand and self._imports == [first] and len(getattr(first, "names", ())) == 1
        begin, end = self._span(first)
        if alone and not self._used_elsewhere(first):
            yield begin, end, "import mlflow"
        else:
            yield begin, begin, f"import mlflow\n{' ' * first.col_offset}"

    def _used_elsewhere(self, node: ast.stmt) -> bool:
        [alias] = node.names  # type: ignore[attr-defined]
        name = str(alias.asname or alias.name).partition(".")[0]
        uses = sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(self._tree))
        return uses > sum(map(self._is_context, ast.walk(self._tree)))

    def _is_run(self, node: ast.AST) -> TypeGuard[ast.expr]:
        end = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        return end in self._ends and ast.unparse(node) in self.runs

    def _use(self, node: ast.expr) -> Iterator[Edit]:
        parent = self._parents.get(node)
        if not isinstance(parent, ast.Attribute):
            how = "Log with mlflow where it arrives; it needs no run there."
            self._note(node, Construct("Run", "the run is handed on", "hand", how))
            return
        call, name = self._parents.get(parent), f"Run.{parent.attr}"
        row = constructs().get(name) or Construct(name, "not known", how="Look for its like in MLflow.")
        if row.call is None or not isinstance(call, ast.Call) or call.func is not parent:
            self._note(node, row._replace(state="hand"))
            return
        if not row.call:
            if isinstance(statement := self._parents.get(call), ast.Expr):
                self._leaves.append(statement)
            else:
                row = row._replace(state="hand", how="Remove it.")
            self._note(node, row)
            return
        given = dict(zip(row.takes, call.args, strict=False)) | {each.arg or "**": each.value for each in call.keywords}
        value = given.get("value")
        if row.name == "Run.log" and (isinstance(value, ast.JoinedStr) or isinstance(getattr(value, "value", 0), str)):
            how = "Write `mlflow.set_tag(NAME, TEXT)`."
            self._note(node, row._replace(state="hand", becomes="a text, which is no metric", how=how))
            return
        if any(isinstance(each, ast.Starred) for each in call.args) or not given.keys() <= {*row.takes}:
            self._note(node, row._replace(state="hand", how="Its arguments are not known."))
            return
        self._note(node, row)
        yield *self._span(parent), row.call
        new = {each.partition(":")[0]: each.rpartition(":")[2] for each in row.keeps}
        keywords = {each.value: each for each in call.keywords}
        for name, each in given.items():
            begin, end = self._span(keywords.get(each, each))
            if name not in new:  # with the comma before it
                ends = (self._span(other)[1] for other in (*call.args, *call.keywords))
                yield max((other for other in ends if other <= begin), default=begin), end, ""
            elif each in keywords and new[name] != name:
                yield begin, begin + len(name), new[name]

    def _without(self, node: ast.stmt, leaves: list[ast.stmt]) -> Edit:
        """A statement that goes: with its line where it has that to itself, and never the last of its block."""
        begin, end = self._span(node)
        parent = self._parents[node]
        body = next((held for _, held in ast.iter_fields(parent) if isinstance(held, list) and node in held), [])
        last = all(each in leaves for each in body) and not isinstance(parent, ast.Module)
        line, after = self._lines[node.lineno - 1], self._lines[node.end_lineno or node.lineno]
        if last or self._data[line:begin].strip() or self._data[end:after].strip():
            return begin, end, "pass"
        return line, after, ""

    def _note(self, node: ast.expr, row: Construct) -> None:
        self.items.append(Item(self._file, node.lineno, row.name, row.state, row.becomes, row.how))
