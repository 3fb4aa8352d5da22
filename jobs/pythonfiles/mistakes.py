"""All mistakes of a Python job file in one run: a declaration that is refused is noted, and the file runs on.

pydantic's validation errors become findings, one a fault, in the reader's words; the file's syntax tree has the line of
each field.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from amlstack.base.findings import Finding
from amlstack.base.models import models_in, must
from amlstack.base.models import where as dotted
from amlstack.base.text import did_you_mean
from amlstack.code_reading.code_files import tree_of
from jobs.launchers import LAUNCHERS
from jobs.model.job import Component, Job, Sweep
from jobs.model.pipeline import Pipeline, Schedule, Step, SweepStep
from jobs.values import Model, Place

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


ErrorPlace = tuple[str | int, ...]

_DECLARED: tuple[type[BaseModel], ...] = (Job, Sweep, Pipeline, Step, SweepStep, Component, Schedule)

_KINDS = {launcher.model_fields["type"].default: launcher for launcher in LAUNCHERS}
_BRANCHES = frozenset({"bool", "int", "float", "str", "constrained-int", *_KINDS})


def findings_of(error: ValidationError) -> tuple[Finding, ...]:
    """One finding per fault; of a union's branches only the deepest error, in the branch that was meant."""
    by_place: dict[ErrorPlace, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        by_place.setdefault(_written(detail["loc"]), []).append(detail)
    deepest = {
        place: details
        for place, details in by_place.items()
        if not any(len(other) > len(place) and other[: len(place)] == place for other in by_place)
    }
    return tuple(_finding(place, details, error.title) for place, details in deepest.items())


def _finding(place: ErrorPlace, details: list[ErrorDetails], title: str) -> Finding:
    where = dotted(place)
    detail = details[0]
    owners = _owners(detail["loc"][:-1], title)
    owner = owners[0].__name__ if owners else title
    if detail["type"] == "extra_forbidden":
        known = [
            name for model in owners for name in model.model_fields if name != "type" or model not in _KINDS.values()
        ]
        seen = f"`{place[-1]}` is not a known field of {owner}"
        return Finding("key-unknown", where, seen, "Every field is a known one", did_you_mean(str(place[-1]), known))
    if detail["type"] == "missing":
        return Finding("key-missing", where, f"`{place[-1]}` is not given", f"Every {owner} has it")
    shown = _shown(detail.get("input"))
    rules = dict.fromkeys(_must(each) for each in details)
    name = f"`{place[-1]}`" if place else title
    if all(rules):
        return Finding("value-kind", where or title, f"{name} must {', or '.join(rules)}, got `{shown}`", "")
    rule = "; ".join(each["msg"] for each in details)
    return Finding("value-kind", where or title, f"{name} cannot be `{shown}`", rule)


def _shown(value: object) -> str:
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 - a job file may bring classes of its own
        return f"<{type(value).__name__}>"
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def _must(detail: ErrorDetails) -> str:
    """The rule for a value; of a class its name too, by which it is written in Python."""
    if detail["type"] == "model_type":
        return f"be a mapping or an instance of {detail['ctx']['class_name']}"
    return must(detail)


def _written(loc: ErrorPlace) -> ErrorPlace:
    """The place as it is written: without the names of union branches and validators that pydantic puts in."""
    return tuple(step for step in loc if isinstance(step, int) or not _branch(step))


def _branch(step: str) -> bool:
    return step in _BRANCHES or step[:1].isupper() or "[" in step or "-" in step


def _owners(loc: ErrorPlace, title: str) -> list[type[BaseModel]]:
    """The models that a place may belong to, a union's branch by its name."""
    models: list[type[BaseModel]] = [model for model in (*_DECLARED, *_KINDS.values()) if model.__name__ == title]
    for step in loc:
        if step in _KINDS:
            models = [_KINDS[step]]
        elif isinstance(step, str) and (named := [model for model in models if model.__name__ == step]):
            models = named
        elif inner := [
            found
            for model in models
            if step in model.model_fields
            for found in models_in(model.model_fields[str(step)].annotation)
        ]:
            models = inner
    return models


_STEP = re.compile(r"[^.\[\]]+")
_LISTED = re.compile(r"jobs\[(\d+)\]\.?")
"""One of the file's several jobs; the steps of a pipeline go by names."""
_Assigned = tuple[ast.stmt | ast.expr | ast.keyword, ast.expr]


@lru_cache(maxsize=4)
def place_of(code: bytes) -> Callable[[str], Place]:
    """A function from a field (`launcher.program`) to its place: its keyword, else the nearest that holds it.

    Args:
        code: The file, which is Python.
    """
    module = tree_of(code) or ast.Module([], [])
    job = _assigned(module, "job")
    several = _assigned(module, "jobs") or job

    def place(where: str) -> Place:
        one, inner = job, where
        if (listed := _LISTED.match(where)) is not None and several is not None:
            one, inner = _entry(module, several, int(listed[1])), where[listed.end() :]
        return (where, None, None) if one is None else (where, *_nearest(*one, inner))

    return place


def assigns_jobs(code: bytes) -> bool:
    """True where a module assigns `job` or `jobs`, also where it is no Python; a text in it does not count."""
    module = tree_of(code)
    return module is None or any(_assigned(module, name) for name in ("job", "jobs"))


def _nearest(spot: ast.stmt | ast.expr | ast.keyword, value: ast.expr, where: str) -> tuple[int, int]:
    """Line and column, from 1, of a field of a declaration: its keyword, else the nearest that holds it."""
    for step in _STEP.findall(where):
        found = _field(value, step)
        if found is None:
            break
        spot, value = found
    return spot.lineno, spot.col_offset + 1


def _assigned(module: ast.Module, name: str) -> _Assigned | None:
    """The last assignment to a name at the module's level; None where there is none."""
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


def _field(value: ast.expr, step: str) -> tuple[ast.expr | ast.keyword, ast.expr] | None:
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


Span = tuple[int | None, int | None, int | None, int | None]
"""First line, last line, first column and last column of a call; lines from 1, columns in bytes from 0."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A declaration that its model refused.

    Attributes:
        error: What the model found, all of it.
        call: Where the file makes the declaration.
    """

    error: ValidationError
    call: Span


@contextlib.contextmanager
def noted(file: str) -> Iterator[list[Mistake]]:
    """While a job file runs, note what its models refuse instead of raising, so that its other mistakes are seen too.

    A refused declaration is left as it was given; it must not be used for anything but to go on.

    Args:
        file: Name of the file, as its frames bear it. A mistake of a module that it imports is noted at the import.
    """
    mistakes: list[Mistake] = []

    def init(self: Model, /, **data: Any) -> None:
        try:
            BaseModel.__init__(self, **data)
        except ValidationError as error:
            call = _call_in(file, sys._getframe(1))  # noqa: SLF001 - there is no other way to a caller's columns
            if call is None:
                raise
            mistakes.append(Mistake(error, call))
            made = type(self).model_construct(**{name: data[name] for name in data if name in type(self).model_fields})
            for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
                object.__setattr__(self, name, getattr(made, name))

    Model.__init__ = init  # type: ignore[assignment, method-assign]
    try:
        yield mistakes
    finally:
        del Model.__init__


def placed(mistakes: list[Mistake], code: bytes, file: str) -> tuple[Finding, ...]:
    """Mistakes as findings, each at its own keyword, with its whole path in the job where it is written inside of it.

    Args:
        mistakes: In the order in which they were made.
        code: The file, which is Python.
        file: Its name.
    """
    module = ast.parse(code)
    calls = {_span(node): node for node in ast.walk(module) if isinstance(node, ast.Call)}
    job = _assigned(module, "job")
    paths = dict(_paths("", job and job[1]))
    found: dict[Finding, None] = {}
    for mistake in mistakes:
        call = calls.get(mistake.call)
        for finding in findings_of(mistake.error):
            line, column = (mistake.call[0], None) if call is None else _nearest(call, call, finding.where)
            path = paths.get(mistake.call, mistake.error.title)
            found[(finding.under(path) if path else finding).at(file, line, column)] = None
    return tuple(found)


def _call_in(file: str, frame: FrameType | None) -> Span | None:
    """The call that the nearest frame of the file is in."""
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return None if frame is None else next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))


def _span(node: ast.expr) -> Span:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _paths(path: str, value: ast.expr | None) -> Iterator[tuple[Span, str]]:
    """Every call in a declaration with its path: `limits`, `jobs.train.launcher`."""
    match value:
        case ast.Call():
            yield _span(value), path
            for keyword in value.keywords:
                if keyword.arg:
                    yield from _paths(f"{path}.{keyword.arg}".lstrip("."), keyword.value)
        case ast.Dict():
            for key, each in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield from _paths(f"{path}.{key.value}".lstrip("."), each)
        case ast.List() | ast.Tuple():
            for number, each in enumerate(value.elts):
                yield from _paths(f"{path}[{number}]", each)
