"""The parts that job and component files of Azure ML share: inputs, outputs, environments and the rest."""

from __future__ import annotations

import math
import os
import posixpath
import re
from typing import TYPE_CHECKING, Any

from amlstack.findings import Finding, Level
from jobs import yamltext
from jobs.azureml.fields import (
    Bad,
    Cursor,
    anything,
    at_least,
    count,
    keys,
    listed,
    mapping,
    named,
    nullable,
    same,
    text,
    truth,
    version,
    whole,
    word,
)
from jobs.distribution import Mpi, PyTorch, Ray, TensorFlow
from jobs.values import Build, Environment, Identity, Input, Limits, Model, Output, QueueSettings, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DATA_TYPES = ("uri_file", "uri_folder")
MODEL_TYPES = ("mlflow_model", "custom_model", "triton_model")
MODES = ("ro_mount", "download", "direct")
EVAL_MODES = ("eval_mount", "eval_download")

_DATA_INPUT = {
    "type": word(same(*DATA_TYPES, *MODEL_TYPES, "mltable")),
    "path": text,
    "mode": word(same(*MODES, *EVAL_MODES)),
    "datastore": text,
    "path_on_compute": text,
}


def literal(cursor: Cursor) -> Any:
    """A literal input: text, a number, a truth value."""
    value = cursor.value
    if isinstance(value, float) and not math.isfinite(value):
        return cursor.wrong("a finite number, or text in quotes")
    if isinstance(value, (str, bool, int, float)):
        return value
    if value is None:
        return cursor.bad(
            "value-missing",
            f"`{cursor.path[-1]}` has no value",
            "An input has a value or a path",
            'Write "" for empty text.',
        )
    return cursor.wrong("text, a number, true or false, or a mapping with `path`", f'Put it in quotes: "{value}".')


def input_(cursor: Cursor) -> Any:
    """One input; a broken one stands in as an empty one, so that its name is still known to the command."""
    value = _input(cursor)
    return Input() if value is Bad else value


def _input(cursor: Cursor) -> Any:
    """A literal, ``{value: …}``, or data with a path."""
    if not isinstance(cursor.value, dict):
        return literal(cursor)
    if set(cursor.value) == {"value"}:
        return literal(cursor.at("value"))
    told = dict(keys(cursor, _DATA_INPUT, what="an input"))
    kind, mode = told.get("type", "uri_folder"), told.get("mode")
    if mode in EVAL_MODES and kind != "mltable":
        return cursor.bad(
            "input-mode",
            f"`{mode}` with type `{kind}`",
            "Only an mltable is evaluated while mounting",
            f"Write {', '.join(f'`{name}`' for name in MODES)}, or `type: mltable`.",
            key="mode",
        )
    if "path_on_compute" in told and kind in MODEL_TYPES:
        return cursor.bad(
            "key-unknown",
            f"`path_on_compute` with type `{kind}`",
            "A model has no path on the compute",
            key="path_on_compute",
        )
    return Input(**told)


_OUTPUT = {
    "type": word(same(*DATA_TYPES, *MODEL_TYPES, "mltable")),
    "mode": word(same("rw_mount", "mount", "upload", "direct")),
    "path": text,
    "name": text,
    "version": version,
}


def output(cursor: Cursor) -> Any:
    """One output; nothing at all is a folder on the default datastore."""
    if cursor.value is None:
        return Output()
    return Output(**dict(keys(cursor, _OUTPUT, ignored=("$schema",), what="an output")))


