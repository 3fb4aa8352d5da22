"""Components of steps: registered, in a file of their own, or inline; a command component file as a `Component`.

The guides have an older dialect, `type: DistributedComponent` with a `launcher:`, which is translated. Its
`launcher: {type: torch.distributed | mpi, additional_arguments: …}` is a command and a distribution in today's words;
its `{inputs.x}` is ``${{inputs.x}}``; its types have other names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from amlstack.base.findings import Level
from amlstack.base.paths import is_file, names_in
from amlstack.base.text import did_you_mean
from jobs.azureml.fields import (
    Bad,
    Cursor,
    Reader,
    anything,
    by_text,
    count,
    has_keys,
    keys,
    listed,
    mapping,
    named,
    source_of,
    text,
    truth,
    unsent,
    version,
    warn_unknown,
    word,
)
from jobs.azureml.read import command, data
from jobs.launchers import MpiDistribution, PyTorchDistribution
from jobs.model.job import Component, Job, Port
from jobs.model.pipeline import PassthroughComponent
from jobs.values import Code, Environment


def _resources(cursor: Cursor) -> Any:
    """Resources; unknown keys are taken and not sent, as azure-ai-ml does."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping of keys")
    extra = [key for key in cursor.value if key not in command.RESOURCES]
    warn_unknown(cursor, extra, command.RESOURCES, "the resources", "azure-ai-ml does not send it")
    return command.resources(cursor.holding({key: each for key, each in cursor.value.items() if key not in extra}))


KEYS = {
    **{
        key: command.KEYS[key]
        for key in ("command", "code", "environment", "distribution", "display_name", "description", "tags")
    },
    "type": word({"command": "command"}),
    "name": unsent,
    "version": unsent,
    "resources": _resources,
    "properties": mapping,
    "is_deterministic": truth,
    "inputs": data.input_ports,
    "outputs": data.output_ports,
    "additional_includes": listed(text),
    "environment_variables": data.variables,
    "$schema": text,
}
"""Keys of a component."""
SKIPPED = ("id", "creation_context", "latest_version")


def read(cursor: Cursor) -> Component | None:
    """Read a component; None when it is too broken to be one."""
    if not isinstance(cursor.value, dict):
        cursor.bad("not-a-mapping", "This is no mapping", "A component is a mapping of keys")
        return None
    if (of := str(cursor.value.get("type", "command")).lower()) in ("parallel", "spark", "pipeline"):
        cursor.bad("component-kind", f"The component is of type `{of}`", "A command step runs a command component")
        return None
    written = by_text(cursor)
    known = {key: value for key, value in written.items() if key in KEYS or key in SKIPPED}
    extra = {key: value for key, value in written.items() if key not in known}
    rule = "It is kept with the component, as azure-ai-ml does, and Azure ML may do nothing with it"
    warn_unknown(cursor, extra, KEYS, "a component", rule)
    if extra.get("intellectual_property"):
        cursor.stated("key-unsupported", Level.ERROR, "intellectual_property")
    fields = dict(keys(cursor.holding(known), KEYS, ignored=SKIPPED, what="a component"))
    needed = ("command", "environment")
    if not has_keys(cursor, fields, needed, "The component has no `{}`", "A command component has a `{}`"):
        return None
    if fields.pop("environment_variables", None):
        cursor.stated("lost-in-rendering", Level.WARNING, "environment_variables")
    return made(cursor, {**fields, "extra": extra})


def made(cursor: Cursor, fields: dict[str, Any]) -> Component:
    """A component of the values of its keys."""
    if fields.get("additional_includes") and "code" not in fields:
        cursor.stated("lost-in-rendering/made", Level.WARNING, "additional_includes")
    fields = command.job_fields(fields)
    if fields.get("resource_properties") == {}:
        del fields["resource_properties"]
    if "$schema" in fields:
        fields["schema_uri"] = fields.pop("$schema")
    return Component(**fields, inline=True)


DIALECT_KINDS = {"distributedcomponent": "DistributedComponent", "commandcomponent": "CommandComponent"}
LAUNCHERS = {"torch.distributed": "pytorch", "mpi": "mpi"}
DIALECT_TYPES = {
    "anydirectory": "uri_folder",
    "path": "uri_folder",
    "datadirectory": "uri_folder",
    "modeldirectory": "uri_folder",
    "anyfile": "uri_file",
    "integer": "integer",
    "int": "integer",
    "float": "number",
    "double": "number",
    "number": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "string": "string",
    "enum": "string",
    "uri_folder": "uri_folder",
    "uri_file": "uri_file",
    "mltable": "mltable",
}
_OPTIONAL = r"(?<!\$)\[(?!\[)([^\[\]]*\{(?:inputs|outputs)\.[^\[\]]*)\](?!\])"
_BINDING = r"(?<!\{)\{\s*(inputs|outputs)\.([^}]*?)\s*\}(?!\})"


