"""Folders of a sandbox and of its jobs, and their modes; finding one does not load the tables."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
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


PREFIX = "amlstack-"
NOTE = "temporary"
"""The file in the job's folder that holds the path: what ends a job after its runner finds the folder by it."""


def make_temporary(home: Path, job: str, below: Path | None = None) -> Path:
    """A fresh folder that only this user enters (0700), instead of the one that an earlier attempt left.

    Args:
        home: The sandbox's home.
        job: The job's table key.
        below: Where it lies; None for the machine's folder for such files, since sockets are made there: their paths
            may have 107 characters.
    """
    remove_temporary(home, job)
    made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=below))
    note = job_folder(home, job) / NOTE
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(str(made))
    return made


def remove_temporary(home: Path, job: str) -> None:
    """Removes the folder that was made for a job; one that is gone, or is not this user's own, is left."""
    note = job_folder(home, job) / NOTE
    with contextlib.suppress(OSError):
        path = Path(note.read_text())
        found = path.lstat()
        if path.name.startswith(PREFIX) and stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)
    note.unlink(missing_ok=True)
