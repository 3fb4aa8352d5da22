"""An Azure ML CLI v2 schedule file as a `Schedule`."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any

from amlstack.base.paths import is_file, names_in
from amlstack.base.text import did_you_mean
from jobs.azureml import consequences
from jobs.azureml.fields import Bad, Cursor, at_least, each_read, keys, same, source_of, text, whole, word
from jobs.azureml.read import command, data, kinds
from jobs.model.schedule import WEEK_DAYS, Cron, Pattern, Recurrence, Schedule

if TYPE_CHECKING:
    from pathlib import Path

    from jobs.azureml.fields import Reader


def _time(cursor: Cursor) -> Any:
    value = cursor.value
    if isinstance(value, str) and len(value) > len("2026-01-01"):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return cursor.wrong("a time such as `2026-01-01T08:00:00`")
        return value
    remedy = "Put it in quotes." if isinstance(value, datetime) else ""
    return cursor.wrong('a time in quotes, such as "2026-01-01T08:00:00"', remedy)


def _some(read: Reader) -> Reader:
    """A reader of one value or a list of them."""

    def read_all(cursor: Cursor) -> Any:
        if isinstance(cursor.value, list):
            return each_read(cursor, read)
        value = read(cursor)
        return Bad if value is Bad else (value,)

    return read_all


PATTERN = {
    "hours": _some(whole),
    "minutes": _some(whole),
    "week_days": _some(word(same(*WEEK_DAYS))),
    "month_days": _some(whole),
}


def _pattern(cursor: Cursor) -> Any:
    fields = dict(keys(cursor, PATTERN, what="a recurrence's schedule"))
    return Pattern(**fields) if _required(cursor, fields, "hours", "minutes") else Bad


def _required(cursor: Cursor, fields: dict[str, Any], *names: str) -> bool:
    for name in names:
        if isinstance(cursor.value, dict) and name not in cursor.value:
            cursor.bad("key-missing", f"There is no `{name}`", f"`{name}` belongs here")
    return set(names) <= fields.keys()


_KIND = word(same("cron", "recurrence"))
_TIMES = {"type": _KIND, "start_time": _time, "end_time": _time, "time_zone": text}
CRON = {**_TIMES, "expression": text}
RECURRENCE = {
    **_TIMES,
    "frequency": word(same("minute", "hour", "day", "week", "month")),
    "interval": at_least(1),
    "schedule": _pattern,
}


def _trigger(cursor: Cursor) -> Any:
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a trigger, a mapping with `type`")
    if "type" not in cursor.value:
        return cursor.bad("key-missing", "The trigger has no `type`", "It is `cron` or `recurrence`")
    kind = _KIND(cursor.at("type"))
    if kind is Bad:
        return Bad
    if kind == "cron":
        fields = dict(keys(cursor, CRON, what="a cron trigger"))
        return Cron(**fields) if _required(cursor, fields, "expression") else Bad
    fields = dict(keys(cursor, RECURRENCE, what="a recurrence"))
    return Recurrence(**fields) if _required(cursor, fields, "frequency", "interval") else Bad


def _job(cursor: Cursor) -> Any:
    """The started job, as keys of the schedule: one that ran before, or one of a file, perhaps with changes."""
    value = cursor.value
    if isinstance(value, str):
        return {"create_job": value} if value.startswith("azureml:") else _of_file(cursor, value, {})
    if not isinstance(value, dict):
        return cursor.wrong("a file, `azureml:NAME`, or a mapping with `job`")
    changes = {key: inner for key, inner in value.items() if key != "job"}
    job = value.get("job")
    if "jobs" in changes:
        return cursor.bad(
            "key-unknown",
            "`jobs` stands beside `job`",
            "A schedule changes inputs, outputs and settings of a job, not its steps",
            "Change the steps in the job's own file.",
            key="jobs",
        )
    if not isinstance(job, str):
        return cursor.bad("key-missing", "There is no `job`", "It names a file, or `azureml:NAME`")
    if not job.startswith("azureml:"):
        return _of_file(cursor, job, changes)
    if "type" not in changes:
        return cursor.bad("key-missing", "There is no `type`", "A job that ran before is changed by its `type`")
    declared = _read(cursor.holding(changes))
    return Bad if declared is None else {"create_job": declared, "source_job": job}


def _of_file(cursor: Cursor, written: str, changes: dict[str, Any]) -> Any:
    path: Path = cursor.base / written
    if written.startswith("file:") or not is_file(path):
        names = names_in(path.parent)
        return cursor.bad(
            "job-missing",
            f"`{written}` is not there",
            "A schedule names a job's file, or a job that ran before with `azureml:`",
            did_you_mean(path.name, names),
        )

    def read_changed(inner: Cursor) -> Any:
        return _read(inner.holding(_merged(inner.value, changes)))

    content, fields, found = command.read_named_file(cursor, path, read_changed)
    if fields is None or fields is Bad:
        return Bad
    reader = kinds.reader_of(_merged(content.data, changes))
    assert reader is not None  # noqa: S101 - by it the job was read
    source = source_of(content, path.parent, reader.path_of, consequences.unreadable(found))
    return {"create_job": fields, "source": source}


def _read(cursor: Cursor) -> Any:
    reader = kinds.reader_of(cursor.value)
    if reader is None or kinds.is_schedule(cursor.value):
        cursor.bad("file-type", "This is no job", "A schedule starts a job, a sweep or a pipeline")
        return None
    return reader.read(cursor)


def _merged(content: Any, changes: dict[str, Any]) -> Any:
    """A job file's content with changes laid over it, mappings key by key."""
    if not isinstance(content, dict):
        return content
    fields = copy.copy(content)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(fields.get(key), dict)
        fields[key] = _merged(fields[key], value) if both else value
    return fields


KEYS = {
    "name": text,
    "display_name": text,
    "description": text,
    "tags": data.tags,
    "properties": data.tags,
    "trigger": _trigger,
    "create_job": _job,
}
READ_ONLY = (*command.READ_ONLY, "is_enabled", "provisioning_state")


def path_of(where: str) -> tuple[str, ...]:
    """The keys in the file for a path in the schedule."""
    return tuple(where.split("."))


def read(cursor: Cursor) -> Schedule | None:
    """Read a schedule; None when it is too broken to be one (its faults are in ``cursor.findings``)."""
    fields = dict(keys(cursor, KEYS, ignored=READ_ONLY, what="a schedule"))
    if not _required(cursor, fields, "name", "trigger", "create_job"):
        return None
    return Schedule(**{**fields, **fields.pop("create_job")})
