"""All mistakes of a Python job file in one run: a declaration that is refused is noted, and the file runs on."""

from __future__ import annotations

import ast
import contextlib
import sys
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from jobs.model.validation_errors import findings_of
from jobs.model.values import Model
from jobs.pythonfiles.field_lines import inside, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from amlstack.base.findings import Finding

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
    paths = dict(_paths("", parsed(module)))
    found: dict[Finding, None] = {}
    for mistake in mistakes:
        call = calls.get(mistake.call)
        for finding in findings_of(mistake.error):
            line, column = (mistake.call[0], None) if call is None else inside(call, finding.where)
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
