"""``.azureml/config.json``: the file by which azure-ai-ml and the Azure ML CLI v1 name a workspace.

Looked for as azure-ai-ml 1.35 does (``MLClient.from_config``): in each of three places below a folder, for two names,
from the working folder upwards, 20 folders in all; the first place and name that is found anywhere counts.
"""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS: Final = (".azureml", "aml_config", "")
NAMES: Final = ("config.json", "project.json")
LEVELS: Final = 20
_KEYS: Final = {"subscription": "subscription_id", "group": "resource_group", "workspace": "workspace_name"}
_PARTS: Final = {"subscription": "subscriptions", "group": "resourcegroups", "workspace": "workspaces"}
_LARGEST: Final = 1 << 20


class ConfigFileError(Exception):
    """A file was found and names no workspace; the message says what is wrong with it."""


def find(start: Path) -> Path | None:
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


def read(file: Path) -> dict[str, str]:
    """What a file names: ``subscription``, ``group``, ``workspace``.

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
