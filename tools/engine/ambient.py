"""Source ``path``: the engine that the user already has, taken as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from .model import MANIFEST, OLDEST, SOURCES, FoundEngine, Source, Unavailable

TIMEOUT = 30
"""Seconds for one start of a command; a cold start of the CLI from a slow disk takes a few."""


def find() -> FoundEngine:
    """The engine on PATH.

    Raises:
        Unavailable: None there, too old, or without a Python language host that starts.
    """
    command = shutil.which("pulumi")
    if command is None:
        raise Unavailable("no pulumi on PATH")
    version = version_of(Path(command))
    if version is None:
        raise Unavailable(f"{command} does not tell its version")
    if version < OLDEST:
        raise Unavailable(f"{command} is {_dotted(version)}; at least {_dotted(OLDEST)} is needed")
    # The engine looks beside its own executable (links resolved), too: Homebrew and version managers rely on that.
    places = [Path(command).parent, Path(command).resolve().parent]
    host = _beside_or_on_path("pulumi-language-python", places)
    if host is None or not _starts(host):
        raise Unavailable(f"{command} has no Python language host (pulumi-language-python) that starts")
    if _beside_or_on_path("pulumi-language-python-exec", [*places, host.parent]) is None:
        raise Unavailable(f"{host} has no pulumi-language-python-exec beside it")
    return FoundEngine(_dotted(version), _origin(Path(command)), (Path(command).parent.absolute(),))


def version_of(command: Path) -> tuple[int, int, int] | None:
    """``pulumi version`` as numbers; None if the command does not start or says something else."""
    answer = _run(command, "version")
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", answer.stdout.strip()) if answer and answer.returncode == 0 else None
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _origin(command: Path) -> Source:
    # One of our own that a caller put on PATH keeps its true source: callers ask it what this engine can do.
    try:
        source = json.loads((command.parent / MANIFEST).read_text("utf-8"))["source"]
    except (OSError, ValueError, KeyError, TypeError):
        return "path"
    return next((known for known in SOURCES if known == source), "path")


def _starts(host: Path) -> bool:
    # `-h` ends at once and proves that the file is an executable for this machine; a normal start would serve for ever.
    answer = _run(host, "-h")
    return answer is not None and "-tracing" in answer.stdout + answer.stderr


def _run(command: Path, argument: str) -> subprocess.CompletedProcess[str] | None:
    quiet = os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "1"}
    try:
        return subprocess.run(
            [command, argument], env=quiet, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _beside_or_on_path(name: str, places: list[Path]) -> Path | None:
    for place in places:
        if os.access(place / name, os.X_OK):
            return place / name
    found = shutil.which(name)
    return Path(found) if found else None


def _dotted(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))
