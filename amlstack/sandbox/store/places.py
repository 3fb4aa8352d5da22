"""Paths of a sandbox's files and their modes; finding a file does not load the tables."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRIVATE = 0o077
"""The umask of the server and of runners: state, code, data, logs and keys are their owner's alone."""

USUAL = 0o022
"""The umask of a job's own processes, as in a container, and of what a cache keeps for several users."""


def folder(home: Path) -> Path:
    """``<home>/sandbox``: everything of one sandbox."""
    return home / "sandbox"


def job_folder(home: Path, job: str) -> Path:
    """``<home>/sandbox/jobs/<table key of the job>``; made by the runner."""
    return folder(home) / "jobs" / job


def private(path: Path) -> Path:
    """Makes a folder, with those above it, that only its owner enters; one that others could enter is closed."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


@contextlib.contextmanager
def umask(mask: int) -> Iterator[None]:
    """Set the umask of this process meanwhile; for processes of one thread."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
