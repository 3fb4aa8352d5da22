"""pydantic models inside annotations: which model a key of a declaration belongs to."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field's annotation names, those inside unions and collections too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inside in get_args(annotation) for model in models_in(inside)]
