"""The tables of docs/settings.md and docs/launchers.md, from the models: their descriptions explain each field once."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from amlstack.base.models import described
from infra.settings import model as settings
from jobs.launchers import TYPED
from jobs.launchers.base import Shape
from jobs.launchers.per_process import Custom
from jobs.model.job import Job
from jobs.model.sweep import SweepLimits
from jobs.values import Build, Code, Environment, Identity, Input, Limits, Output, QueueSettings, Service
from jobs.wire.command import DISTRIBUTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pydantic.fields import FieldInfo

SETTINGS: Final[tuple[type[BaseModel], ...]] = (
    settings.Settings,
    settings.ResourceGroup,
    settings.Workspace,
    settings.PublicNetwork,
    settings.WorkspaceIdentity,
    settings.StorageAccount,
    settings.KeyVault,
    settings.ContainerRegistry,
    settings.ApplicationInsights,
    settings.LogAnalytics,
    settings.NetworkSettings,
    settings.OutboundRule,
    settings.VirtualNetwork,
    settings.Encryption,
    settings.Diagnostics,
    settings.ServerlessCompute,
    settings.Cluster,
    settings.Nodes,
    settings.ClusterIdentity,
    settings.Ssh,
    settings.CuratedEnvironment,
    settings.CustomEnvironment,
    settings.Datastore,
    settings.DataAsset,
    settings.WorkspaceAccess,
    settings.Principal,
    settings.AzurePolicy,
    settings.JobFile,
    settings.Include,
)
EXAMPLE = Shape(nodes=2, gpus=8)
"""The nodes and GPUs of the examples in the table of launchers."""


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
        words = ", ".join(f"`{word}`" for word in _choices(field.annotation))
        meaning = f"{meanings[name]} {words}{'.' if words else ''}".strip().replace("|", "\\|")
        rows.append(f"| `{name}` | {_default_of_job(field)} | {meaning} |")
    return "\n".join(rows)


def _choices(annotation: Any) -> list[str]:
    """The words of which a field takes one."""
    inside = get_args(annotation)
    if get_origin(annotation) is Literal:
        return [str(word) for word in inside]
    return [word for each in inside for word in _choices(each)]


def _default_of_job(field: FieldInfo) -> str:
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


def settings_table(model: type[BaseModel]) -> str:
    """Every key of a part of the settings, as a Markdown table."""
    rows = (
        f"| `{field.alias or name}` | {_kind(field.annotation)} | {_default(field)} | {field.description} |"
        for name, field in model.model_fields.items()
    )
    return "\n".join(["| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, settings.ClusterIdentity):
        return f"`{value.kind}`"
    if isinstance(value, BaseModel):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


_WORDS: dict[Any, str] = {str: "text", int: "number", bool: "true, false", dict: "names to texts", tuple: "list"}


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in inner)
    if hasattr(annotation, "__metadata__"):
        return _kind(inner[0])
    if origin is Union or str(origin) == "<class 'types.UnionType'>":
        return ", ".join(dict.fromkeys(_kind(part) for part in inner if part is not type(None)))
    return _WORDS.get(origin or annotation, "object")


TABLES: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "launchers.md": {
        "launchers": launcher_table,
        "job": job_table,
        "parts": part_sections,
        "launcher-fields": launcher_sections,
    },
    "settings.md": {model.__name__: partial(settings_table, model) for model in SETTINGS},
}
"""Page → the name of each table of it → what makes its text."""
