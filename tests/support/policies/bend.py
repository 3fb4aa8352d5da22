"""Bends one condition of a rule, to see whether a test notices."""

from __future__ import annotations

import ast
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def bent(original: ModuleType) -> Iterator[tuple[ast.AST, ModuleType]]:
    """Every module that differs from a given one by one bent condition, and its bent statement."""
    assert original.__file__ is not None
    text = Path(original.__file__).read_text(encoding="utf-8")
    # Statement by statement: all others stay compiled. Parsed anew each time: a tree is copied several times slower.
    lines, firsts = text.splitlines(keepends=True), list(map(_first, ast.parse(text).body))
    parts = ["".join(lines[start:end]) for start, end in itertools.pairwise([*firsts, len(lines)])]
    codes = [compile(part, original.__file__, "exec") for part in parts]
    for place, part in enumerate(parts):
        for number in itertools.count():
            bend = Bend(number)
            tree = bend.visit(ast.parse(part))
            if bend.met <= number:
                break
            module = ModuleType(f"bent_{original.__name__.replace('.', '_')}")
            sys.modules[module.__name__] = module
            try:
                for code in (*codes[:place], compile(tree, original.__file__, "exec"), *codes[place + 1 :]):
                    exec(code, module.__dict__)
            finally:
                del sys.modules[module.__name__]
            yield tree, module


def _first(statement: ast.stmt) -> int:
    """The place of a statement's first line, counted from zero."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)]) - 1


def changed(original: ModuleType, tree: ast.AST) -> str:
    """The lines of a bent module that the original does not have."""
    assert original.__file__ is not None
    lines = ast.unparse(ast.parse(Path(original.__file__).read_text(encoding="utf-8"))).splitlines()
    return "\n".join(line for line in ast.unparse(tree).splitlines() if line not in lines)


@dataclass
class Bend(ast.NodeTransformer):
    """Bends the n-th condition it meets inside the functions of a module."""

    wanted: int
    met: int = 0
    inside: int = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.inside += 1
        node.body = [self.visit(one) for one in node.body]
        self.inside -= 1
        return node

    def hit(self) -> bool:
        if not self.inside:
            return False
        self.met += 1
        return self.met - 1 == self.wanted

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if self.hit():
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        elif self.hit():
            node.test = ast.copy_location(ast.Constant(value=False), node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if self.hit():
            node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        for index in range(len(node.values)):
            if self.hit():
                kept = [one for at, one in enumerate(node.values) if at != index]
                return kept[0] if len(kept) == 1 else ast.copy_location(ast.BoolOp(node.op, kept), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        opposite: dict[type[ast.cmpop], ast.cmpop] = {
            ast.Lt: ast.LtE(), ast.LtE: ast.Lt(), ast.Gt: ast.GtE(), ast.GtE: ast.Gt(),
            ast.Eq: ast.NotEq(), ast.NotEq: ast.Eq(), ast.In: ast.NotIn(), ast.NotIn: ast.In(),
            ast.Is: ast.IsNot(), ast.IsNot: ast.Is(),
        }  # fmt: skip
        for index, op in enumerate(node.ops):
            if self.hit():
                node.ops[index] = opposite[type(op)]
        return node