def in_older_dialect(data: Any) -> bool:
    """True where a file is written in the older dialect."""
    if not isinstance(data, dict):
        return False
    return "launcher" in data or str(data.get("type", "")).lower() in DIALECT_KINDS


def _port(cursor: Cursor) -> Any:
    fields = dict(keys(cursor, DIALECT_PORT, what="an input or output"))
    kind = fields.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    found = DIALECT_TYPES.get(str(kind).lower()) if kind is not None else None
    if found is None:
        seen = f"The type is `{kind}`"
        rule = f"A type is one of {', '.join(f'`{name}`' for name in DIALECT_TYPES)}"
        cursor.bad("value-unknown", seen, rule, did_you_mean(str(kind), DIALECT_TYPES), level=Level.WARNING)
        found = "uri_folder"
    enum = fields.get("enum") or fields.get("options")
    same = {key: fields.get(key) for key in ("description", "optional", "default", "min", "max")}
    return Port(type=found, enum=None if enum is None else tuple(str(each) for each in enum), **same)


DIALECT_PORT = {
    "type": anything,
    "description": text,
    "optional": truth,
    **dict.fromkeys(("default", "min", "max", "enum", "options", "datastore_mode"), anything),
}
DIALECT_LAUNCHER = {"type": word(LAUNCHERS), "additional_arguments": text, "process_count_per_node": count}


def _environment(cursor: Cursor) -> Any:
    """Today's environment, or the older one with ``docker`` and ``conda``."""
    value = cursor.value
    if not isinstance(value, dict) or not {"docker", "conda", "os"} & value.keys():
        return command.KEYS["environment"](cursor)
    docker = value.get("docker")
    conda = value.get("conda")
    image = docker.get("image") if isinstance(docker, dict) else None
    inner: dict[str, Any] = {key: each for key, each in value.items() if key not in ("docker", "conda", "os")}
    if isinstance(image, str):
        inner["image"] = image
    if isinstance(conda, dict):
        inner["conda_file"] = conda.get("conda_dependencies_file") or conda.get("conda_dependencies")
    return command.KEYS["environment"](cursor.holding(inner))


DIALECT_KEYS = {
    **{key: KEYS[key] for key in ("name", "display_name", "description", "tags", "code", "is_deterministic")},
    "type": anything,
    "version": version,
    "command": text,
    "environment": _environment,
    "inputs": named(_port),
    "outputs": named(_port),
    "launcher": anything,
    "resources": KEYS["resources"],
    "$schema": anything,
}


def read_older_dialect(cursor: Cursor) -> Component | None:
    """Read a component in the older dialect, with a finding that says what it became."""
    fields = dict(keys(cursor, DIALECT_KEYS, ignored=("is_deterministic",), what="a DistributedComponent"))
    launched = _launched(cursor) if "launcher" in cursor.value else None
    if launched is Bad or ("command" not in fields and launched is None):
        if launched is None:
            cursor.bad("key-missing", "There is no `launcher`", "A DistributedComponent has a `launcher`")
        return None
    if not has_keys(cursor, fields, ("environment",), "The component has no `{}`", "A component has an `{}`"):
        return None
    for key in ("type", "$schema", "launcher"):
        fields.pop(key, None)
    if launched is not None:
        fields["command"], fields["distribution"] = launched
    fields["command"] = re.sub(_BINDING, r"${{\1.\2}}", re.sub(_OPTIONAL, r"$[[\1]]", fields["command"]))
    return made(cursor, fields)


def _launched(cursor: Cursor) -> Any:
    inner = cursor.at("launcher")
    fields = dict(keys(inner, DIALECT_LAUNCHER, what="a launcher"))
    needed = ("type", "additional_arguments")
    if not has_keys(inner, fields, needed, "The launcher has no `{}`", "A launcher has `{}`"):
        return Bad
    processes = fields.get("process_count_per_node")
    model = PyTorchDistribution if fields["type"] == "pytorch" else MpiDistribution
    cursor.stated("dialect-translated", Level.INFO, "launcher", value=inner.value["type"], fields=fields["type"])
    return fields["additional_arguments"], model(process_count_per_instance=processes)


