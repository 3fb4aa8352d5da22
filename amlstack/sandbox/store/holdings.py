"""Losses when a sandbox is removed: records of runs, and files that jobs wrote to mounted outputs."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.sandbox.store.database import StateError
from amlstack.sandbox.store.places import folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHOWN = 5
"""Names in a line, before the rest is counted."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """The data of a sandbox that people would miss.

    Attributes:
        runs: Names of the runs that have ended, those of sweeps and pipelines without their children.
        active: Names of the runs that have not.
        folders: Folders below ``mounts`` in which jobs left files (checkpoints are kept there), by account and path.
        files, size: How many files these are, and their bytes.
        unreadable: Why the records could not be read; empty when they were.
    """

    runs: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    files: int = 0
    size: int = 0
    unreadable: str = ""

    def lines(self) -> Iterator[str]:
        """A line for each kind of thing, with its number and names; none when there is nothing to miss."""
        if self.active:
            yield f"{_counted(self.active, 'run')} under way, cancelled: {listed(self.active)}"
        if self.runs:
            yield f"{_counted(self.runs, 'run')} with record, logs and outputs: {listed(self.runs)}"
        if self.files:
            number = f"{self.files:,} file{'' if self.files == 1 else 's'}"
            size = f"{self.size / 1e6:,.1f} MB"
            yield f"{number} in mounted outputs, {size} (checkpoints lie there): {listed(self.folders)}"
        if self.unreadable:
            yield f"records that this version cannot count: {self.unreadable}"


def gather(home: Path) -> Holdings:
    """The holdings of the sandbox of a home; none when there is none."""
    folders, files, size = set(), 0, 0
    mounts = folder(home) / "mounts"
    for at, _, names in os.walk(mounts):
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile
                size += (Path(at) / name).lstat().st_size
                files += 1
                folders.add(os.path.relpath(at, mounts))
    try:
        runs, active = _runs(home)
    except (StateError, sqlite3.DatabaseError) as error:
        return Holdings(folders=tuple(sorted(folders)), files=files, size=size, unreadable=str(error))
    return Holdings(runs, active, tuple(sorted(folders)), files, size)


def _runs(home: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not (folder(home) / "state.db").is_file():
        return (), ()
    from amlstack.sandbox.store.store import Store  # noqa: PLC0415 - its tables are needed only where there are some

    with contextlib.closing(Store(home)) as store:
        children = store.family.members()
        rows = [row for row in store.jobs.list() if row.id not in children]
    return tuple(row.id for row in rows if not row.active), tuple(row.id for row in rows if row.active)


def _counted(names: Sequence[str], noun: str) -> str:
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """The last few names, which are the latest; the rest as a number."""
    more = len(names) - SHOWN
    return ", ".join(names[-SHOWN:]) + (f" and {more} more" if more > 0 else "")
