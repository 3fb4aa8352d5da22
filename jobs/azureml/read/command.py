"""An Azure ML CLI v2 command job file (``az ml job create -f``) as a `Job`, passed through unchanged.

Its blocks are read here: distribution, resources, limits, queue, identity, services, and the environment (a reference,
one written inline, or one in a file of its own).
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base import yamltext
from amlstack.base.findings import Finding, Level
from amlstack.base.paths import is_file
from amlstack.base.text import snake
from jobs.azureml.fields import (
    Bad,
    Cursor,
    Reader,
    Readers,
    anything,
    at_least,
    by_text,
    count,
    has_keys,
    keys,
    listed,
    mapping,
    named,
    same,
    seconds,
    size_of_memory,
    text,
    truth,
    unsent,
    whole,
    word,
)
from jobs.azureml.read import data
from jobs.launchers import Custom, MpiDistribution, PyTorchDistribution, RayDistribution, TensorFlowDistribution
from jobs.model.job import NO_ENVIRONMENT, Job
from jobs.values import Build, Code, Environment, Identity, Limits, Model, QueueSettings, Service
from jobs.wire import keys as keys_table
from jobs.wire.keys import BLOCKS, PLACES

if TYPE_CHECKING:
    from amlstack.base.yamltext import Text

_PROCESSES = {"type": anything, "process_count_per_instance": count}
_KINDS: Mapping[str, tuple[type[Model], Readers]] = {
    "pytorch": (PyTorchDistribution, _PROCESSES),
    "mpi": (MpiDistribution, _PROCESSES),
    "tensorflow": (
        TensorFlowDistribution,
        {"type": anything, "worker_count": count, "parameter_server_count": at_least(0)},
    ),
    "ray": (
        RayDistribution,
        {
            "type": anything,
            "port": whole,
            "address": text,
            "include_dashboard": truth,
            "dashboard_port": whole,
            "head_node_additional_args": text,
            "worker_node_additional_args": text,
        },
    ),
}
_KIND = word(same(*_KINDS))


def distribution(cursor: Cursor) -> Any:
    """A distribution; its type in any letter case."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping with `type`", "Write `type: pytorch`, `mpi`, `tensorflow` or `ray`.")
    rule, remedy = "Its type says who starts the processes", "Write `type: pytorch`, `mpi`, `tensorflow` or `ray`."
    written = has_keys(cursor, cursor.value, ("type",), "The distribution has no `{}`", rule, remedy=remedy)
    if not written or (kind := _KIND(cursor.at("type"))) is Bad:
        return Bad
    model, table = _KINDS[kind]
    fields = dict(keys(cursor, table, what=f"a {kind} distribution"))
    return model(**{**fields, "type": kind})


RESOURCES = {
    "instance_count": count,
    "instance_type": text,
    "locations": listed(text),
    "max_instance_count": count,
    "shm_size": size_of_memory,
    "docker_args": lambda cursor: listed(text)(cursor) if isinstance(cursor.value, list) else text(cursor),
    "properties": mapping,
}
"""Keys of resources."""
_RESOURCE_FIELDS = {key.in_file: key.field for key in keys_table.RESOURCES}


def resources(cursor: Cursor) -> Any:
    """Resources, as fields of the job."""
    fields = dict(keys(cursor, RESOURCES, what="the resources"))
    fields.setdefault("properties", {})
    return {_RESOURCE_FIELDS[key]: value for key, value in fields.items()}


def limits(cursor: Cursor) -> Any:
    """Limits of a command job."""
    return Limits(**dict(keys(cursor, {"timeout": seconds}, what="the limits")))


_QUEUE = {
    "job_tier": word(same("spot", "basic", "standard", "premium", "null")),
    "priority": word(same("low", "medium", "high")),
}


def queue(cursor: Cursor) -> Any:
    """Queue settings."""
    return QueueSettings(**dict(keys(cursor, _QUEUE, what="the queue settings")))


_IDENTITY = word({**same("managed", "user_identity", "aml_token"), "managed_identity": "managed"}, snake)
_IDS = {"type": _IDENTITY, "client_id": text, "object_id": text}


