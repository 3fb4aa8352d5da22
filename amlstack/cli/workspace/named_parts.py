"""The parts by which a workspace is named: options, ``.azureml/config.json``, variables.

The first that names a part counts. The file is that of azure-ai-ml and the Azure ML CLI v1. It is looked for as
azure-ai-ml 1.35 does (``MLClient.from_config``): in each of three places below a folder, for two names, from the
working folder upwards, 20 folders in all; the first place and name that is found anywhere counts.
"""

from __future__ import annotations

import json
import os
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.provider.arm import ENDPOINT_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.cli.workspace.options import AskedWorkspace

FOLDERS: Final = (".azureml", "aml_config", "")
NAMES: Final = ("config.json", "project.json")
LEVELS: Final = 20
_KEYS: Final = {"subscription": "subscription_id", "group": "resource_group", "workspace": "workspace_name"}
_PARTS: Final = {"subscription": "subscriptions", "group": "resourcegroups", "workspace": "workspaces"}
_LARGEST: Final = 1 << 20


class ConfigFileError(Exception):
    """A file was found and names no workspace; the message says what is wrong with it."""


def config_file(start: Path) -> Path | None:
    """The file that counts for a folder; None where there is none.

    A ``config.json`` or ``project.json`` outside of the two folders is anybody's: one that names no workspace is none.
    """
    folders = [start, *start.parents][:LEVELS]
    for below, name in product(FOLDERS, NAMES):
        for folder in folders:
            file = folder / below / name
            if file.is_file() and (below or _reads_like_one(file)):
                return file
    return None


def read_config_file(file: Path) -> dict[str, str]:
    """The names that a file gives: ``subscription``, ``group``, ``workspace``.

    Raises:
        ConfigFileError: It is no JSON object, or lacks one of the three.
    """
    found = _content(file)
    if found is None:
        raise ConfigFileError(f"{file} must be a JSON object with {', '.join(_KEYS.values())}.")
    if isinstance(scope := found.get("Scope"), str):
        words = [word for word in scope.split("/") if word]
        named = {words[index].lower(): words[index + 1] for index in range(0, len(words) - 1, 2)}
        values: dict[str, object] = {part: named.get(word, "") for part, word in _PARTS.items()}
    else:
        values = {part: found.get(key, "") for part, key in _KEYS.items()}
    for part, value in values.items():
        if not isinstance(value, str) or not value.strip():
            seen = f"got {json.dumps(value)}" if value else "it is missing"
            raise ConfigFileError(
                f"{file}: `{_KEYS[part]}` must be a text, {seen}. The file names a workspace by "
                f"{', '.join(_KEYS.values())}. Write all three (the studio's menu downloads the file), or name the "
                "workspace with --workspace."
            )
    return {part: str(value).strip() for part, value in values.items()}


def _reads_like_one(file: Path) -> bool:
    found = _content(file)
    return found is not None and ("Scope" in found or _KEYS["workspace"] in found)


def _content(file: Path) -> dict[str, object] | None:
    try:
        with file.open("rb") as stream:
            found = json.loads(stream.read(_LARGEST).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


TYPE: Final = "providers/Microsoft.MachineLearningServices/workspaces"
VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "subscription": ("AZUREML_ARM_SUBSCRIPTION", "ARM_SUBSCRIPTION_ID", "AZURE_SUBSCRIPTION_ID"),
    "group": ("AZUREML_ARM_RESOURCEGROUP", "AZURE_DEFAULTS_GROUP"),
    "workspace": ("AZUREML_ARM_WORKSPACE_NAME", "AZURE_DEFAULTS_WORKSPACE"),
}
"""Part → the variables that name it, the first that is set: what Azure ML sets on its own machines, azure-native's, and
the Azure CLI's defaults."""


class NoWorkspaceError(Exception):
    """No workspace is named, or what names it is wrong; the message is for the user."""


def options(asked: AskedWorkspace) -> tuple[tuple[str, str | None], ...]:
    """The options that name a part, each with its value."""
    return (
        ("--workspace", asked.workspace),
        ("--resource-group", asked.group),
        ("--subscription", asked.subscription),
    )


def named(asked: AskedWorkspace) -> tuple[dict[str, str], dict[str, str]]:
    """The parts that are named, each by the first that names it, and by what."""
    values: dict[str, str] = {}
    sources: dict[str, str] = {}

    def take(part: str, value: str | None, source: str) -> None:
        if value and part not in values:
            values[part], sources[part] = value.strip(), source

    workspace = asked.workspace or ""
    if workspace.startswith("/"):
        words = workspace.strip("/").split("/")
        if len(words) != 8 or words[6].casefold() != "workspaces":
            raise NoWorkspaceError(
                f"--workspace must be a name or an ARM id, got `{workspace}`. The id is "
                f"/subscriptions/ID/resourceGroups/GROUP/{TYPE}/NAME."
            )
        for part, index in (("subscription", 1), ("group", 3), ("workspace", 7)):
            take(part, words[index], "--workspace")
    for part, (option, value) in zip(("workspace", "group", "subscription"), options(asked), strict=True):
        take(part, value, option)
    if len(values) < len(VARIABLES) and (file := config_file(Path.cwd())) is not None:
        try:
            in_file = read_config_file(file)
        except ConfigFileError as error:
            raise NoWorkspaceError(str(error)) from None
        for part, value in in_file.items():
            take(part, value, _shown(file))
    for part, variables in VARIABLES.items():
        name = next((name for name in variables if os.environ.get(name)), None)
        if name is not None:
            take(part, os.environ[name], name)
    return values, sources


def nothing_names_one(values: Mapping[str, str], sources: Mapping[str, str]) -> bool:
    """True where only an account of the environment is known, which may be meant for something else."""
    return values.keys() <= {"subscription"} and not (
        sources.get("subscription", "").startswith("--") or os.environ.get(ENDPOINT_VARIABLE)
    )


def together(sources: Mapping[str, str]) -> str:
    """The sources of the parts, each once, for a line."""
    alike: dict[str, list[str]] = {}
    for part in VARIABLES:
        if part in sources:
            alike.setdefault(sources[part], []).append(part)
    return ", ".join(alike)


def _shown(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def unnamed(values: Mapping[str, str]) -> str:
    """The message where no workspace, or none as a whole, is named."""
    seen = (
        f"`{values['workspace']}` is named, its subscription is not"
        if "workspace" in values
        else "no workspace is named"
    )
    return (
        f"{seen[:1].upper()}{seen[1:]}. Give --stack NAME, or --workspace with --resource-group and --subscription, or "
        f"work in a folder with .azureml/config.json, or set {VARIABLES['workspace'][0]}, {VARIABLES['group'][0]} and "
        f"{VARIABLES['subscription'][0]}. There is no sandbox here either (amlstack sandbox up)."
    )
