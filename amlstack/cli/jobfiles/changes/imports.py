"""Modules of the repository that a Python job file imports, also through each other, by its text alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amlstack.base.files import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def imported(file: Path, roots: Sequence[Path]) -> frozenset[Path]:
    """The files of modules that a file imports, links resolved; the file itself is none of them.

    Args:
        file: The job file.
        roots: Folders that absolute imports are looked for in, beside the file's own.
    """
    start = file.resolve()
    found: set[Path] = set()
    coming = [start]
    while coming:
        path = coming.pop()
        for module in _modules(path, (start.parent, *roots)):
            if module not in found and module != start:
                found.add(module)
                coming.append(module)
    return frozenset(found)


def _modules(file: Path, roots: Sequence[Path]) -> Iterator[Path]:
    try:
        tree = ast.parse(read_regular(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield from _found(each.name.split("."), roots)
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            places = [file.parents[node.level - 1]] if 0 < node.level <= len(file.parents) else roots
            for each in node.names:
                yield from _found([*parts, each.name], places)


def _found(parts: Sequence[str], roots: Sequence[Path]) -> Iterator[Path]:
    """The files that an import of a dotted name runs: packages on the way, and the module in the first root with it."""
    for root in roots:
        folder, hits = root, []
        for part in parts:
            module, package = folder / f"{part}.py", folder / part / "__init__.py"
            hits += [path.resolve() for path in (package, module) if path.is_file()]
            folder /= part
            if not folder.is_dir():
                break
        if hits:
            yield from hits
            return
