"""The TMPDIR of a job: a folder with an unpredictable name, written down in the job's folder.

A name that another user of the machine can foresee, that user can make first, and then exchanges what mpirun executes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from amlstack.sandbox.store.places import job_folder

PREFIX = "amlstack-"
NOTE = "temporary"
"""The file in the job's folder that holds the path: what ends a job after its runner finds the folder by it."""


def make(home: Path, job: str) -> Path:
    """A fresh folder that only this user enters (0700), instead of the one that an earlier attempt left.

    It lies in the machine's folder for such files, since sockets are made there: their paths may have 107 characters.
    """
    remove(home, job)
    made = Path(tempfile.mkdtemp(prefix=PREFIX))
    note = job_folder(home, job) / NOTE
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(str(made))
    return made


def remove(home: Path, job: str) -> None:
    """Removes the folder that was made for a job; one that is gone, or is not this user's own, is left."""
    note = job_folder(home, job) / NOTE
    with contextlib.suppress(OSError):
        path = Path(note.read_text())
        found = path.lstat()
        if path.name.startswith(PREFIX) and stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)
    note.unlink(missing_ok=True)
