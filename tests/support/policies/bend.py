"""Bends one condition of a rule, to see whether a test notices."""

from __future__ import annotations

import ast
from dataclasses import dataclass


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
            node.test = ast.UnaryOp(ast.Not(), node.test)
        elif self.hit():
            node.test = ast.Constant(value=False)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if self.hit():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        for index in range(len(node.values)):
            if self.hit():
                kept = [one for at, one in enumerate(node.values) if at != index]
                return kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)
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
