"""The kind of an Azure ML file by what is in it: the reader of a job or schedule, or the name of what is no job.

A component in a file of its own is read as the job that it would be.
A file that is no job (an environment, a data asset, a deployment, a tool's own settings) has one finding, which names
it: read as a command job it would have a finding for every key, none of them true.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from amlstack.base.findings import Level
from amlstack.base.paths import is_file, names_in
from amlstack.base.text import did_you_mean
from jobs.azureml.fields import (
    Bad,
    Cursor,
    Reader,
    at_least,
    each_read,
    has_keys,
    keys,
    same,
    source_of,
    text,
    unreadable,
    whole,
    word,
)
from jobs.azureml.read import command, component, data
from jobs.model.job import PRIMITIVES, Job, NotGiven, asset
from jobs.model.pipeline import (
    WEEK_DAYS,
    Cron,
    Pattern,
    Pipeline,
    PipelineSettings,
    Recurrence,
    Schedule,
    port_literals,
)
from jobs.values import Output


class KindReader(NamedTuple):
    """The reader of a kind of file.

    Attributes:
        read: Reads the file; None when it is too broken.
        path_of: From a path in the job or schedule to the keys in its file.
    """

    read: Reader
    path_of: Callable[[str], tuple[str, ...]]


def is_schedule(content: Any) -> bool:
    """True for a schedule, which has no type."""
    return isinstance(content, dict) and "type" not in content and bool({"create_job", "trigger"} & content.keys())


def is_component(content: Any) -> bool:
    """True for a component of any type: by its schema, or by the version that only a component has."""
    if not isinstance(content, dict):
        return False
    schema = str(content.get("$schema", "")).lower()
    return "component" in schema if schema else "version" in content


def is_command_component(data: Any) -> bool:
    """True where a file of type command, or of no type, is a component, not a job."""
    if not isinstance(data, dict):
        return False
    if component.in_older_dialect(data):
        return True
    if data.get("type", "command") != "command":
        return False
    if "component" in str(data.get("$schema", "")).lower():
        return True
    return "$schema" not in data and ("is_deterministic" in data or ("version" in data and "name" in data))


def is_pipeline_component(data: Any) -> bool:
    """True where a file of type pipeline is a component, not a job: its schema says so, or it has what no job has."""
    if not isinstance(data, dict) or data.get("type") != "pipeline":
        return False
    if "$schema" in data:
        return "component" in str(data["$schema"]).lower()
    ports = data.get("inputs")
    kinds = [port.get("type") for port in ports.values() if isinstance(port, dict)] if isinstance(ports, dict) else []
    return "version" in data or "is_deterministic" in data or any(kind in PRIMITIVES for kind in kinds)


def reader_of(content: Any) -> KindReader | None:
    """The reader of a file with this content, a job or a schedule; None for a kind that is not read."""
    if is_schedule(content):
        return KindReader(read_schedule, path_as_written)
    if is_command_component(content):
        return KindReader(_read_command_component, command.path_of)
    match content.get("type", "command") if isinstance(content, dict) else "command":
        case "command":
            return KindReader(command.read, command.path_of)
        case "sweep":
            from jobs.azureml.read import sweep  # noqa: PLC0415 - most files are of one command

            return KindReader(sweep.read, sweep.path_of)
        case "pipeline":
            from jobs.azureml.read import pipeline  # noqa: PLC0415 - as above

            read = _read_pipeline_component if is_pipeline_component(content) else pipeline.read
            return KindReader(read, pipeline.path_of)
        case _:
            return None


def _read_command_component(cursor: Cursor) -> Job | None:
    """The job that a component would be; None when it is too broken to be one."""
    read = component.read_older_dialect if component.in_older_dialect(cursor.value) else component.read
    found = read(cursor)
    if found is None:
        return None
    _note_component(cursor, "the command job")
    job = found.job()
    # Run alone, a component gets no optional input, and the part of its command with one falls away.
    given = {
        name: NotGiven() if port.literal and port.default is None else job.inputs[name]
        for name, port in found.inputs.items()
        if not port.optional or port.default is not None
    }
    return job.model_copy(update={"inputs": given})


def _read_pipeline_component(cursor: Cursor) -> Pipeline | None:
    """The pipeline that a component would be; None when it is too broken to be one."""
    from jobs.azureml.read import passthrough, pipeline  # noqa: PLC0415 - as above

    found = passthrough.read_component(cursor, "pipeline", passthrough.Steps(pipeline.steps, pipeline.path_of))
    if found is None:
        return None
    _note_component(cursor, "the pipeline")
    defaults = {name: port.default for name, port in found.inputs.items() if port.default is not None}
    return Pipeline(
        jobs=found.jobs,
        inputs={**port_literals(found.inputs), **defaults},
        outputs={name: Output(type=asset(port)) for name, port in found.outputs.items()},
        display_name=found.display_name,
        description=found.description,
        tags=found.tags,
        # The pipeline that runs a component says where its steps run; alone they run serverless.
        settings=PipelineSettings(default_compute="serverless"),
    )


def _note_component(cursor: Cursor, what: str) -> None:
    """Says that the file is a component, and as what it is read."""
    cursor.stated("component-alone", Level.WARNING, what=what)


RULE = "A job file has a `command`, or a `type` such as `pipeline` with `jobs`"
OF_A_JOB = (
    *("command", "code", "compute", "component", "create_job", "distribution", "environment", "jobs", "limits"),
    *("launcher", "resources", "trial", "trigger"),
)
"""Keys of which a file has at least one that was meant as a job."""


class OtherFile(NamedTuple):
    """A kind of file that is no job.

    Attributes:
        what: Its name in a sentence.
        remedy: The way in which a job uses it; empty where none does.
    """

    what: str
    remedy: str = ""


CONDA = OtherFile("a conda environment", "Name it in a job: `environment: {image: IMAGE, conda_file: FILE}`.")
ENVIRONMENT = OtherFile("an environment", "Name it in a job: `environment: file:FILE`.")
DATA = OtherFile(
    "a data asset", "Create it with `az ml data create --file FILE` and name it in a job: `azureml:NAME@latest`."
)
MODEL = OtherFile(
    "a model", "Create it with `az ml model create --file FILE` and name it in a job: `azureml:NAME@latest`."
)
DATASTORE = OtherFile("a datastore", "Create it with `az ml datastore create --file FILE`.")
COMPUTE = OtherFile("a compute", "Create it with `az ml compute create --file FILE`.")
WORKSPACE = OtherFile("a workspace", "Create it with `az ml workspace create --file FILE`.")
ENDPOINT = OtherFile("an endpoint")
DEPLOYMENT = OtherFile("a deployment of a model")
FLOW = OtherFile("a prompt flow")
UNKNOWN = OtherFile("no job: it has no key of one")

_BY_SCHEMA: Mapping[str, OtherFile] = {
    "promptflow": FLOW,
    "environment": ENVIRONMENT,
    "deployment": DEPLOYMENT,
    "endpoint": ENDPOINT,
    "data.schema": DATA,
    "mltable": DATA,
    "model.schema": MODEL,
    "azureblob": DATASTORE,
    "azurefile": DATASTORE,
    "azuredatalake": DATASTORE,
    "compute": COMPUTE,
    "workspace": WORKSPACE,
}
"""Part of a `$schema` address, in lower case, to the kind of file; the first one that fits holds."""

_BY_TYPE: Mapping[str, OtherFile] = {
    **dict.fromkeys(("uri_file", "uri_folder", "mltable"), DATA),
    **dict.fromkeys(("mlflow_model", "custom_model", "triton_model"), MODEL),
    **dict.fromkeys(("azure_blob", "azure_file", "azure_data_lake_gen1", "azure_data_lake_gen2"), DATASTORE),
    **dict.fromkeys(("amlcompute", "computeinstance", "virtualmachine", "kubernetes", "synapsespark"), COMPUTE),
}
"""`type` of a file to its kind."""


def recognized(content: Any) -> OtherFile | None:
    """The kind of a file that is no job; None for one that is a job, or was meant as one."""
    if not isinstance(content, dict) or not content or "command" in content:
        return None
    schema = str(content.get("$schema", "")).lower()
    if not schema.endswith("job.schema.json") and not schema.endswith("component.schema.json"):
        for part, other in _BY_SCHEMA.items():
            if part in schema:
                return other
    if (kind := content.get("type")) is not None:
        return _BY_TYPE.get(str(kind).lower())
    return _by_keys(content) if not schema else None


def _by_keys(content: Mapping[Any, Any]) -> OtherFile | None:
    keys = {str(key) for key in content}
    if isinstance(content.get("dependencies"), list) and keys <= {"name", "channels", "dependencies", "prefix"}:
        return CONDA
    if keys & {"image", "build", "conda_file"} and not keys & {"code", "distribution", "resources", "jobs"}:
        return ENVIRONMENT
    import difflib  # noqa: PLC0415 - only a file without a command needs it

    meant = any(difflib.get_close_matches(key.lower(), OF_A_JOB, 1, cutoff=0.8) for key in keys)
    return None if meant else UNKNOWN


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
    return Pattern(**fields) if has_keys(cursor, fields, ("hours", "minutes")) else Bad


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
    written = has_keys(cursor, cursor.value, ("type",), "The trigger has no `{}`", "It is `cron` or `recurrence`")
    if not written or (kind := _KIND(cursor.at("type"))) is Bad:
        return Bad
    if kind == "cron":
        fields = dict(keys(cursor, CRON, what="a cron trigger"))
        return Cron(**fields) if has_keys(cursor, fields, ("expression",)) else Bad
    fields = dict(keys(cursor, RECURRENCE, what="a recurrence"))
    return Recurrence(**fields) if has_keys(cursor, fields, ("frequency", "interval")) else Bad


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
        return cursor.stated("key-unknown", Level.ERROR, "jobs")
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
        return cursor.stated("job-missing", written=written, remedy=did_you_mean(path.name, names))

    def read_changed(inner: Cursor) -> Any:
        return _read(inner.holding(_merged(inner.value, changes)))

    content, fields, found = command.read_named_file(cursor, path, read_changed)
    if fields is None or fields is Bad:
        return Bad
    reader = reader_of(_merged(content.data, changes))
    assert reader is not None  # noqa: S101 - by it the job was read
    source = source_of(content, path.parent, reader.path_of, unreadable(found))
    return {"create_job": fields, "source": source}


def _read(cursor: Cursor) -> Any:
    reader = reader_of(cursor.value)
    if reader is None or is_schedule(cursor.value):
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


SCHEDULE_KEYS = {
    "name": text,
    "display_name": text,
    "description": text,
    "tags": data.tags,
    "properties": data.tags,
    "trigger": _trigger,
    "create_job": _job,
}
SCHEDULE_READ_ONLY = (*command.READ_ONLY, "is_enabled", "provisioning_state")


def path_as_written(where: str) -> tuple[str, ...]:
    """The keys in a file for a path in what it declares, where the two are spelt alike, as in a schedule."""
    return tuple(where.split("."))


def read_schedule(cursor: Cursor) -> Schedule | None:
    """Read a schedule; None when it is too broken to be one (its faults are in ``cursor.findings``)."""
    fields = dict(keys(cursor, SCHEDULE_KEYS, ignored=SCHEDULE_READ_ONLY, what="a schedule"))
    if not has_keys(cursor, fields, ("name", "trigger", "create_job")):
        return None
    return Schedule(**{**fields, **fields.pop("create_job")})
