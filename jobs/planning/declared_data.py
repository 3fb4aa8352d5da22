"""What a person wrote, as plain data: the part of a job that makes it the same run or another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from amlstack.base.paths import is_file
from jobs.model.values import Environment

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from jobs.model.job import Job

NOT_IDENTITY = frozenset(
    # Changed later without a new run; how the resource behaves; and what stands beside the declaration by itself.
    {"display_name", "description", "tags", "wait", "after", "on_edit", "delete_history", "name", "rerun", "code"}
)


def declaration(job: Job, base: Path) -> dict[str, Any]:
    """The job as JSON-able data without what is default, derived, or free to change.

    A default that is left out stays out, so that a new version of this project with one more field makes no new run.
    A conda file counts with its content. The code's content is hashed elsewhere.

    Args:
        job: As it was declared, before the plan adds anything.
        base: Folder that relative paths start from.
    """
    result = {name: value for name, value in _given(job).items() if name not in NOT_IDENTITY}
    if job.code is not None and not job.code.local:
        result["code"] = job.code.path
    if isinstance(job.environment, Environment) and isinstance(job.environment.conda_file, str):
        path = base / job.environment.conda_file
        if is_file(path):
            result["environment"]["conda_file"] = path.read_text(encoding="utf-8-sig", errors="replace")
    return result


def written(model: BaseModel, *, leave: Collection[str] = ()) -> dict[str, Any]:
    """A sweep's or pipeline's own part of the identity, without the fields that stand there in another form."""
    return {name: value for name, value in _given(model).items() if name not in NOT_IDENTITY and name not in leave}


def _given(model: BaseModel) -> dict[str, Any]:
    """A model's fields that differ from their defaults; of a union's branch its ``type`` stays, it says which one."""
    result = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        discriminator = name == "type" and len(get_args(field.annotation)) == 1
        if discriminator or value != field.get_default(call_default_factory=True, validated_data={}):
            result[name] = _data(value)
    return result


def _data(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _given(value)
    if isinstance(value, dict):
        return {str(key): _data(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_data(inner) for inner in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