def identity(cursor: Cursor) -> Any:
    """The identity of a job."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping with `type`")
    if "msi_resource_id" in cursor.value:
        return cursor.stated("key-unsupported/identity", Level.ERROR, "msi_resource_id")
    fields = dict(keys(cursor, _IDS, what="an identity"))
    rule, remedy = "Its type says as whom the job runs", "Write `type: managed`, `user_identity` or `aml_token`."
    if not has_keys(cursor, fields, ("type",), "The identity has no `{}`", rule, remedy=remedy):
        return Bad
    if fields["type"] != "managed" and len(fields) > 1:
        return cursor.stated("key-unknown/identity", fields=fields["type"])
    return Identity(**fields)


_SERVICE = {
    "type": text,
    "port": whole,
    "nodes": word({"all": "all"}, str),
    "properties": named(anything, numbers=True),
    "ssh_public_keys": text,
    "log_dir": text,
}
_SERVICE_TYPES = ("ssh", "tensor_board", "vs_code", "jupyter_lab")
OWN_KEY = {"ssh_public_keys": "ssh", "log_dir": "tensor_board"}


def service(cursor: Cursor) -> Any:
    """One service; without a type it is ssh, or tensor_board when it has a log_dir, as the real loader reads it."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping with `type`")
    fields = dict(keys(cursor, _SERVICE, ignored=("endpoint", "status", "error_message", "$schema"), what="a service"))
    if len(fields) != len(set(cursor.value) & set(_SERVICE)):
        return Bad
    written = fields.pop("type", None)
    kind = written.lower() if written is not None else ("tensor_board" if "log_dir" in fields else "ssh")
    for key, owner in OWN_KEY.items():
        if key in fields and kind != owner:
            return cursor.stated("key-unknown/service", Level.ERROR, key, key=key, written=written or kind, owner=owner)
    if kind not in _SERVICE_TYPES:
        seen = f"`{written}` is no kind of service that a job starts"
        rule = f"Jobs start {', '.join(f'`{name}`' for name in _SERVICE_TYPES)}; of others Azure ML is sent no type"
        cursor.bad("service-type", seen, rule, level=Level.WARNING, key="type")
        return Service(**fields)
    return Service(type=kind, **fields)


services = named(service)


_BUILD = {"path": text, "dockerfile_path": text}


def build(cursor: Cursor) -> Any:
    """A Docker build context."""
    fields = dict(keys(cursor, _BUILD, what="a build context"))
    complete = has_keys(cursor, fields, ("path",), "The build context has no `{}`", "It is a folder with a Dockerfile")
    return Build(**fields) if complete else Bad


def conda(cursor: Cursor) -> Any:
    """A conda specification: a file, or its content."""
    if isinstance(cursor.value, dict):
        return by_text(cursor)
    if isinstance(cursor.value, str):
        if cursor.value.startswith("file:"):
            return cursor.stated("path-form", cursor=cursor, value=cursor.value.removeprefix("file:"))
        return cursor.value
    return cursor.wrong("a path, or the content of a conda file")


def _image(cursor: Cursor) -> Any:
    if cursor.value == "":
        return cursor.bad("value-empty", "`image` is empty", "An image has a name", "Write the name, or a `build`.")
    return text(cursor)


ENVIRONMENT = {
    "image": _image,
    "conda_file": conda,
    "build": build,
    "os_type": word(same("linux", "windows")),
    "name": unsent,
    "version": unsent,
    "description": text,
    "tags": mapping,
    "inference_config": mapping,
    "datastore": text,
}
"""Keys of an inline environment."""


def environment(cursor: Cursor) -> Any:
    """An environment: a reference, or one written inline."""
    value = cursor.value
    if isinstance(value, dict):
        if found := [key for key in ("channels", "dependencies") if key in value]:
            return cursor.stated("environment-conda", Level.ERROR, found[0], found=found[0])
        fields = dict(keys(cursor, ENVIRONMENT, ignored=("id", "$schema", "creation_context"), what="an environment"))
        return Environment(**fields)
    if not isinstance(value, str):
        return cursor.wrong("a reference such as `azureml:NAME:VERSION`, or a mapping with `image`")
    if value.startswith("file:"):
        return _environment_file(cursor)
    if not value.startswith("azureml:"):
        return cursor.stated("environment-form", value=value)
    return value


