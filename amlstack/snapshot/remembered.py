"""The record of an earlier scan, so that an unchanged file is not read again.

A file is taken as unchanged when its place, size, times, inode and device are those of the earlier scan. Programs can
set every time but the change time (``st_ctime``), which the kernel alone sets, from a clock with a grain: two writes
within one grain leave the same time. So a file is remembered only if it last changed longer before the scan began than
any grain lasts; whatever is written to it later has another change time. Younger files are read again.

Nothing is remembered on file systems that are not known to keep such times by this machine's clock (network shares,
folders of another machine, FAT), nor while the clock is behind the time of the earlier scan. A program that writes
through a memory mapping for longer than the grain can go unseen until the kernel writes the page to disk: as ever, a
folder must not change while its snapshot is taken.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from amlstack.base import credentials, paths
from amlstack.base.files import Kept
from amlstack.snapshot.walk import File, FileState

GRAIN: Final = 2_000_000_000
"""Nanoseconds. ext3 keeps whole seconds, the kernel's own clock ticks every 1 to 10 ms."""
LEAST_BYTES: Final = 8 * 1024 * 1024
LEAST_FILES: Final = 500
"""A smaller folder is read in less time than it takes to remember it."""
_MOST_BYTES: Final = 128 * 1024 * 1024
_FILE_SYSTEMS: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "overlay"})
"""Local file systems whose change time no program can set."""
_MOUNTS: Final = Path("/proc/self/mountinfo")

now: Callable[[], int] = time.time_ns
"""The clock."""


class FileContent(NamedTuple):
    """The contents of a file.

    Attributes:
        digest: SHA-256, hex.
        secret: What it holds that looks like a secret, and the line; None for nothing.
    """

    digest: str
    secret: tuple[str, int] | None


@dataclass(slots=True)
class Remembered:
    """The files of one folder.

    Attributes:
        root: The folder.
        began: When the scan began, in nanoseconds since the epoch.
        kept: Where it is kept.
        known: What the earlier scan found, by place: the file's state then, and what its content was.
    """

    root: str
    began: int
    kept: Kept
    known: dict[str, tuple[FileState, FileContent]]

    @classmethod
    def read(cls, root: Path, began: int) -> Remembered | None:
        """The memory of a folder; None where nothing may be remembered.

        Args:
            root: The folder, links resolved.
            began: When the walk through it began.
        """
        if (kept := keeper(root)) is None:
            return None
        value = kept.read(f"folder {root}")
        known = _parsed(value["files"]) if value is not None and value["began"] <= began else {}
        return cls(str(root), began, kept, known)

    def trusted(self, files: Sequence[File]) -> dict[str, FileContent]:
        """Of the files that did not change since, what they hold, by place."""
        found = {}
        for file in files:
            if (before := self.known.get(file.place)) is not None and before[0] == file.state:
                found[file.place] = before[1]
        return found

    def keep(self, files: Sequence[File], facts: Mapping[str, FileContent], unsteady: Collection[str]) -> None:
        """Remembers files of the folder, those left out that changed too recently or while they were read.

        Args:
            files: The files.
            facts: What they hold, by place.
            unsteady: Places of those that changed while they were read.
        """
        limit = self.began - GRAIN
        reliable = _reliable_devices(files)
        new = {
            file.place: (file.state, facts[file.place])
            for file in files
            if file.state.changed < limit
            and file.state.modified < limit
            and file.state.device in reliable
            and file.place in facts
            and file.place not in unsteady
        }
        if new != self.known:
            rows = {place: [*state, digest, *(secret or ())] for place, (state, (digest, secret)) in new.items()}
            self.kept.write(f"folder {self.root}", {"began": self.began, "files": rows})


def keeper(root: Path) -> Kept | None:
    """The path at which a folder's files are remembered; None where the cache lies in it, or cannot be relied on."""
    folder = paths.cache() / "snapshots"
    if not (version := _version()) or Path(os.path.realpath(folder)).is_relative_to(root):
        return None
    return Kept(folder, version, _MOST_BYTES)


@functools.cache
def _version() -> str:
    """Of the code whose results are remembered; empty where it cannot be read."""
    sources = [*sorted(Path(__file__).parent.glob("*.py")), Path(credentials.__file__)]
    try:
        return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    except OSError:
        return ""


def is_large(files: Sequence[File]) -> bool:
    """True where a folder is worth remembering."""
    return len(files) >= LEAST_FILES or sum(file.size for file in files) >= LEAST_BYTES


def is_steady(files: Sequence[File]) -> bool:
    """True where files are still what a scan saw, and so old that it would show if they were not."""
    limit = now() - GRAIN
    try:
        return all(file.state.changed < limit and FileState.from_stat(file.path.stat()) == file.state for file in files)
    except OSError:
        return False


def _parsed(rows: Mapping[str, Sequence[Any]]) -> dict[str, tuple[FileState, FileContent]]:
    return {
        place: (FileState(*row[:5]), FileContent(row[5], (row[6], row[7]) if len(row) > 6 else None))
        for place, row in rows.items()
    }


def _reliable_devices(files: Sequence[File]) -> set[int]:
    """Devices with a file system that is known to keep change times."""
    places = {file.state.device: file.place for file in files}
    mounts = _mounts()
    return {device for device, place in places.items() if _kind(place, mounts) in _FILE_SYSTEMS}


def _kind(place: str, mounts: Mapping[str, str]) -> str:
    """The kind of the file system that a file lies on; empty when it is not known."""
    return next((mounts[str(folder)] for folder in Path(place).parents if str(folder) in mounts), "")


def _mounts() -> dict[str, str]:
    """Kinds of file systems by the folders that they are mounted on; of two on one folder, the upper."""
    try:
        lines = os.fsdecode(_MOUNTS.read_bytes()).splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        about, _, system = line.partition(" - ")
        folder = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), about.split(" ")[4])
        found[folder] = system.split(" ")[0]
    return found
