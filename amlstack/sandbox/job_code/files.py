"""The files of a code folder that a job's entry scripts lead to: their text, and of Python the syntax tree."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MOST_FILES: Final = 500
MOST_BYTES: Final = 1 << 20
_STARTED: Final = re.compile(r"(?<![\w./-])(?:\./)?(?P<script>[\w][\w./-]*\.(?:py|sh))\b")


@dataclass(frozen=True, slots=True)
class CodeFile:
    """One file.

    Attributes:
        path: Where it lies.
        name: The same, relative to the code folder, with forward slashes.
        text: Its content; empty for a file larger than 1 MiB.
        tree: Of a Python file that can be parsed.
    """

    path: Path
    name: str
    text: str
    tree: ast.Module | None


def files(folder: Path, entries: Sequence[str]) -> Iterator[CodeFile]:
    """The entry scripts and all that they lead to: modules of the folder, and scripts that a shell script names.

    At most 500 files; what lies outside of the folder is not read.

    Args:
        folder: The code folder.
        entries: Scripts (`.py`, `.sh`) or folders, relative to it. Without any, all scripts in the folder itself.
    """
    waiting: list[Path | None] = [inside(folder, entry) for entry in entries] or [*sorted(folder.glob("*.py"))]
    seen: set[Path] = set()
    while waiting and len(seen) < MOST_FILES:
        path = waiting.pop()
        if path is None or path in seen:
            continue
        seen.add(path)
        text = _text(path)
        tree = _parsed(text) if path.suffix == ".py" else None
        yield CodeFile(path, path.relative_to(folder).as_posix(), text, tree)
        if path.suffix == ".sh":
            waiting += [inside(folder, match["script"]) for match in _STARTED.finditer(text)]
        for module in _imported(tree) if tree is not None else ():
            waiting.extend(modules(folder, path, module))


def inside(folder: Path, entry: str) -> Path | None:
    """The file of an entry; None where it is none or lies elsewhere."""
    if entry.startswith("/") or ".." in PurePosixPath(entry).parts:
        return None
    path = folder / entry
    if path.is_dir():
        path /= "__main__.py"
    return path if path.suffix in {".py", ".sh"} and path.is_file() else None


def modules(folder: Path, importing: Path, module: str) -> Iterator[Path]:
    """The files of a module in the code folder, its packages' too: beside the file that imports it, or at the top."""
    if module.startswith("."):
        level = len(module) - len(module.lstrip("."))
        tops = [importing.parents[min(level, len(importing.parents)) - 1]]
    else:
        tops = [importing.parent, folder, folder / "src"]
    parts = [part for part in module.lstrip(".").split(".") if part]
    for top in tops:
        for length in range(len(parts) + 1):
            place = top.joinpath(*parts[:length])
            candidates = [place / "__init__.py"] if length == 0 else [place.with_suffix(".py"), place / "__init__.py"]
            yield from (path for path in candidates if path.is_relative_to(folder) and path.is_file())


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield base
            yield from (f"{base}{'' if base.endswith('.') else '.'}{alias.name}" for alias in node.names)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _text(path: Path) -> str:
    try:
        return "" if path.stat().st_size > MOST_BYTES else path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
