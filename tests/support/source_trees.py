"""Parsed source files, each parsed once for all tests of a process."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a Python file; several tests look at each file of the project."""
    return ast.parse(path.read_text("utf-8"))
