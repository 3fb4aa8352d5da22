"""Code for GPUs on a machine without one: lines that a CPU cannot run, and how the rest is carried to the CPU.

The lines are found by reading; nothing is imported.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.base import paths
from amlstack.code_reading.code_files import ImportedNames, files, row_of, texts
from amlstack.sandbox.store.folders import job_folder, private

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import JobRow, Store

LINE: Final = "GPU calls run on the CPU: nccl → gloo; fp16/bf16, memory and speed stay unproven"
"""This line is printed once for a job whose code or command speaks of GPUs."""
LIBRARIES: Final = {"DS_ACCELERATOR": "cpu", "ACCELERATE_USE_CPU": "true"}
"""These variables ask DeepSpeed and Accelerate for the CPU; a job's own variables win."""
WHERE: Final = "AMLSTACK_SANDBOX_ON_CPU"
"""Variable with the folder from which a Python that was built here imports `amlcpu` at its start."""
GPUS: Final = "AMLSTACK_SANDBOX_GPUS"
"""Variable with the number of GPUs that a node is taken to have."""
WORLDS: Final = "AMLSTACK_SANDBOX_WORLDS"
"""Variable with the folder in which each process that joins others leaves its rank and world size."""
_ROOT: Final = paths.PACKAGE
_OFF: Final = "no-shim"
_START: Final = "amlcpu.pth"
# One line, as such files have it; without the variable it costs a look into a dictionary.
_PTH: Final = (
    f'import os, sys; p = os.environ.get("{WHERE}"); p and sys.path.insert(0, p); p and __import__("amlcpu"); '
    "p and sys.path.remove(p)\n"
)
_WORDS: Final = re.compile(r"cuda|nccl|\bgpus?\b|\bfp16\b|\bbf16\b|float16|autocast", re.IGNORECASE)
_SUFFIXES: Final = frozenset({".py", ".sh", ".json", ".yaml", ".yml", ".toml"})


@dataclass(frozen=True, slots=True)
class Carrying:
    """The way in which GPU calls are carried to the CPU in one job.

    Attributes:
        defaults: Variables that the job may override.
        fixed: Variables that it may not.
        python: Folder that must be first on PYTHONPATH; empty where the job's Python starts the shim by itself.
    """

    defaults: dict[str, str]
    fixed: dict[str, str]
    python: str = ""

    def apply(self, declared: Mapping[str, str]) -> dict[str, str]:
        """The variables that come on top of the job's own."""
        path = os.pathsep.join(part for part in (self.python, declared.get("PYTHONPATH", "")) if part)
        given = {name: value for name, value in self.defaults.items() if name not in declared}
        return {**given, **({"PYTHONPATH": path} if self.python else {}), **self.fixed}

    def line(self, declared: Mapping[str, str]) -> str:
        """The text that is printed once for a job, with the variables that it is given."""
        given = [f"{name}={value}" for name, value in self.defaults.items() if name not in declared]
        return f"{LINE} ({', '.join(given)})" if given else LINE


def carrying(built: Path, gpus: int) -> Carrying:
    """For the Python of an environment.

    Args:
        built: Folder of the environment. One that was built here gets a file by which its Python starts the shim,
            whatever a command does to PYTHONPATH; any other is left as it is.
        gpus: GPUs that a node is taken to have.
    """
    python = "" if _starts(built) else str(_ROOT / "amlcpu" / "start")
    return Carrying(dict(LIBRARIES), {GPUS: str(gpus), WHERE: str(_ROOT)}, python)


def programs(folder: Path, path: str) -> str:
    """Writes a stand-in for nvidia-smi, unless the machine has one; PATH with it.

    Args:
        folder: The job's temporary folder.
        path: PATH of the job's processes.
    """
    if shutil.which("nvidia-smi", path=path) is not None:
        return path
    made = folder / "gpu-programs"
    made.mkdir(exist_ok=True)
    program = made / "nvidia-smi"
    line = shlex.join([sys.executable, "-I", "-S", str(Path(__file__).with_name("nvidia_smi.py"))])
    program.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
    program.chmod(0o700)
    return f"{path}:{made}"


def mentioned(folder: Path, command: str) -> bool:
    """True where a job's command or a file of its code speaks of GPUs, NCCL or half precision."""
    return any(_WORDS.search(text) for text in chain((command,), texts(folder, _SUFFIXES)))


def worlds_folder(folder: Path) -> Path:
    """The folder of a job in which its processes leave their ranks."""
    return folder / "worlds"


def joined(folder: Path) -> list[tuple[int, int]] | None:
    """Rank and world size of each process of a job that joined others; None where nobody looked."""
    try:
        texts_ = [each.read_text().split() for each in sorted(worlds_folder(folder).iterdir())]
    except OSError:
        return None
    return [(int(rank), int(size)) for rank, size in texts_]


def keep_off(home: Path, job: str) -> None:
    """Notes that a job which is about to be submitted runs as it is, with `--no-shim`."""
    (private(job_folder(home, job)) / _OFF).touch()


def is_off(store: Store, job: JobRow) -> bool:
    """True where a job runs as it is; trials and steps as the outermost job."""
    above = store.family.above(job.id)
    return (job_folder(store.home, above[-1] if above else job.id) / _OFF).is_file()


def _starts(built: Path) -> bool:
    """True where the environment's Python starts the shim by itself: written into it where it is one of ours."""
    if not built.is_relative_to(paths.cache()):
        return False
    found = False
    for site in built.glob("lib/python3*/site-packages"):
        file = site / _START
        try:
            if not file.is_file() or file.read_text() != _PTH:
                part = site / f".{_START}.{os.getpid()}"
                part.write_text(_PTH)
                part.replace(file)
        except OSError:
            return False
        found = True
    return found


_TABLE = Path(__file__).with_name("gpu_code.toml")
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
