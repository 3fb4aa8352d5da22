"""The engines in the user's cache: whole or not there, made once whatever starts at the same time."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .ambient import version_of
from .model import COMMANDS, MANIFEST, VERSION, FoundEngine, NoEngineError, Source, cache
from .progress import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
