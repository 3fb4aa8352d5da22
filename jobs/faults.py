"""pydantic's validation errors as findings, with near misses for unknown keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from amlstack.findings import Finding
from jobs.launchers import TYPED, Custom
from jobs.near import did_you_mean
from jobs.spec import Job

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


def findings_of(error: ValidationError) -> tuple[Finding, ...]:
    """One finding per fault; of a union's branches only the one that came closest."""
    by_place: dict[tuple[Any, ...], list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        by_place.setdefault(_written(detail["loc"]), []).append(detail)
    return tuple(_finding(place, details, error.title) for place, details in by_place.items())


def _finding(place: tuple[Any, ...], details: list[ErrorDetails], title: str) -> Finding:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
    detail = details[0]
    shown = repr(detail.get("input"))
    shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
    match detail["type"]:
        case "extra_forbidden":
            known = _fields(place[:-1], title)
            return Finding(
                "key-unknown",
                where,
                f"`{place[-1]}` is no field of {title}",
                "Every field is a known one",
                did_you_mean(str(place[-1]), known),
            )
        case "missing":
            return Finding("key-missing", where, f"`{place[-1]}` is not given", f"A {title} has it")
        case _:
            rules = dict.fromkeys(each["msg"].removeprefix("Value error, ") for each in details)
            return Finding("value-kind", where, f"{shown} stands here", "; or ".join(rules))


def _written(loc: tuple[Any, ...]) -> tuple[Any, ...]:
    """The place as it is written: without the names of union branches and validators that pydantic puts in."""
    return tuple(
        step
        for step in loc
        if isinstance(step, int) or not (step in _BRANCHES or step[:1].isupper() or "[" in step or "-" in step)
    )


_KINDS = (launcher.model_fields["type"].default for launcher in (Custom, *TYPED))
_BRANCHES = frozenset({"bool", "int", "float", "str", "constrained-int", *_KINDS})


def _fields(place: Iterable[Any], title: str) -> tuple[str, ...]:
    """Names of the fields at a place, as far as the models say."""
    models: list[Any] = [Job] if title == "Job" else [model for model in _models(Job) if model.__name__ == title]
    for step in place:
        models = [
            inner
            for model in models
            if step in model.model_fields
            for inner in _inside(model.model_fields[step].annotation)
        ] or models
    return tuple(dict.fromkeys(name for model in models for name in model.model_fields))


def _models(model: Any) -> list[Any]:
    found = [model]
    for field in model.model_fields.values():
        for inner in _inside(field.annotation):
            found += _models(inner)
    return found


def _inside(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [inner for argument in get_args(annotation) for inner in _inside(argument)]