def variables(cursor: Cursor) -> Any:
    """Environment variables: any values, sent as they are."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping of names to values")
    return {str(key): value for key, value in cursor.value.items()}


_PROCESSES = {"type": anything, "process_count_per_instance": count}
_KINDS: Mapping[str, tuple[type[Model], Mapping[str, Callable[[Cursor], Any]]]] = {
    "pytorch": (PyTorch, _PROCESSES),
    "mpi": (Mpi, _PROCESSES),
    "tensorflow": (
        TensorFlow,
        {"type": anything, "worker_count": count, "parameter_server_count": at_least(0)},
    ),
    "ray": (
        Ray,
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
    if "type" not in cursor.value:
        return cursor.bad(
            "key-missing",
            "The distribution has no `type`",
            "Its type says who starts the processes",
            "Write `type: pytorch`, `mpi`, `tensorflow` or `ray`.",
        )
    kind = _KIND(cursor.at("type"))
    if kind is Bad:
        return Bad
    model, table = _KINDS[kind]
    told = dict(keys(cursor, table, what=f"a {kind} distribution"))
    return model(**{**told, "type": kind})


_BUILD = {"path": text, "dockerfile_path": text}


def build(cursor: Cursor) -> Any:
    """A Docker build context."""
    told = dict(keys(cursor, _BUILD, what="a build context"))
    if "path" not in told:
        if isinstance(cursor.value, dict) and "path" not in cursor.value:
            cursor.bad("key-missing", "The build context has no `path`", "It is a folder with a Dockerfile")
        return Bad
    return Build(**told)


def conda(cursor: Cursor) -> Any:
    """A conda specification: a file, or its content."""
    if isinstance(cursor.value, dict):
        return cursor.value
    if isinstance(cursor.value, str):
        if cursor.value.startswith("file:"):
            return cursor.bad(
                "path-form",
                f"`{cursor.value}` stands here",
                "A conda file is a path without `file:`",
                f"Write `{cursor.value.removeprefix('file:')}`.",
            )
        return cursor.value
    return cursor.wrong("a path, or the content of a conda file")


_ENVIRONMENT = {
    "image": text,
    "conda_file": conda,
    "build": build,
    "os_type": word(same("linux", "windows")),
    "name": text,
    "version": version,
    "description": text,
    "tags": mapping,
    "properties": mapping,
    "inference_config": mapping,
    "datastore": text,
}


def environment(cursor: Cursor) -> Any:
    """An environment: a reference, or one written inline."""
    value = cursor.value
    if isinstance(value, dict):
        if found := [key for key in ("channels", "dependencies") if key in value]:
            return cursor.bad(
                "environment-conda",
                f"`{found[0]}` stands in the environment",
                "That is the content of a conda file",
                "Put it under `conda_file:`, beside `image:`.",
                key=found[0],
            )
        told = dict(keys(cursor, _ENVIRONMENT, ignored=("id", "$schema", "creation_context"), what="an environment"))
        return Environment(**told)
    if not isinstance(value, str):
        return cursor.wrong("a reference such as `azureml:NAME:VERSION`, or a mapping with `image`")
    if value.startswith("file:"):
        return _environment_file(cursor)
    if not value.startswith("azureml:"):
        remedy = f"Write `azureml:{value}` for a registered one, `file:{value}` for a file, or a mapping with `image`."
        return cursor.bad(
            "environment-form",
            f"`{value}` stands here",
            "A reference to an environment begins with `azureml:`",
            remedy,
        )
    return value


def _environment_file(cursor: Cursor) -> Any:
    """An environment in a file of its own; its paths start in that file's folder."""
    path = cursor.base / cursor.value.removeprefix("file:")
    if not path.is_file():
        return cursor.bad("environment-missing", f"`{cursor.value}` is not there", "A file that is named must exist")
    text_ = yamltext.read(path)
    found: list[tuple[Any, Finding]] = [((), finding) for finding in text_.findings]
    value: Any = Bad
    if not text_.findings:
        value = environment(Cursor(text_.data, (), found, path.parent))
    for keys_, finding in found:
        line, column = text_.spot(keys_) or (None, None)
        cursor.findings.append((cursor.path, finding.at(str(path), line, column)))
    if not isinstance(value, Environment):
        return value
    folder = os.path.relpath(path.parent, cursor.base)
    update: dict[str, Any] = {}
    if isinstance(value.conda_file, str):
        update["conda_file"] = posixpath.normpath(posixpath.join(folder, value.conda_file))
    if value.build is not None and "://" not in value.build.path:
        joined = posixpath.normpath(posixpath.join(folder, value.build.path))
        update["build"] = value.build.model_copy(update={"path": joined})
    return value.model_copy(update=update)


