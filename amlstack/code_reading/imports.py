"""Modules that a job's code imports as soon as it starts: an environment without one of them ends every rank."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.code_reading.code_files import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_NOT_INSTALLED = frozenset(sys.stdlib_module_names) | {"__main__"}


@dataclass(frozen=True, slots=True)
class Import:
    """The first line that imports something of a module.

    Attributes:
        path: The file, relative to the code folder.
        line: From 1.
        module: The top of its name: ``sklearn`` of ``sklearn.linear_model``.
    """

    path: str
    line: int
    module: str


def missing(folder: Path, entries: Sequence[str], environment: Path) -> Iterator[Import]:
    """The imports at the top of files that neither Python, the code folder nor an environment has.

    What stands below a condition, in a function or in a `try` may never be reached, and is not looked at.

    Args:
        folder: The code folder.
        entries: Scripts or folders that the command starts, relative to it.
        environment: An environment that is built.
    """
    installed = {
        entry.name.split(".")[0]
        for site in environment.glob("lib/python3*/site-packages")
        for entry in site.iterdir()
        if not entry.name.endswith((".dist-info", ".pth"))
    }
    if not installed:
        return
    own: set[str] | None = None
    seen: set[str] = set()
    for file in files(folder, entries):
        for line, module in _imported(file.tree) if file.tree is not None else ():
            if module in seen or module in installed or module in _NOT_INSTALLED:
                continue
            seen.add(module)
            own = _own(folder) if own is None else own
            if module not in own:
                yield Import(file.name, line, module)


def _imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module.split(".")[0]


def _own(folder: Path) -> set[str]:
    """Names that code may import from its own folder, wherever in it a `sys.path` leads."""
    return {name for path in folder.rglob("*.py") for name in (path.stem, *path.relative_to(folder).parts[:-1])}
