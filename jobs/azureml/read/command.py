"""An Azure ML CLI v2 command job file (``az ml job create -f``) as a `Job`, passed through unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.containers import keys
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import text, word
from jobs.azureml.read import data, environments, runtime
from jobs.launchers import Custom
from jobs.model.job import Job
from jobs.model.values import Code
from jobs.wire.keys import BLOCKS, PLACES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _code(cursor: Cursor) -> Any:
    value = text(cursor)
    return Bad if value is Bad else Code(path=value)


def _compute(cursor: Cursor) -> Any:
    value = text(cursor)
    if value == "":
        return cursor.bad("value-empty", "`compute` is empty", "A job names its compute, or leaves the key out")
    return value if value is Bad or value.lower() != "local" else "local"


_READERS: Mapping[str, Callable[[Cursor], Any]] = {
    "code": _code,
    "environment": environments.environment,
    "environment_variables": data.variables,
    "inputs": data.inputs,
    "outputs": data.outputs,
    "distribution": runtime.distribution,
    "resources": runtime.resources,
    "compute": _compute,
    "limits": runtime.limits,
    "queue_settings": runtime.queue,
    "identity": runtime.identity,
    "services": runtime.services,
    "tags": data.tags,
    "properties": data.tags,
}
KEYS = {
    "type": word({"command": "command"}, str),
    **{key: _READERS.get(key, text) for key in BLOCKS},
}
"""Keys of a command job; those without a reader of their own are text."""
READ_ONLY = ("$schema", "id", "status", "creation_context", "log_files", "parameters")

_STANDING_IN: dict[str, Any] = {"command": "true", "environment": "azureml:missing:0"}
"""For what a file lacks and its findings ask for; they are errors, so that no such job is ever rendered."""


def path_of(where: str) -> tuple[str, ...]:
    """The keys in the file for a path in the job: ``nodes`` is ``resources.instance_count``."""
    first, *rest = where.split(".")
    return (*PLACES.get(first, (first,)), *rest)


def read(
    cursor: Cursor, table: Mapping[str, Callable[[Cursor], Any]] = KEYS, *, default: Mapping[str, Any] | None = None
) -> Job | None:
    """Read a command job; None when it is too broken to be one (its faults are in ``cursor.findings``).

    Args:
        cursor: Its content.
        table: Its keys; a step of a pipeline reads some of them in another way.
        default: What stands for a key that the file leaves out.
    """
    before = len(cursor.findings)
    default = {key: value for key, value in (default or {}).items() if key not in cursor.value}
    fields = default | dict(keys(cursor, table, ignored=READ_ONLY, what="a command job"))
    for key, remedy in (
        ("command", "Write `command: python train.py …`."),
        ("environment", "Write `environment: azureml:NAME@latest`, or a mapping with `image`."),
    ):
        if isinstance(cursor.value, dict) and key not in cursor.value and key not in fields:
            cursor.bad("key-missing", f"The job has no `{key}`", f"A command job has its `{key}`", remedy)
    if len(cursor.findings) > before and not {"command", "environment"} <= fields.keys():
        if table is not KEYS or not isinstance(cursor.value, dict) or not fields.keys() - {"type"}:
            return None
        # The rest of the file is judged all the same, so that one run shows all its errors.
        fields = _STANDING_IN | fields
    fields.pop("type", None)
    fields |= fields.pop("resources", {})
    if "distribution" in fields:
        fields["launcher"] = Custom(distribution=fields.pop("distribution"))
    return Job(**fields)
