"""The job's documentation, made from the models: tables in Markdown."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from amlstack.base.models import described
from jobs.launchers import TYPED
from jobs.launchers.base import Shape
from jobs.launchers.custom import Custom
from jobs.model.job import Job
from jobs.model.sweep import SweepLimits
from jobs.model.values import Build, Code, Environment, Identity, Input, Limits, Output, QueueSettings, Service
from jobs.wire.command import DISTRIBUTIONS

if TYPE_CHECKING:
    from collections.abc import Collection

    from pydantic.fields import FieldInfo


EXAMPLE = Shape(nodes=2, gpus=8)
"""What the launcher table's examples are lowered onto."""


def launcher_table() -> str:
    """Every launcher with what it becomes on two nodes of eight GPUs, as a Markdown table."""
    rows = ["| launcher | Azure ML starts | the command becomes | reserved variables |", "| --- | --- | --- | --- |"]
    for kind in TYPED:
        shape = Shape(nodes=1, gpus=8) if kind.__name__ == "SingleNode" else EXAMPLE
        lowered = kind().lower("python train.py", shape)
        reserved = ", ".join(f"`{name}`" for name in sorted(kind.RESERVED))
        command = f"`{lowered.command}`" if lowered.command != "python train.py" else "stays"
        rows.append(f"| `{kind.__name__}` | {_started(lowered.distribution)} | {command} | {reserved} |")
    return "\n".join(rows)


def launcher_sections() -> str:
    """Every launcher with its fields, as Markdown."""
    return "\n\n".join(_section(kind) for kind in (*TYPED, Custom))


def job_table() -> str:
    """Every field of `Job`, as a Markdown table."""
    return _fields(Job, first=Job.__annotations__)  # what only jobs have


def part_sections() -> str:
    """Every part of a job that is a model of its own, with its fields."""
    parts = (Input, Output, Code, Environment, Build, Limits, Identity, Service, QueueSettings, SweepLimits)
    return "\n\n".join(_section(part) for part in parts)


def _section(kind: type[BaseModel]) -> str:
    text = inspect.cleandoc(kind.__doc__ or "").replace("``", "`")
    return f"### {kind.__name__}\n\n{text}\n\n{_fields(kind)}"


def _fields(model: type[BaseModel], first: Collection[str] = ()) -> str:
    rows = ["| field | default | meaning |", "| --- | --- | --- |"]
    meanings = described(model)
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] not in first):
        if name == "type" and field.annotation is not None and len(get_args(field.annotation)) == 1:
            continue
        words = ", ".join(f"`{word}`" for word in _words(field.annotation))
        meaning = f"{meanings[name]} {words}{'.' if words else ''}".strip().replace("|", "\\|")
        rows.append(f"| `{name}` | {_default(field)} | {meaning} |")
    return "\n".join(rows)


def _words(annotation: Any) -> list[str]:
    """The words of which a field takes one."""
    inside = get_args(annotation)
    if get_origin(annotation) is Literal:
        return [str(word) for word in inside]
    return [word for each in inside for word in _words(each)]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return ""
    return f"`{type(value).__name__}()`" if isinstance(value, BaseModel) else f"`{value!r}`"


def _started(distribution: Any) -> str:
    if distribution is None:
        return "the command once"
    result = distribution.model_dump(exclude_none=True, exclude={"type"})
    counts = ", ".join(f"`{key}` {value}" for key, value in result.items())
    return f"{DISTRIBUTIONS[distribution.type]}, {counts}"
