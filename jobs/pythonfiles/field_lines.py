"""Where in a Python job file a field of its job is written."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs.model.location import Place

_STEP = re.compile(r"[^.\[\]]+")
_LISTED = re.compile(r"jobs\[(\d+)\]\.?")
"""One of the file's several jobs; the steps of a pipeline go by names."""
_Assigned = tuple[ast.stmt | ast.expr | ast.keyword, ast.expr]


@lru_cache(maxsize=4)
def place_of(code: bytes) -> Callable[[str], Place]:
    """A function from a field (`launcher.nproc_per_node`) to its place: its keyword, else the nearest that holds it.

    Args:
        code: The file, which is Python.
    """
    try:
        module = ast.parse(code)
        job, several = _job(module), _assigned(module, "jobs") or _job(module)
    except (SyntaxError, ValueError, RecursionError):
        module, job, several = ast.parse(b""), None, None

    def place(where: str) -> Place:
        one, inner = job, where
        if (listed := _LISTED.match(where)) is not None and several is not None:
            one, inner = _entry(module, several, int(listed[1])), where[listed.end() :]
        return (where, None, None) if one is None else (where, *_nearest(*one, inner))

    return place


def parsed(module: ast.Module) -> ast.expr | None:
    """The expression that is assigned to ``job``; None where there is none."""
    found = _job(module)
    return found and found[1]


def assigns_jobs(code: bytes) -> bool:
    """True where a module assigns `job` or `jobs`, also where it is no Python; a text in it does not count."""
    try:
        module = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return True
    return any(_assigned(module, name) for name in ("job", "jobs"))


def inside(value: ast.expr, where: str) -> tuple[int, int]:
    """Line and column, from 1, of a field of a declaration: its keyword, else the nearest that holds it."""
    return _nearest(value, value, where)


def _nearest(spot: ast.stmt | ast.expr | ast.keyword, value: ast.expr, where: str) -> tuple[int, int]:
    for step in _STEP.findall(where):
        found = _inside(value, step)
        if found is None:
            break
        spot, value = found
    return spot.lineno, spot.col_offset + 1


def _job(module: ast.Module) -> _Assigned | None:
    """The last assignment to `job` at the module's level; None where there is none."""
    return _assigned(module, "job")


def _assigned(module: ast.Module, name: str) -> _Assigned | None:
    found: _Assigned | None = None
    for statement in module.body:
        match statement:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                targets = [target]
            case _:
                continue
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            found = statement, value
    return found


def _entry(module: ast.Module, several: _Assigned, index: int) -> _Assigned:
    """One of a list of jobs: written in it, or assigned to a name before; else the list."""
    spot, value = several
    if not isinstance(value, ast.List | ast.Tuple) or index >= len(value.elts):
        return spot, value
    entry = value.elts[index]
    if isinstance(entry, ast.Name):
        return _assigned(module, entry.id) or (entry, entry)
    return entry, entry


def _inside(value: ast.expr, step: str) -> tuple[ast.expr | ast.keyword, ast.expr] | None:
    match value:
        case ast.Call():
            return next(((each, each.value) for each in value.keywords if each.arg == step), None)
        case ast.Dict():
            pairs = zip(value.keys, value.values, strict=True)
            return next(
                ((key, each) for key, each in pairs if isinstance(key, ast.Constant) and key.value == step), None
            )
        case ast.List() | ast.Tuple() if step.isdecimal() and int(step) < len(value.elts):
            return value.elts[int(step)], value.elts[int(step)]
        case _:
            return None
