"""pydantic's validation errors as findings: one a fault, in the reader's words, with near misses for unknown fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.base.models import models_in
from amlstack.base.models.errors import must
from amlstack.base.near_misses import did_you_mean
from jobs.launchers import TYPED, Custom
from jobs.model.component import Component
from jobs.model.job import Job
from jobs.model.pipeline import Pipeline
from jobs.model.schedule import Schedule
from jobs.model.step import Step, SweepStep
from jobs.model.sweep import Sweep

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

Place = tuple[str | int, ...]

_DECLARED = (Job, Sweep, Pipeline, Step, SweepStep, Component, Schedule)

_KINDS = {launcher.model_fields["type"].default: launcher for launcher in (Custom, *TYPED)}
_BRANCHES = frozenset({"bool", "int", "float", "str", "constrained-int", *_KINDS})


def findings_of(error: ValidationError) -> tuple[Finding, ...]:
    """One finding per fault; of a union's branches only the deepest error, in the branch that was meant."""
    by_place: dict[Place, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        by_place.setdefault(_written(detail["loc"]), []).append(detail)
    deepest = {
        place: details
        for place, details in by_place.items()
        if not any(len(other) > len(place) and other[: len(place)] == place for other in by_place)
    }
    return tuple(_finding(place, details, error.title) for place, details in deepest.items())


def _finding(place: Place, details: list[ErrorDetails], title: str) -> Finding:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
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
    """What a value must be; of a class its name too, by which it is written in Python."""
    if detail["type"] == "model_type":
        return f"be a mapping or an instance of {detail['ctx']['class_name']}"
    return must(detail)


def _written(loc: Place) -> Place:
    """The place as it is written: without the names of union branches and validators that pydantic puts in."""
    return tuple(step for step in loc if isinstance(step, int) or not _branch(step))


def _branch(step: str) -> bool:
    return step in _BRANCHES or step[:1].isupper() or "[" in step or "-" in step


def _owners(loc: Place, title: str) -> list[type[BaseModel]]:
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