def _environment_file(cursor: Cursor) -> Any:
    """An environment in a file of its own; its paths start in that file's folder."""
    path = cursor.base / cursor.value.removeprefix("file:")
    if not is_file(path):
        return cursor.bad("environment-missing", f"`{cursor.value}` is not there", "A file that is named must exist")
    _, value, _ = read_named_file(cursor, path, environment)
    return environment_from(value, path_from(path.parent, cursor.base)) if isinstance(value, Environment) else value


def read_named_file(cursor: Cursor, path: Path, read: Reader) -> tuple[Text, Any, list[tuple[Any, Finding]]]:
    """A file that another one names: its text, its value (`Bad` for none), and its findings.

    The findings are reported at the name, with their places in the file.
    """
    content = yamltext.read(path)
    found: list[tuple[Any, Finding]] = [((), finding) for finding in content.findings]
    value: Any = Bad
    if content.data is not None or not content.findings:
        value = read(Cursor(content.data, (), found, path.parent))
    for place, finding in found:
        line, column = content.spot(place) or (None, None)
        cursor.findings.append((cursor.path, finding.at(str(path), line, column)))
    return content, value, found


def path_from(folder: Path, base: Path) -> Callable[[str], str]:
    """A function from a path that starts in a folder to the same path from a base."""
    there = os.path.relpath(folder, base)
    return lambda path: path if posixpath.isabs(path) else posixpath.normpath(posixpath.join(there, path))


def environment_from(environment: Environment, seen: Callable[[str], str]) -> Environment:
    """An environment with its paths changed."""
    update: dict[str, Any] = {}
    if isinstance(environment.conda_file, str):
        update["conda_file"] = seen(environment.conda_file)
    if environment.build is not None and "://" not in environment.build.path:
        update["build"] = environment.build.model_copy(update={"path": seen(environment.build.path)})
    return environment.model_copy(update=update)


def _code(cursor: Cursor) -> Any:
    value = text(cursor)
    return Bad if value is Bad else Code(path=value)


def _compute(cursor: Cursor) -> Any:
    value = text(cursor)
    if value == "":
        return cursor.bad("value-empty", "`compute` is empty", "A job names its compute, or leaves the key out")
    return value if value is Bad or value.lower() != "local" else "local"


_READERS: Readers = {
    "code": _code,
    "environment": environment,
    "environment_variables": data.variables,
    "inputs": data.inputs,
    "outputs": data.outputs,
    "distribution": distribution,
    "resources": resources,
    "compute": _compute,
    "limits": limits,
    "queue_settings": queue,
    "identity": identity,
    "services": services,
    "tags": data.tags,
    "properties": data.tags,
}
KEYS = {"type": word({"command": "command"}, str), **{key: _READERS.get(key, text) for key in BLOCKS}}
"""Keys of a command job; those without a reader of their own are text."""
READ_ONLY = ("$schema", "id", "status", "creation_context", "log_files", "parameters")

_STANDING_IN: dict[str, Any] = {"command": "true", "environment": NO_ENVIRONMENT}
"""For what a file lacks and its findings ask for; they are errors, so that no such job is ever rendered."""


def path_of(where: str) -> tuple[str, ...]:
    """The keys in the file for a path in the job: ``nodes`` is ``resources.instance_count``."""
    first, *rest = where.split(".")
    return (*PLACES.get(first, (first,)), *rest)


def read(cursor: Cursor, table: Readers = KEYS, *, default: Mapping[str, Any] | None = None) -> Job | None:
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
    return Job(**job_fields(fields))


def job_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a job, of the values of a file's keys: resources stand beside the others, a launcher is made."""
    fields = {key: value for key, value in values.items() if key not in ("type", "resources", "distribution")}
    if "distribution" in values:
        fields["launcher"] = Custom(distribution=values["distribution"])
    return {**fields, **values.get("resources", {})}
