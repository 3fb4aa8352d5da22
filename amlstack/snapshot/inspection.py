"""Findings about a code folder without hashing it, for verbs that send nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding, Level
from amlstack.snapshot import folder as folders
from amlstack.snapshot import remembered, secrets
from amlstack.snapshot import walk as walk_module
from amlstack.snapshot.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from amlstack.snapshot.walk import File

MOST_FILES: Final = 20_000
"""Files after which the walk ends."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""Bytes that are searched for secrets, besides files of which an earlier scan remembers what they hold."""
_START: Final = 8192
"""Bytes by which a binary file is known."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """A folder that was looked at.

    Attributes:
        files: Number of files that would be uploaded; of a folder beyond the bound, as many as were seen.
        bytes: Their size together.
        findings: In the words of `amlstack.snapshot.scan`.
    """

    files: int = 0
    bytes: int = 0
    findings: tuple[Finding, ...] = ()


def inspect(folder: Path, *, accompanied: bool = False) -> Inspected:
    """The faults that a scan would find in a folder, within a bound of files and bytes; a note names the rest.

    Args:
        folder: The folder; one that is not there has no findings, as the plan has one.
        accompanied: Whether packages travel along, so that the folder itself may be empty.
    """
    if not folder.is_dir():
        return Inspected()
    began = remembered.now()
    walk = folders.walked(folder, MOST_FILES)
    found = list(walk.findings)
    if not walk.files and not accompanied and not found:
        found.append(folders.empty(folder, walk))
    found += walk_module.findings(walk.files)
    memory = Remembered.read(folder.resolve(), began) if remembered.is_large(walk.files) else None
    known = memory.trusted(walk.files) if memory is not None else {}
    unread, budget = [], MOST_BYTES
    for file in sorted(walk.files, key=lambda each: each.size):
        if file.place in known:
            secret = known[file.place].secret
        elif budget > 0:
            head = _head(file)
            budget -= len(head)
            secret = secrets.secret_in(head)
        else:
            unread.append(file)
            secret = None
        if (wrong := secrets.finding(file.relative, secret)) is not None:
            found.append(wrong)
    if unread or walk.is_full:
        found.append(_partly(walk.files, unread, full=walk.is_full))
    return Inspected(len(walk.files), sum(file.size for file in walk.files), tuple(found))


def _head(file: File) -> bytes:
    """The bytes to search for secrets: of a binary file its start, and nothing of one that cannot be read."""
    try:
        with file.open() as stream:
            start = stream.read(_START)
            return start if b"\0" in start or len(start) < _START else start + stream.read(secrets.HEAD - _START)
    except OSError:
        return b""


def _partly(files: Sequence[File], unread: Sequence[File], *, full: bool) -> Finding:
    seen = f"{len(unread):,} of the code folder's {len(files):,} files were searched for secrets by name only"
    if full:
        seen = f"Only the first {len(files):,} files of the code folder were looked at"
    rule = "A check reads a bounded part of a large folder; a rehearsal and an `up` read all of it"
    return Finding("code-partly-read", "", seen, rule, "", Level.INFO, file=".")
