"""The words that the other modules share: what an engine is, which one is pinned, how a refusal looks."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

VERSION = "3.259.0"
"""The pinned engine: the newest whose Go module and whose release both exist; every test runs on it."""

OLDEST = (3, 230, 0)
"""An engine on PATH must be at least this. The locked Python SDK asks the engine for features that came late (resource
hooks, replacement triggers); one that lacks them fails in the middle of a deployment instead of at its start."""

SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
COMMANDS = ("pulumi", "pulumi-language-python", "pulumi-language-python-exec")
"""What one folder must hold: the CLI, the Python language host, and the script by which the host starts a program."""

MANIFEST = "engine.json"
"""The file in a cached engine's folder that tells where it came from; written last, so its presence means complete."""

Source = Literal["path", "release", "build"]
SOURCES: tuple[Source, ...] = ("path", "release", "build")


class NoEngineError(Exception):
    """No engine from this source and no sense in trying the next one; the text is the whole message."""


class Unavailable(Exception):  # noqa: N818 - a state of the world, not a mistake
    """This source has no engine to offer here; the text says why and the next source is tried."""


@dataclass(frozen=True)
class FoundEngine:
    """One usable engine.

    Attributes:
        version: Without a leading ``v``.
        source: Where it came from.
        folders: To prepend to PATH, in this order.
    """

    version: str
    source: Source
    folders: tuple[Path, ...]


def cache() -> Path:
    """The user's cache folder, by the rule of ``amlstack.base.paths``, which needs ``.venv`` to be imported."""
    if chosen := os.environ.get("AMLSTACK_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(base) / "amlstack").absolute()


def target() -> tuple[str, str]:
    """Operating system and processor in the words of the release files: ``("linux", "x64")``."""
    machine = platform.machine().lower()
    return platform.system().lower(), {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)
