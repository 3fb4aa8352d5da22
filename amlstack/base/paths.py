"""Paths on this machine: this installation, the project, its sandbox home and the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
"""The folder of this installation's packages: the root of a clone, or where an installer has put them."""


def _is_project(folder: Path) -> bool:
    try:
        return b"amlstack" in (folder / "Pulumi.yaml").read_bytes()
    except OSError:
        return False


def _project() -> Path | None:
    # Main's clone and an unpacked policy pack judge the checkout of a pull request: nothing there takes their place.
    if _is_project(PACKAGE) or (PACKAGE / "analyzer").is_file():
        return PACKAGE
    try:
        here = Path.cwd()
    except OSError:  # the folder was removed meanwhile
        return None
    return next(filter(_is_project, (here, *here.parents)), None)


_PROJECT = _project()
PROJECT = _PROJECT or Path()
"""The root of the project, the folder of Pulumi.yaml: this clone, and for an installed package the nearest one above
the working folder whose Pulumi.yaml names amlstack, else the working folder."""

POLICY_CONFIG = "AMLSTACK_POLICY_CONFIG"
"""Variable that tells the engine's program which file configures the rules; empty for the pack's own configuration."""


def home() -> Path:
    """The folder of everything that one sandbox writes (state, keys, job records, Pulumi's file backend).

    ``AMLSTACK_HOME`` overrides it; tests give every sandbox its own. Without it, it is `.amlstack` in the project, and
    outside of one a folder below ``XDG_STATE_HOME``. ``amlstack.base.home`` claims it, and removes only what a sandbox
    wrote.
    """
    if chosen := os.environ.get("AMLSTACK_HOME"):
        return Path(chosen).absolute()
    if _PROJECT is not None:
        return _PROJECT / ".amlstack"
    return (Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "amlstack").absolute()


def shipped(folder: str) -> Path:
    """A folder of the clone that an installed package carries inside `amlstack` (pyproject.toml, force-include)."""
    inside = PACKAGE / "amlstack" / folder
    return inside if inside.is_dir() else PACKAGE / folder


def cache() -> Path:
    """The user's cache folder: engines and environments, each keyed by version or content.

    ``AMLSTACK_CACHE`` overrides it, then ``XDG_CACHE_HOME`` as usual.
    """
    if chosen := os.environ.get("AMLSTACK_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(base) / "amlstack").absolute()


# `os.path` answers False for what cannot be a path, and thousands of job files ask.


def is_file(path: str | Path) -> bool:
    """True where there is such a file; False, too, for one that is too long or may not be read."""
    return os.path.isfile(path)  # noqa: PTH113 - see above


def is_dir(path: str | Path) -> bool:
    """True where there is such a folder; False, too, for a path that cannot be one."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def exists(path: str | Path) -> bool:
    """True where there is anything; False, too, for a path that nothing can have."""
    return os.path.exists(path)  # noqa: PTH110 - see above


def names_in(folder: Path) -> list[str]:
    """The names of what lies in a folder, for a near miss; none where it is not there or cannot be read."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except (OSError, ValueError):
        return []


def files_below(folder: Path) -> list[Path]:
    """The files in a folder and in all folders of it, sorted; none where it is not there.

    Folders that others remove meanwhile are left out: `Path.rglob` ends with their error.
    """
    return sorted(Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
