"""Callers that ask for a GPU, and those of them whose run a "no" would end."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator

_LIBRARIES = tuple(
    {os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")}  # noqa: PTH118
)
_PARTS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_TORCHRUN = os.path.join("torch", "distributed", "run.py")  # noqa: PTH118 - as above
_ENDS = {"exit", "quit", "sys.exit", "os._exit", "os.abort"}


def gpus() -> int:
    """GPUs that a node of the job is taken to have: as many as it has ranks."""
    return int(os.environ.get("AMLSTACK_SANDBOX_GPUS", "1") or "1")


def asked_by_job(depth: int = 2) -> bool:
    """True where the asking function's caller is the job's own code, or torchrun, which counts `gpu` and `auto`.

    Args:
        depth: Frames between; 2 for the caller of a function that calls this one.
    """
    name = sys._getframe(depth).f_code.co_filename
    return name.endswith(_TORCHRUN) or _own(name)


def must_be_true(depth: int = 2) -> bool:
    """True where the caller is the job's own code, and its statement ends the run unless the answer is yes."""
    frame = sys._getframe(depth)
    name = frame.f_code.co_filename
    return name.endswith(_TORCHRUN) or (_own(name) and frame.f_lineno in _demanding(name))


@functools.lru_cache(maxsize=None)
def _own(filename: str) -> bool:
    if any(part in filename for part in _PARTS):
        return False
    return not filename.startswith(_LIBRARIES) and not filename.startswith("<frozen")


@functools.lru_cache(maxsize=None)
def _demanding(filename: str) -> frozenset[int]:
    """Lines of a file whose statement ends the run when there is no GPU, directly or by a variable that it sets."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    names: set[str] = set()
    found: set[int] = set()
    for node in ast.walk(tree):
        test = _test(node)
        if test is not None:
            found.update(range(test.lineno, (test.end_lineno or test.lineno) + 1))
            names.update(ast.dump(each) for each in _terms(test) if isinstance(each, (ast.Name, ast.Attribute)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(_as_read(target) in names for target in node.targets):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(found)


def _terms(test: ast.expr) -> Iterator[ast.expr]:
    """The parts of a condition, without `not`, `and`, `or`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _terms(test.operand)
    elif isinstance(test, ast.BoolOp):
        for each in test.values:
            yield from _terms(each)
    else:
        yield test


def _as_read(target: ast.expr) -> str:
    """A target of an assignment as `ast.dump` shows it where it is read."""
    return ast.dump(target).replace("ctx=Store()", "ctx=Load()")


def _test(node: ast.AST) -> ast.expr | None:
    """The condition without which a statement ends the run; None for any other statement."""
    if isinstance(node, ast.Assert):
        return node.test
    if isinstance(node, ast.If):
        negative = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
        if _ending(node.body) if negative else _ending(node.orelse):
            return node.test
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.BoolOp) and isinstance(node.value.op, ast.Or):
        last = node.value.values[-1]
        if isinstance(last, ast.Call) and _dotted(last.func) in _ENDS:
            return node.value
    return None


def _ending(body: list[ast.stmt]) -> bool:
    """True where statements end the run, or the function that trains without a word of what it would return."""
    for last in body[-1:]:
        if isinstance(last, ast.Raise) or (isinstance(last, ast.Return) and last.value is None):
            return True
        if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and _dotted(last.value.func) in _ENDS:
            return True
    return False


def _dotted(node: ast.expr) -> str:
    """`a.b` of a name with attributes, and empty for anything else: `ast.unparse` came with Python 3.9."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""
