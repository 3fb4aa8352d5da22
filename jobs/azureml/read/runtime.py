"""How and where an Azure ML job runs: distribution, resources, limits, queue, identity, services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Level
from amlstack.base.spelling import snake
from jobs.azureml.containers import keys, listed, named
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import (
    anything,
    at_least,
    count,
    mapping,
    same,
    seconds,
    size_of_memory,
    text,
    truth,
    whole,
    word,
)
from jobs.model.distribution import MpiDistribution, PyTorchDistribution, RayDistribution, TensorFlowDistribution
from jobs.model.values import Identity, Limits, Model, QueueSettings, Service
from jobs.wire import keys as keys_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PROCESSES = {"type": anything, "process_count_per_instance": count}
_KINDS: Mapping[str, tuple[type[Model], Mapping[str, Callable[[Cursor], Any]]]] = {
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
_FIELDS = {key.in_file: key.field for key in keys_table.RESOURCES}


def resources(cursor: Cursor) -> Any:
    """Resources, as fields of the job."""
    fields = dict(keys(cursor, RESOURCES, what="the resources"))
    fields.setdefault("properties", {})
    return {_FIELDS[key]: value for key, value in fields.items()}


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
        return cursor.bad(
            "key-unsupported",
            "`msi_resource_id` cannot be sent",
            "azure-ai-ml has no form of it for Azure ML",
            "Name the identity by `client_id`.",
            key="msi_resource_id",
        )
    fields = dict(keys(cursor, _IDS, what="an identity"))
    if "type" not in fields:
        if "type" not in cursor.value:
            cursor.bad(
                "key-missing",
                "The identity has no `type`",
                "Its type says as whom the job runs",
                "Write `type: managed`, `user_identity` or `aml_token`.",
            )
        return Bad
    if fields["type"] != "managed" and len(fields) > 1:
        return cursor.bad(
            "key-unknown",
            f"Ids stand beside type `{fields['type']}`",
            "Only a managed identity has ids",
            "Remove them.",
        )
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
        return Service(**fields)
    return Service(type=kind, **fields)


services = named(service)
