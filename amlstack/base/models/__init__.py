"""pydantic models inside annotations, and what the docstrings below their fields say."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterable


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field's annotation names, those inside unions and collections too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inside in get_args(annotation) for model in models_in(inside)]


def reached(models: Iterable[type[BaseModel]]) -> list[type[BaseModel]]:
    """Models, and all those that their fields name, each once."""
    found: dict[type[BaseModel], None] = {}
    waiting = list(models)
    while waiting:
        model = waiting.pop()
        if model not in found:
            found[model] = None
            waiting += [inner for field in model.model_fields.values() for inner in models_in(field.annotation)]
    return list(found)


def described(model: type[BaseModel]) -> dict[str, str]:
    """The docstring below every field in one line, those of base classes too; fields without one are left out.

    Docstrings, other than `Field(description=…)`, are what editors show.
    """
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        found |= _own(kind)
    return {name: found[name] for name in model.model_fields if name in found}


@cache
def _own(kind: type) -> dict[str, str]:
    body = [line for node in ast.parse(inspect.getsource(kind)).body for line in getattr(node, "body", ())]
    found: dict[str, str] = {}
    for statement, below in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            match below:
                case ast.Expr(ast.Constant(str(text))):
                    found[statement.target.id] = " ".join(text.split())
    return found
