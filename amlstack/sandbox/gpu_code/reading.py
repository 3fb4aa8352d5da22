"""Lines of a job's code that a CPU cannot run, found by reading; nothing is imported."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.code_reading.code_files import ImportedNames, files, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_TABLE = Path(__file__).with_name("not_carried.toml")
_AVAILABLE: Final = ("torch.cuda.is_available", "tf.test.is_gpu_available", "tensorflow.test.is_gpu_available")
_CUDA_SOURCES: Final = ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline")
_DRIVER: Final = re.compile(r"lib(?:cuda|cudart|nccl|nvrtc|nvidia-ml)(?:\.so\b|\b)")


@dataclass(frozen=True, slots=True, order=True)
class NotCarried:
    """A line that a rehearsal without a GPU cannot run as a cluster does.

    Attributes:
        path: The file, relative to the code folder, with forward slashes.
        line: From 1.
        what: What stands there, in a few words, with the name as it is written in the code.
        consequence: One sentence: what happens here.
        ends: The run ends there; False where it goes on with other numbers.
        certain: The line runs whenever its file is imported; False inside of a function.
    """

    path: str
    line: int
    what: str
    consequence: str
    ends: bool = True
    certain: bool = True


@dataclass(frozen=True, slots=True)
class _Row:
    names: tuple[str, ...]
    what: str
    consequence: str
    ends: bool


def read(folder: Path, entries: Sequence[str]) -> tuple[NotCarried, ...]:
    """The places in a job's code that a CPU cannot run, in the order of files and lines.

    The entry scripts are read and every module of the folder that they import, directly or not; of a shell script the
    scripts that it names. What only runs with a GPU (`if torch.cuda.is_available():`) or may be absent (an import with
    `except ImportError`) is no finding. Code that Python cannot parse, that is larger than 1 MiB, or that lies outside
    of the folder is not read.

    Args:
        folder: The code folder.
        entries: Scripts (`.py`, `.sh`) or folders, relative to it. Without any, all scripts in the folder itself.

    Returns:
        Of each file one finding for each row of the table, at its first line.
    """
    found: set[NotCarried] = set()
    for file in files(folder, entries):
        if file.tree is not None:
            reader = _Reader(file.name, functools.partial(_is_local, folder, file.path))
            reader.visit(file.tree)
            found.update(reader.found)
    return tuple(sorted(found))


def _is_local(folder: Path, importing: Path, module: str) -> bool:
    """True where a module's first part is in the code folder, and so is no library of that name."""
    first = module.partition(".")[0]
    tops = (importing.parent, folder, folder / "src")
    return any((top / first).is_dir() or (top / f"{first}.py").is_file() for top in tops)


class _Reader(ImportedNames, ast.NodeVisitor):
    """Goes through one file.

    Attributes:
        found: Its findings.
    """

    def __init__(self, path: str, local: Callable[[str], bool]) -> None:
        super().__init__()
        self.found: list[NotCarried] = []
        self._path = path
        self._local = local
        self._optional: set[str] = set()
        self._flags: set[str] = set()
        self._rows: set[str] = set()
        self._functions = 0

    def imported(self, node: ast.stmt, name: str) -> None:
        self._check(node, name)

    def visit_Try(self, node: ast.Try) -> None:
        if any(_catches_imports(handler) for handler in node.handlers):
            self._imports_alone(node.body)
            rest: Iterable[ast.AST] = [*node.handlers, *node.finalbody]
        else:
            rest = [*node.body, *node.handlers, *node.orelse, *node.finalbody]
        for each in rest:
            self.visit(each)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self._available(node.value):
            self._flags.update(ast.unparse(target) for target in node.targets)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        if self._available(node.test):
            self._imports_alone(node.body)
        else:
            for each in node.body:
                self.visit(each)
        for each in node.orelse:
            self.visit(each)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        for each in ast.walk(node.test):
            if isinstance(each, ast.Attribute) and each.attr == "is_cuda":
                self._add(node, "`assert … .is_cuda`", "Tensors lie on the CPU here: the assertion fails.")
            if isinstance(each, ast.Constant) and each.value == "nccl":
                self._add(
                    node,
                    "an assertion on `nccl`",
                    "The backend is gloo here: an assertion on its name may fail.",
                    ends=False,
                )
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self.dotted(node)
        if name is None:
            self.generic_visit(node)
        else:
            self._check(node, name)

    def visit_Name(self, node: ast.Name) -> None:
        # The import itself is the finding; names that stand for a row of their own are seen where they are imported.
        del node

    def visit_Call(self, node: ast.Call) -> None:
        name = self.dotted(node.func)
        if name in _CUDA_SOURCES and _compiles_cuda(node):
            self._add(
                node, f"`{name}` of CUDA sources", "They are compiled by nvcc, which is not here: the build fails."
            )
        if (
            name in {"ctypes.CDLL", "ctypes.cdll.LoadLibrary"}
            and node.args
            and _DRIVER.search(ast.unparse(node.args[0]))
        ):
            self._add(node, f"`{ast.unparse(node)}`", "The library comes with NVIDIA's driver, which is not here.")
        self.generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._functions += 1
        for each in node.body:
            self.visit(each)
        self._functions -= 1

    def _check(self, node: ast.stmt | ast.expr, name: str) -> None:
        row = row_of(_table(), name)
        if row is None or row.what in self._rows or name.partition(".")[0] in self._optional:
            return
        if self._local(name):
            return
        self._rows.add(row.what)
        self._add(node, f"{row.what} (`{name}`)", row.consequence, ends=row.ends)

    def _add(self, node: ast.stmt | ast.expr, what: str, consequence: str, *, ends: bool = True) -> None:
        certain = self._functions == 0
        self.found.append(NotCarried(self._path, node.lineno, what, consequence, ends, certain))

    def _imports_alone(self, body: Iterable[ast.AST]) -> None:
        """Notes what statements import that need not run here; neither they nor uses of these names are findings."""
        kept, rows, names = len(self.found), set(self._rows), set(self.names.values())
        for each in body:
            self.visit(each)
        del self.found[kept:]
        self._rows = rows
        self._optional |= {name.partition(".")[0] for name in {*self.names.values()} - names} - {"torch", "tensorflow"}

    def _available(self, test: ast.expr) -> bool:
        """True where a test asks for a GPU: alone, as one of several conditions, or by a variable with the answer."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return any(self._available(each) for each in test.values)
        if isinstance(test, ast.Name | ast.Attribute):
            return bool(self._flags) and ast.unparse(test) in self._flags
        return isinstance(test, ast.Call) and self.dotted(test.func) in _AVAILABLE


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(
        name is None or (isinstance(name, ast.Name) and name.id in {"ImportError", "ModuleNotFoundError", "Exception"})
        for name in names
    )


def _compiles_cuda(node: ast.Call) -> bool:
    return any(word.arg == "cuda_sources" for word in node.keywords) or any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.endswith((".cu", ".cuh"))
        for each in ast.walk(node)
    )


@functools.cache
def _table() -> dict[str, _Row]:
    rows = tomllib.loads(_TABLE.read_text(encoding="utf-8"))["rows"]
    return {
        name: _Row(tuple(row["names"]), row["what"], row["consequence"], row.get("ends", True))
        for row in rows
        for name in row["names"]
    }
