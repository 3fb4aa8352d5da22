"""The engines of this machine: the user's own on PATH, and those in the cache, whole or not there, each made once."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .model import (
    COMMANDS,
    MANIFEST,
    OLDEST,
    SOURCES,
    VERSION,
    FoundEngine,
    NoEngineError,
    Source,
    Unavailable,
    cache,
    say,
)

TIMEOUT = 30
"""Seconds for one start of a command; a cold start of the CLI from a slow disk takes a few."""


def on_path() -> FoundEngine:
    """The engine on PATH.

    Raises:
        Unavailable: None there, too old, or without a Python language host that starts.
    """
    command = shutil.which("pulumi")
    if command is None:
        raise Unavailable("no pulumi on PATH")
    if engine := _kept(Path(command).parent):
        return engine
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


def _kept(folder: Path) -> FoundEngine | None:
    """An engine of the cache that a caller put on PATH: it was started when it was made, and need not be again."""
    try:
        made = json.loads((folder / MANIFEST).read_text("utf-8"))
        engine = FoundEngine(made["version"], made["source"], (folder,))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = folder.parent == root() and all(os.access(folder / name, os.X_OK) for name in COMMANDS)
    return engine if whole else None


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


def root() -> Path:
    """The folder of all cached engines."""
    return cache() / "engine"


def cached(source: Source, recipe: str) -> FoundEngine | None:
    """The finished engine of this source and recipe, if the cache holds it with everything that belongs to it."""
    folder = root() / key(source, recipe)
    if not (folder / MANIFEST).is_file() or not all(os.access(folder / name, os.X_OK) for name in COMMANDS):
        return None
    return FoundEngine(VERSION, source, (folder,))


def key(source: Source, recipe: str) -> str:
    """The folder's name. The recipe's digest is in it: changed instructions make another engine, never a mixed one."""
    return f"{VERSION}-{source}-{recipe[:10]}"


def make(source: Source, recipe: str, fill: Callable[[Path], None]) -> FoundEngine:
    """The cached engine, made by ``fill`` in a temporary folder if it is not there yet.

    ``fill`` gets an empty folder beside the final one. The folder is renamed whole when everything in it starts, so a
    run that is interrupted leaves at most a temporary folder, which the next run removes.

    Raises:
        NoEngineError: What ``fill`` made is not the pinned engine.
        OSError: The cache cannot be written.
    """
    name = key(source, recipe)
    with _lock(name):
        # Whoever held the lock before us may have finished it.
        if engine := cached(source, recipe):
            return engine
        for leftover in root().glob(f".{name}.*.tmp"):
            shutil.rmtree(leftover, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".tmp", dir=root()))
        try:
            fill(work)
            _verify(work)
            manifest = {"version": VERSION, "source": source, "recipe": recipe}
            (work / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
            work.chmod(0o755)
            final = root() / name
            shutil.rmtree(final, ignore_errors=True)  # one that `cached` did not accept: a file was deleted from it
            work.rename(final)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return FoundEngine(VERSION, source, (final,))


def _verify(folder: Path) -> None:
    for name in COMMANDS:
        if not (folder / name).is_file():
            raise NoEngineError(
                f"{name} is missing in what was fetched or built; this is not a complete Pulumi engine."
            )
        (folder / name).chmod(0o755)
    seen = version_of(folder / "pulumi")
    if seen is None or ".".join(map(str, seen)) != VERSION:
        raise NoEngineError(f"`pulumi version` of the new engine did not answer v{VERSION}; it does not run here.")


@contextmanager
def _lock(name: str) -> Iterator[None]:
    root().mkdir(parents=True, exist_ok=True)
    # The lock is the kernel's and ends with its process, so a killed run never blocks the next; the file stays.
    with (root() / f".{name}.lock").open("a+b") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("· another process is preparing the same engine; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
