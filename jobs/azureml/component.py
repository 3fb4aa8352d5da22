"""An Azure ML CLI v2 command component file as a `Component`."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, Any

from amlstack.findings import Finding, Level
from jobs.azureml import command
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.data import DATA_TYPES, MODEL_TYPES, MODES
from jobs.azureml.fields import anything, keys, listed, mapping, named, same, text, truth, version, word
from jobs.component import PRIMITIVES, Component, Port
from jobs.launchers import Custom
from jobs.near import did_you_mean
from jobs.values import Code, Environment

if TYPE_CHECKING:
    from pathlib import Path

TYPES = (*DATA_TYPES, *MODEL_TYPES, "mltable", "path", *PRIMITIVES)


def _plain(cursor: Cursor) -> Any:
    value = cursor.value
    return value if isinstance(value, (str, int, float, bool)) else cursor.wrong("text, a number, true or false")


_PORT = {"type": word(same(*TYPES), str), "description": text}
_INPUT = {
    **_PORT,
    "optional": truth,
    "default": _plain,
    "min": _plain,
    "max": _plain,
    "enum": listed(lambda cursor: str(cursor.value)),
    "mode": word(same(*MODES, "eval_mount", "eval_download", "rw_mount", "mount", "link"), str),
}
_OUTPUT = {**_PORT, "mode": word(same("rw_mount", "mount", "upload", "direct", "link"), str)}


def _port(table: Any) -> Any:
    def read(cursor: Cursor) -> Any:
        told = dict(keys(cursor, table, what="an input or output of a component"))
        if "type" not in told:
            if isinstance(cursor.value, dict) and "type" not in cursor.value:
                cursor.bad(
                    "key-missing",
                    "There is no `type`",
                    "An input or output of a component has a `type`",
                    "Write `type: uri_folder`, or `string`, `integer`, `number`, `boolean`.",
                )
            return Bad
        return Port(**told)

    return read


KEYS = {
    **{
        key: command.KEYS[key]
        for key in (
            "command",
            "code",
            "environment",
            "distribution",
            "resources",
            "name",
            "display_name",
            "description",
            "tags",
        )
    },
    "type": word({"command": "command"}),
    "version": version,
    "properties": mapping,
    "is_deterministic": truth,
    "inputs": named(_port(_INPUT)),
    "outputs": named(_port(_OUTPUT)),
    "additional_includes": anything,
    "$schema": text,
}
"""Keys of a component."""


def read(cursor: Cursor, *, file: str | None = None) -> Component | None:
    """Read a component; None when it is too broken to be one.

    Args:
        cursor: Its content.
        file: The file it stands in; None inside a pipeline's own file.
    """
    if not isinstance(cursor.value, dict):
        cursor.bad("not-a-mapping", "This is no mapping", "A component is a mapping of keys")
        return None
    known = {key: value for key, value in cursor.value.items() if key in KEYS or key in ("id", "creation_context")}
    for key in cursor.value.keys() - known.keys():
        remedy = did_you_mean(str(key), KEYS)
        cursor.bad(
            "key-unknown",
            f"`{key}` is no key of a component",
            "Azure ML keeps such a key with the component and does nothing with it; here it is not sent",
            remedy if remedy.startswith("Did") else "Remove it.",
            level=Level.WARNING,
            key=key,
        )
    told = dict(keys(_of(cursor, known), KEYS, ignored=("id", "creation_context"), what="a component"))
    for key in ("command", "environment"):
        if key not in cursor.value:
            cursor.bad("key-missing", f"The component has no `{key}`", f"A command component has a `{key}`")
    if not {"command", "environment"} <= told.keys():
        return None
    return made(cursor, told, file)


def _of(cursor: Cursor, value: Any) -> Cursor:
    return Cursor(value, cursor.path, cursor.findings, cursor.base)


def made(cursor: Cursor, told: dict[str, Any], file: str | None) -> Component:
    """A component of the values of its keys."""
    told.pop("type", None)
    if told.pop("additional_includes", None):
        cursor.bad(
            "lost-in-rendering",
            "`additional_includes` stands here",
            "The code of a step is one folder; other folders are not copied into it",
            "Move what is needed into the code folder.",
            level=Level.WARNING,
            key="additional_includes",
        )
    told |= told.pop("resources", {})
    if told.get("resource_properties") == {}:
        del told["resource_properties"]
    if "distribution" in told:
        told["launcher"] = Custom(distribution=told.pop("distribution"))
    if "$schema" in told:
        told["schema_uri"] = told.pop("$schema")
    return Component(**told, file=file, inline=file is None)


def moved(component: Component, folder: Path, base: Path) -> Component:
    """The component with its paths as seen from another folder.

    Args:
        component: As its file has it.
        folder: That file's folder.
        base: Where its paths shall start.
    """
    there = os.path.relpath(folder, base)
    update: dict[str, Any] = {}

    def seen(path: str) -> str:
        return path if posixpath.isabs(path) else posixpath.normpath(posixpath.join(there, path))

    if component.code is not None and component.code.local:
        update["code"] = Code(path=seen(component.code.path))
    environment = component.environment
    if isinstance(environment, Environment):
        inner: dict[str, Any] = {}
        if isinstance(environment.conda_file, str):
            inner["conda_file"] = seen(environment.conda_file)
        if environment.build is not None and "://" not in environment.build.path:
            inner["build"] = environment.build.model_copy(update={"path": seen(environment.build.path)})
        update["environment"] = environment.model_copy(update=inner)
    return component.model_copy(update=update)


def reference(cursor: Cursor) -> Any:
    """A component of a step: registered, in a file of its own, or inline."""
    value = cursor.value
    if isinstance(value, dict):
        return _read_or_bad(cursor, None)
    if not isinstance(value, str):
        return cursor.wrong("a component: `azureml:NAME:VERSION`, a file, or a mapping")
    if value.startswith("azureml:"):
        return value
    path = cursor.base / value.removeprefix("file:")
    if not path.is_file():
        folder = path.parent
        names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        return cursor.bad(
            "component-missing",
            f"`{value}` is not there",
            "A step names a component's file, or a registered component with `azureml:`",
            did_you_mean(path.name, names, otherwise=f"Create {path}."),
        )
    return from_file(cursor, path, value)


def _read_or_bad(cursor: Cursor, file: str | None) -> Any:
    component = read(cursor, file=file)
    return Bad if component is None else component


def from_file(cursor: Cursor, path: Path, written: str) -> Any:
    """The component of a file; its faults are placed in that file."""
    from jobs import yamltext  # noqa: PLC0415 - only where a pipeline names files
    from jobs.azureml import dialect  # noqa: PLC0415

    content = yamltext.read(path)
    found: list[tuple[Any, Finding]] = [((), finding) for finding in content.findings]
    component: Any = None
    if content.data is not None or not content.findings:
        inner = Cursor(content.data, (), found, path.parent)
        reader = dialect.read if dialect.is_one(content.data) else read
        component = reader(inner, file=str(path))
    for place, finding in found:
        line, column = content.spot(place) or (None, None)
        cursor.findings.append((cursor.path, finding.at(str(path), line, column)))
    if component is None:
        return Bad
    component = moved(component, path.parent, cursor.base)
    # `file:` makes it a part of the pipeline's file in azure-ai-ml's eyes.
    return component.model_copy(update={"inline": written.startswith("file:")})
