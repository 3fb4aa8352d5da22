"""Names of code as the modules call them that it imports."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def dotted(node: ast.expr, imported: Mapping[str, str]) -> str | None:
    """The full name of ``a.b.c``, whose first part an import has bound; None for anything else.

    Args:
        node: An expression.
        imported: What imports have bound: name in the file → full name, ``np`` → ``numpy``.
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in imported:
        return None
    return ".".join([imported[node.id], *reversed(parts)])
