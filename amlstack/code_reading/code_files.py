"""Files of a code folder, read within bounds: all of some kinds, or those that a job's entry scripts lead to.

What they need is read out of them: the modules that they import as soon as they start, and the programs that a job
starts.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, TypeVar

Row = TypeVar("Row")
MOST_FILES: Final = 500
"""Files of a folder that are read at most."""
MOST_CHARACTERS: Final = 1 << 20
"""Of a file its beginning is read."""
_STARTED: Final = re.compile(r"(?<![\w./-])(?:\./)?(?P<script>[\w][\w./-]*\.(?:py|sh))\b")


class CodeFile(NamedTuple):
    """One file.

    Attributes:
        path: Where it lies.
        name: The same, relative to the code folder, with forward slashes.
        text: Its content, as `text_of` reads it; empty where it cannot be read.
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
        text = text_of(path) or ""
        tree = tree_of(text) if path.suffix == ".py" else None
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
    if path.suffix in {".py", ".sh"} and path.is_file():  # as nearly all
        return path
    if path.suffix == ".py" and not path.exists():  # a package, by `-m`
        path = path.with_suffix("")
    return main if (main := path / "__main__.py").is_file() else None


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
            yield from (path for path in candidates if path.is_file() and path.is_relative_to(folder))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield base
            yield from (f"{base}{'' if base.endswith('.') else '.'}{alias.name}" for alias in node.names)


@lru_cache(maxsize=64)  # jobs share scripts, and several checks of a job read them
def tree_of(text: str | bytes) -> ast.Module | None:
    """The syntax tree of a Python text; None where it is no Python, or is nested deeper than the parser follows."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def texts(folder: Path, suffixes: Collection[str]) -> Iterator[str]:
    """The texts of a folder's files with these endings, at most 500; hidden folders are left out."""
    looked = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if os.path.splitext(name)[1] in suffixes and looked < MOST_FILES:  # noqa: PTH122 - for each of many files
                looked += 1
                if (text := text_of(os.path.join(root, name))) is not None:  # noqa: PTH118 - as above
                    yield text


def text_of(file: Path | str) -> str | None:
    """The first 1 MiB of a file's text; None where it cannot be read. Jobs share scripts: it is kept for a while."""
    try:
        now = os.stat(file)  # noqa: PTH116 - for each of many jobs
        if not stat.S_ISREG(now.st_mode):
            return None
        return _text_of(str(file), now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=64)
def _text_of(file: str, *_: int) -> str:
    """The same; further arguments tell a file's states apart."""
    with open(file, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123 - a name, not a path yet
        return opened.read(MOST_CHARACTERS)


class ImportedNames(ast.NodeVisitor):
    """Goes through a file, and knows its names as the modules call them that it imports.

    Attributes:
        names: Name in the file → full name, ``np`` → ``numpy``.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        """Notes modules."""
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.names[alias.asname or top] = alias.name if alias.asname else top
            self.imported(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Notes names out of modules; those of the file's own package begin with dots."""
        base = "." * node.level + (node.module or "")
        for alias in node.names:
            name = f"{base}{'' if base.endswith('.') else '.'}{alias.name}"
            self.names[alias.asname or alias.name] = name
            if not node.level:
                self.imported(node, name)

    def imported(self, node: ast.stmt, name: str) -> None:
        """Called with each module, and each name out of one, of other packages."""

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of ``a.b.c``, whose first part an import has bound; None for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.names:
            return None
        return ".".join([self.names[node.id], *reversed(parts)])


def row_of(table: Mapping[str, Row], name: str) -> Row | None:
    """The row of a dotted name: its own, or that of the nearest module above it."""
    while name and name not in table:
        name = name.rpartition(".")[0]
    return table.get(name)


_NOT_INSTALLED = frozenset(sys.stdlib_module_names) | {"__main__"}


class Import(NamedTuple):
    """The first line that imports something of a module.

    Attributes:
        path: The file, relative to the code folder.
        line: From 1.
        module: The top of its name: ``sklearn`` of ``sklearn.linear_model``.
    """

    path: str
    line: int
    module: str


def missing_imports(folder: Path, entries: Sequence[str], environment: Path) -> Iterator[Import]:
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
    yield from absent_imports(folder, files(folder, entries), installed.__contains__)


def absent_imports(folder: Path, read: Iterable[CodeFile], known: Callable[[str], bool]) -> Iterator[Import]:
    """The same of files that were read, beside the modules that are known.

    Args:
        folder: The code folder.
        read: Its files.
        known: Whether a module is there.
    """
    own: set[str] | None = None
    seen: set[str] = set()
    for file in read:
        for line, module in _top_imports(file.tree) if file.tree is not None else ():
            if module in seen or module in _NOT_INSTALLED:
                continue
            seen.add(module)
            if known(module):
                continue
            own = _own(folder) if own is None else own
            if module not in own:
                yield Import(file.name, line, module)


def _top_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module.split(".")[0]


def _own(folder: Path) -> set[str]:
    """Names that code may import from its own folder, wherever in it a `sys.path` leads."""
    return {name for path in folder.rglob("*.py") for name in (path.stem, *path.relative_to(folder).parts[:-1])}


OF_IMAGES: Final = frozenset(
    (
        *("R", "Rscript", "ant", "azcopy", "bazel", "cmake", "conda", "curl", "dcgmi", "docker", "dotnet", "ffmpeg"),
        *("g++", "gcc", "git", "go", "gradle", "java", "javac", "julia", "make", "mamba", "matlab", "micromamba"),
        *("mvn", "node", "npm", "nsys", "nvcc", "nvidia-smi", "perl", "ruby", "rustc", "sbt", "spark-submit", "tar"),
        *("unzip", "wget", "zip"),
    )
)
"""Programs that images bring and PyPI does not, as far as jobs are known to start them."""
_COMMAND: Final = re.compile(r"nvidia-smi|nproc[_-]per[_-]node[= ](?:gpu|auto)\b")
_COUNTS: Final = re.compile(r"\bdevice_count\s*\(|nvidia-smi")
_STARTS: Final = re.compile(r"\b(?:spawn|start_processes|Process|Popen)\s*\(")
AS_ROOT: Final = frozenset(("sudo", "apt", "apt-get", "yum", "dnf"))
"""Programs that change the machine they run on, which in a rehearsal is this one."""


class Program(NamedTuple):
    """A program that stops the command.

    Attributes:
        name: Its name.
        changes: It would change this machine; else it is not here.
    """

    name: str
    changes: bool


def outside_programs(steps: Iterable[Sequence[str]]) -> tuple[Program, ...]:
    """The programs of a command that this machine lacks, and those that a rehearsal must not run, each once.

    Args:
        steps: The words of each simple command.
    """
    found: dict[str, Program] = {}
    for words in steps:
        program = next((word for word in words if not re.fullmatch(r"\w+=\S*", word)), "")
        name = program.rsplit("/", 1)[-1]
        if name in AS_ROOT:
            found[name] = Program(name, changes=True)
        elif name in OF_IMAGES and shutil.which(program) is None:
            found[name] = Program(name, changes=False)
    return tuple(found.values())


def starts_by_gpu(command: str) -> bool:
    """True where a command asks for as many processes as there are GPUs."""
    return _COMMAND.search(command) is not None


def code_starts_by_gpu(folder: Path, entries: Sequence[str]) -> bool:
    """True where a file of the code counts GPUs and starts processes.

    Args:
        folder: The code folder.
        entries: Scripts that the command starts, relative to it; what they import from it is read, too.
    """
    return any(_COUNTS.search(file.text) and _STARTS.search(file.text) for file in files(folder, entries))
