"""The older component dialect of the guides: `type: DistributedComponent` with a `launcher:`, translated.

Its `launcher: {type: torch.distributed | mpi, additional_arguments: …}` is a command and a distribution in today's
words; its `{inputs.x}` is ``${{inputs.x}}``; its types have other names.
"""

from __future__ import annotations

import re
from typing import Any

from amlstack.base.findings import Level
from amlstack.base.near_misses import did_you_mean
from jobs.azureml.containers import keys, named
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import anything, count, text, truth, version, word
from jobs.azureml.read import command, component
from jobs.model.component import Component, Port
from jobs.model.distribution import MpiDistribution, PyTorchDistribution

KINDS = {"distributedcomponent": "DistributedComponent", "commandcomponent": "CommandComponent"}
LAUNCHERS = {"torch.distributed": "pytorch", "mpi": "mpi"}
TYPES = {
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
_OPTIONAL = re.compile(r"(?<!\$)\[(?!\[)([^\[\]]*\{(?:inputs|outputs)\.[^\[\]]*)\](?!\])")
_BINDING = re.compile(r"(?<!\{)\{\s*(inputs|outputs)\.([^}]*?)\s*\}(?!\})")


def is_one(data: Any) -> bool:
    """Whether a file is written in the older dialect."""
    if not isinstance(data, dict):
        return False
    return "launcher" in data or str(data.get("type", "")).lower() in KINDS


def _port(cursor: Cursor) -> Any:
    fields = dict(keys(cursor, PORT, what="an input or output"))
    kind = fields.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    found = TYPES.get(str(kind).lower()) if kind is not None else None
    if found is None:
        cursor.bad(
            "value-unknown",
            f"The type is `{kind}`",
            f"A type is one of {', '.join(f'`{name}`' for name in TYPES)}",
            did_you_mean(str(kind), TYPES),
            level=Level.WARNING,
        )
        found = "uri_folder"
    enum = fields.get("enum") or fields.get("options")
    return Port(
        type=found,
        description=fields.get("description"),
        optional=fields.get("optional"),
        default=fields.get("default"),
        min=fields.get("min"),
        max=fields.get("max"),
        enum=None if enum is None else tuple(str(each) for each in enum),
    )


PORT = {
    "type": anything,
    "description": text,
    "optional": truth,
    **dict.fromkeys(("default", "min", "max", "enum", "options", "datastore_mode"), anything),
}
LAUNCHER = {"type": word(LAUNCHERS), "additional_arguments": text, "process_count_per_node": count}


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
    return command.KEYS["environment"](Cursor(inner, cursor.path, cursor.findings, cursor.base))


KEYS = {
    **{key: component.KEYS[key] for key in ("name", "display_name", "description", "tags", "code", "is_deterministic")},
    "type": anything,
    "version": version,
    "command": text,
    "environment": _environment,
    "inputs": named(_port),
    "outputs": named(_port),
    "launcher": anything,
    "resources": component.KEYS["resources"],
    "$schema": anything,
}


def read(cursor: Cursor) -> Component | None:
    """Read a component in the older dialect, with a finding that says what it became."""
    fields = dict(keys(cursor, KEYS, ignored=("is_deterministic",), what="a DistributedComponent"))
    launched = _launched(cursor) if "launcher" in cursor.value else None
    if launched is Bad or ("command" not in fields and launched is None):
        if launched is None:
            cursor.bad("key-missing", "There is no `launcher`", "A DistributedComponent has a `launcher`")
        return None
    if "environment" not in fields:
        cursor.bad("key-missing", "The component has no `environment`", "A component has an `environment`")
        return None
    for key in ("type", "$schema", "launcher"):
        fields.pop(key, None)
    if launched is not None:
        fields["command"], fields["distribution"] = launched
    fields["command"] = _today(fields["command"])
    return component.made(cursor, fields)


def _launched(cursor: Cursor) -> Any:
    inner = cursor.at("launcher")
    fields = dict(keys(inner, LAUNCHER, what="a launcher"))
    missing = [key for key in ("type", "additional_arguments") if key not in fields]
    for key in missing:
        if isinstance(inner.value, dict) and key not in inner.value:
            inner.bad("key-missing", f"The launcher has no `{key}`", f"A launcher has `{key}`")
    if missing:
        return Bad
    processes = fields.get("process_count_per_node")
    model = PyTorchDistribution if fields["type"] == "pytorch" else MpiDistribution
    cursor.bad(
        "dialect-translated",
        f"`launcher: {inner.value['type']}` is the older dialect of components",
        f"It becomes `distribution: {{type: {fields['type']}}}`, and its arguments the command, run once per process",
        "A step says how many: `process_count_per_instance` under `distribution`, per node.",
        level=Level.INFO,
        key="launcher",
    )
    return fields["additional_arguments"], model(process_count_per_instance=processes)


def _today(text_: str) -> str:
    """``[--x {inputs.x}]`` as ``$[[--x ${{inputs.x}}]]``."""
    return _BINDING.sub(r"${{\1.\2}}", _OPTIONAL.sub(r"$[[\1]]", text_))