if TYPE_CHECKING:
    Movable = TypeVar("Movable", Component, PassthroughComponent, Job)


MAX_DEPTH: Final = 16
"""The depth to which pipelines may lie in pipelines."""
MAX_FILES: Final = 200
"""The number of times that one step may have component files read, those in its own component included."""


@dataclass
class _Inside:
    """The component files that are being read: each names the next one.

    Attributes:
        chain: Their paths, resolved, outermost first.
        read: How many were read since the outermost.
    """

    chain: list[Path] = field(default_factory=list)
    read: int = 0

    def refused(self, cursor: Cursor, path: Path, written: str) -> Any:
        """The fault of a component that cannot be read for its place among others; None for one that can."""
        if path in self.chain:
            names = " → ".join(each.name for each in (*self.chain[self.chain.index(path) :], path))
            return cursor.stated("component-circle", written=written, names=names)
        self.read += 1
        if self.read == MAX_FILES + 1:
            return cursor.stated("component-depth", MAX_FILES=MAX_FILES)
        if self.read > MAX_FILES:
            return Bad  # reported once
        if len(self.chain) >= MAX_DEPTH:
            return cursor.stated(
                "component-depth/refused", written=written, MAX_DEPTH=MAX_DEPTH + 1, MAX_DEPTH2=MAX_DEPTH
            )
        return None


_INSIDE: ContextVar[_Inside | None] = ContextVar("_INSIDE", default=None)


def moved(component: Movable, folder: Path, base: Path) -> Movable:
    """A component, or a step of a pipeline that is one, with its paths as seen from another folder.

    Args:
        component: As its file has it.
        folder: That file's folder.
        base: Where its paths shall start.
    """
    seen = command.path_from(folder, base)
    update: dict[str, Any] = {}
    if component.code is not None and component.code.local:
        includes = tuple(map(seen, getattr(component, "additional_includes", ())))
        update["code"] = Code(
            path=seen(component.code.path), includes=includes or tuple(map(seen, component.code.includes))
        )
    if isinstance(component.environment, Environment):
        update["environment"] = command.environment_from(component.environment, seen)
    if isinstance(component, PassthroughComponent) and component.jobs:
        update["jobs"] = {name: _step(step, folder, base) for name, step in component.jobs.items()}
    return component.model_copy(update=update)


def _step(step: Any, folder: Path, base: Path) -> Any:
    """A step of a pipeline component, moved with it."""
    return step if isinstance(step.runs, str | None) else step.with_runs(moved(step.runs, folder, base))


def reference(
    cursor: Cursor, reader: Reader = read, path_of: Callable[[str], tuple[str, ...]] = command.path_of
) -> Any:
    """A component of a step: registered, in a file of its own, or inline.

    Args:
        cursor: What names it.
        reader: Reads a component of the step's kind.
        path_of: From a path in such a component to the keys in its file.
    """
    value = cursor.value
    if isinstance(value, dict):
        component = reader(cursor)
        return Bad if component is None else component
    if not isinstance(value, str):
        return cursor.wrong("a component: `azureml:NAME:VERSION`, a file, or a mapping")
    if value.startswith("azureml:"):
        return value
    path = cursor.base / value.removeprefix("file:")
    if not is_file(path):
        folder = path.parent
        names = names_in(folder)
        return cursor.stated(
            "component-missing", value=value, remedy=did_you_mean(path.name, names, otherwise=f"Create {path}.")
        )
    return from_file(cursor, path, value, reader, path_of)


def from_file(
    cursor: Cursor, path: Path, written: str, reader: Reader, path_of: Callable[[str], tuple[str, ...]]
) -> Any:
    """The component of a file; its faults are placed in that file."""
    inside = _INSIDE.get() or _Inside()
    if (refused := inside.refused(cursor, path.resolve(), written)) is not None:
        return refused

    def read_file(inner: Cursor) -> Any:
        return (read_older_dialect if reader is read and in_older_dialect(inner.value) else reader)(inner)

    token = _INSIDE.set(inside)
    inside.chain.append(path.resolve())
    try:
        content, component, _ = command.read_named_file(cursor, path, read_file)
    finally:
        inside.chain.pop()
        _INSIDE.reset(token)
    if component is None or component is Bad:
        return Bad
    component = moved(component, path.parent, cursor.base)
    # `file:` makes it a part of the pipeline's file in azure-ai-ml's eyes.
    return component.model_copy(
        update={"inline": written.startswith("file:"), "source": source_of(content, cursor.base, path_of)}
    )
