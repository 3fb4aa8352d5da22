"""The keys of steps that are passed through, kind by kind, and of their components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.containers import keys
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import anything, mapping, nullable, same, text, truth, unsent, version, word
from jobs.azureml.read import command, port
from jobs.model.values import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Reader = Callable[[Cursor], Any]
    Readers = Mapping[str, Reader]

HERE = Code(path=".")
"""The code of a step of `RUNS_HERE` that names none, for azure-ai-ml the file's own folder."""
RUNS_HERE = ("spark",)
ENVIRONMENT: Reader = command.KEYS["environment"]
MOVES = {"copy_data": "", "import_data": "source", "export_data": "sink"}
"""Task of a data_transfer step to its key that names a place outside of Azure ML."""


def block(*required: str) -> Reader:
    """Reads a mapping with any values that has certain keys."""

    def read(cursor: Cursor) -> Any:
        value = mapping(cursor)
        missing = [key for key in required if value is not Bad and key not in value]
        for key in missing:
            cursor.bad("key-missing", f"`{cursor.path[-1]}` has no `{key}`", f"`{cursor.path[-1]}` has a `{key}`")
        return Bad if missing else value

    return read


def _code(cursor: Cursor) -> Any:
    value = text(cursor)
    return Bad if value is Bad else Code(path=value)


def _task(cursor: Cursor) -> Any:
    """The task of a parallel step, with its code and environment read."""
    value = block("type", "environment")(cursor)
    if value is Bad:
        return Bad
    read = {
        key: reader(cursor.at(key)) for key, reader in (("code", _code), ("environment", ENVIRONMENT)) if key in value
    }
    return Bad if Bad in read.values() else {**value, **read}


def _entry(cursor: Cursor) -> Any:
    value = mapping(cursor)
    if value is Bad or value.keys() in ({"file"}, {"class_name"}):
        return value
    return cursor.wrong("a mapping with `file`, or with `class_name`")


def _pool(cursor: Cursor) -> Any:
    return dict(keys(cursor, {"instance_type": text, "runtime_version": version}, what="the resources of a spark step"))


def _place(cursor: Cursor) -> Any:
    """A place outside of Azure ML that data comes from or goes to."""
    value = block("type", "connection")(cursor)
    kind = Bad if value is Bad else word(same("database", "file_system"))(cursor.at("type"))
    return Bad if kind is Bad else {**value, "type": kind}


SPECS: Mapping[str, Readers] = {
    "parallel": {
        **dict.fromkeys(("partition_keys", "input_data", "logging_level", "mini_batch_size", "error_threshold",
                         "max_concurrency_per_instance", "mini_batch_error_threshold"), anything),
        **dict.fromkeys(("retry_settings", "resources"), mapping),
        "task": _task,
    },
    "spark": {
        **dict.fromkeys(("py_files", "jars", "files", "archives", "args"), anything),
        "code": _code, "entry": _entry, "conf": mapping, "environment": nullable(ENVIRONMENT),
    },
    "pipeline": {},
    "data_transfer": {
        "task": word(same(*MOVES)), "data_copy_mode": word(same("merge_with_overwrite", "fail_if_conflict")),
    },
}  # fmt: skip
"""Keys of each kind that its component has too."""
STEPS: Mapping[str, Readers] = {
    "parallel": {"environment_variables": anything, "environment": anything},
    "spark": {"resources": _pool},
    "pipeline": {},
    "data_transfer": {"source": _place, "sink": _place},
}
COMPONENT: Readers = {
    **{key: command.KEYS[key] for key in ("display_name", "description", "tags")},
    "properties": mapping,
    "is_deterministic": truth,
    "inputs": port.inputs,
    "outputs": port.outputs,
    "$schema": text,
    **dict.fromkeys(("name", "version"), unsent),
}
REQUIRED = {"parallel": "task", "spark": "entry", "data_transfer": "task"}
