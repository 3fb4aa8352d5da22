"""Where things lie on this machine: the project, its sandbox home and the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
"""The root of this clone: the folder of Pulumi.yaml."""


def home() -> Path:
    """The folder of everything that one sandbox writes (state, keys, job records, Pulumi's file backend).

    ``AMLSTACK_HOME`` overrides it; tests give every sandbox its own. ``amlstack.base.home`` claims it, and
    removes only what a sandbox wrote.
    """
    return Path(os.environ.get("AMLSTACK_HOME") or PROJECT / ".amlstack").absolute()


def cache() -> Path:
    """The user's cache folder: engines and environments, each keyed by version or content.

    ``AMLSTACK_CACHE`` overrides it, then ``XDG_CACHE_HOME`` as usual.
    """
    if chosen := os.environ.get("AMLSTACK_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(base) / "amlstack").absolute()


def is_file(path: Path) -> bool:
    """Whether there is such a file; False, too, for one that is too long or may not be read."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_dir(path: Path) -> bool:
    """Whether there is such a folder; False, too, for a path that cannot be one."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    """Whether there is anything; False, too, for a path that nothing can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def names_in(folder: Path) -> list[str]:
    """The names of what lies in a folder, for a near miss; none where it is not there or cannot be read."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except (OSError, ValueError):
        return []