_RESOURCES = {
    "instance_count": count,
    "instance_type": text,
    "locations": listed(text),
    "max_instance_count": count,
    "shm_size": text,
    "docker_args": lambda cursor: listed(text)(cursor) if isinstance(cursor.value, list) else text(cursor),
    "properties": mapping,
}
FROM_RESOURCES = {"instance_count": "nodes", "properties": "resource_properties"}
"""Keys of resources that have another name in the job; the others keep theirs."""


def resources(cursor: Cursor) -> Any:
    """Resources, as fields of the job."""
    told = dict(keys(cursor, _RESOURCES, what="the resources"))
    told.setdefault("properties", {})
    return {FROM_RESOURCES.get(key, key): value for key, value in told.items()}


def limits(cursor: Cursor) -> Any:
    """Limits of a command job."""
    return Limits(**dict(keys(cursor, {"timeout": at_least(0)}, what="the limits")))


_QUEUE = {
    "job_tier": word(same("spot", "basic", "standard", "premium", "null")),
    "priority": word(same("low", "medium", "high")),
}


def queue(cursor: Cursor) -> Any:
    """Queue settings."""
    return QueueSettings(**dict(keys(cursor, _QUEUE, what="the queue settings")))


def _snake(value: str) -> str:
    split = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", value)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", split).lower()


_IDENTITY = word({**same("managed", "user_identity", "aml_token"), "managed_identity": "managed"}, _snake)
_IDS = {"type": _IDENTITY, "client_id": text, "object_id": text}


def identity(cursor: Cursor) -> Any:
    """The identity of a job."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping with `type`")
    if "msi_resource_id" in cursor.value:
        return cursor.bad(
            "key-unsupported",
            "`msi_resource_id` stands here",
            "azure-ai-ml cannot send it",
            "Name the identity by `client_id`.",
            key="msi_resource_id",
        )
    told = dict(keys(cursor, _IDS, what="an identity"))
    if "type" not in told:
        if "type" not in cursor.value:
            cursor.bad(
                "key-missing",
                "The identity has no `type`",
                "Its type says as whom the job runs",
                "Write `type: managed`, `user_identity` or `aml_token`.",
            )
        return Bad
    if told["type"] != "managed" and len(told) > 1:
        return cursor.bad(
            "key-unknown", f"Ids stand beside type `{told['type']}`", "Only a managed identity has ids", "Remove them."
        )
    return Identity(**told)


_SERVICE = {
    "type": text,
    "port": whole,
    "nodes": word({"all": "all"}, str),
    "properties": mapping,
    "ssh_public_keys": text,
    "log_dir": text,
}
_SERVICE_TYPES = ("ssh", "tensor_board", "vs_code", "jupyter_lab")
_OWN_KEY = {"ssh_public_keys": "ssh", "log_dir": "tensor_board"}


def service(cursor: Cursor) -> Any:
    """One service; without a type it is ssh, or tensor_board when it has a log_dir, as the real loader reads it."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping with `type`")
    told = dict(keys(cursor, _SERVICE, ignored=("endpoint", "status", "error_message", "$schema"), what="a service"))
    if len(told) != len(set(cursor.value) & set(_SERVICE)):
        return Bad
    written = told.pop("type", None)
    kind = written.lower() if written else ("tensor_board" if "log_dir" in told else "ssh")
    for key, owner in _OWN_KEY.items():
        if key in told and kind != owner:
            return cursor.bad(
                "key-unknown",
                f"`{key}` on a service of type `{written or kind}`",
                f"`{key}` belongs to `{owner}`",
                key=key,
            )
    if kind not in _SERVICE_TYPES:
        cursor.bad(
            "service-type",
            f"`{written}` is no kind of service that a job starts",
            f"Jobs start {', '.join(f'`{name}`' for name in _SERVICE_TYPES)}; of others Azure ML is sent no type",
            level=Level.WARNING,
            key="type",
        )
        return Service(**told)
    return Service(type=kind, **told)


tags = named(nullable(text))
inputs = named(input_)
outputs_reader = named(output)
services = named(service)
