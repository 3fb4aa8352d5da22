"""The environment of an Azure ML file: a reference, one written inline, or one in a file of its own."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, Any

from amlstack.base import yamltext
from amlstack.base.paths import is_file
from jobs.azureml.containers import keys
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import by_text, mapping, same, text, unsent, word
from jobs.model.values import Build, Environment

if TYPE_CHECKING:
    from amlstack.base.findings import Finding

_BUILD = {"path": text, "dockerfile_path": text}


def build(cursor: Cursor) -> Any:
    """A Docker build context."""
    fields = dict(keys(cursor, _BUILD, what="a build context"))
    if "path" not in fields:
        if isinstance(cursor.value, dict) and "path" not in cursor.value:
            cursor.bad("key-missing", "The build context has no `path`", "It is a folder with a Dockerfile")
        return Bad
    return Build(**fields)


def conda(cursor: Cursor) -> Any:
    """A conda specification: a file, or its content."""
    if isinstance(cursor.value, dict):
        return by_text(cursor)
    if isinstance(cursor.value, str):
        if cursor.value.startswith("file:"):
            return cursor.bad(
                "path-form",
                f"`conda_file` must be a path without `file:`, got `{cursor.value}`",
                "",
                f"Write `{cursor.value.removeprefix('file:')}`.",
            )
        return cursor.value
    return cursor.wrong("a path, or the content of a conda file")


def _image(cursor: Cursor) -> Any:
    if cursor.value == "":
        return cursor.bad("value-empty", "`image` is empty", "An image has a name", "Write the name, or a `build`.")
    return text(cursor)


KEYS = {
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
            return cursor.bad(
                "environment-conda",
                f"`{found[0]}` stands in the environment",
                "That is the content of a conda file",
                "Put it under `conda_file:`, beside `image:`.",
                key=found[0],
            )
        fields = dict(keys(cursor, KEYS, ignored=("id", "$schema", "creation_context"), what="an environment"))
        return Environment(**fields)
    if not isinstance(value, str):
        return cursor.wrong("a reference such as `azureml:NAME:VERSION`, or a mapping with `image`")
    if value.startswith("file:"):
        return _environment_file(cursor)
    if not value.startswith("azureml:"):
        remedy = f"Write `azureml:{value}` for a registered one, `file:{value}` for a file, or a mapping with `image`."
        return cursor.bad(
            "environment-form",
            f"`environment` must begin with `azureml:` or `file:`, or be a mapping, got `{value}`",
            "",
            remedy,
        )
    return value


def _environment_file(cursor: Cursor) -> Any:
    """An environment in a file of its own; its paths start in that file's folder."""
    path = cursor.base / cursor.value.removeprefix("file:")
    if not is_file(path):
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
