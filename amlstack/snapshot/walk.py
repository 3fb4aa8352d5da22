"""The files of a folder that an upload takes, and findings about them."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from amlstack.base import text
from amlstack.base.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO

    from amlstack.snapshot.ignore import Ignore

LARGE_FILE: Final = 100 * 1000**2
"""Bytes. From 100 MB on azure-ai-ml, too, warns of a file that it uploads."""
LARGE_FOLDER: Final = 300 * 1000**2
"""Bytes. The first SDK refused larger snapshots; nothing but code and its small data comes near it."""
_MOST: Final = 5
"""Files that are named."""
_RULE: Final = "Code is uploaded, and copied to every node before its ranks start"
_REMEDY: Final = "List it in .amlignore; data is an input of the job"


def findings(files: Sequence[File]) -> Iterator[Finding]:
    """Warnings on large files, the largest first, and on many that are large together."""
    large = sorted((file for file in files if file.size >= LARGE_FILE), key=lambda file: -file.size)
    for file in large[:_MOST]:
        seen = f"{file.relative} is a file of {shown(file.size)}"
        yield Finding("large-file-in-code", "", seen, _RULE, _REMEDY, Level.WARNING, file=file.relative)
    total = sum(file.size for file in files)
    rest = total - sum(file.size for file in large[:_MOST])
    if rest >= LARGE_FOLDER:
        seen = f"The code folder sends {len(files):,} files of {shown(total)} together"
        remedy = "List in .amlignore what no run needs; data is an input of the job"
        yield Finding("large-code-folder", "", seen, _RULE, remedy, Level.WARNING, file=".")


def shown(size: int) -> str:
    """A size in bytes as people write it: ``3.1 kB``, ``400 MB``."""
    value, unit = float(size), "bytes"
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if unit != "bytes" else f"{size} byte{'' if size == 1 else 's'}"


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class FileState(NamedTuple):
    """The facts that ``stat`` gives of a file's content, without reading it; a write changes at least ``changed``.

    Attributes:
        size: In bytes.
        modified: ``st_mtime_ns``; a program may set it.
        changed: ``st_ctime_ns``; the kernel alone sets it.
        inode: Which file it is on its device.
        device: Of the file system.
    """

    size: int
    modified: int
    changed: int
    inode: int
    device: int

    @classmethod
    def from_stat(cls, status: os.stat_result) -> FileState:
        """From the result of one ``stat``."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)


class File(NamedTuple):
    """One file of a snapshot.

    Attributes:
        place: Where its content lies; links resolved.
        relative: Its name in the snapshot, with ``/``; the link's name where it is one.
        state: As the walk saw it.
    """

    place: str
    relative: str
    state: FileState

    @property
    def path(self) -> Path:
        """The path of its content."""
        return Path(self.place)

    def open(self) -> FileIO:
        """Its content, to be read in large blocks."""
        return open(self.place, "rb", buffering=0)  # noqa: PTH123 - a Path takes as long to make as the file to open

    @property
    def size(self) -> int:
        """In bytes."""
        return self.state.size


class _LeavesError(Exception):
    """Something that would be taken lies outside of the folder, behind a linked folder."""


@dataclass(slots=True)
class Walk:
    """One walk through a folder; `folder` begins it.

    Attributes:
        root: The folder, links resolved.
        ignore: Its rules.
        files: Those that are taken, in no order.
        findings: What is wrong.
        most: Files after which it ends; None for no bound.
        what: What the folder holds, in messages: ``code`` or ``data``.
    """

    root: Path
    ignore: Ignore
    files: list[File] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    most: int | None = None
    what: str = "code"

    @property
    def is_full(self) -> bool:
        """True where it ended before the folder did, or just at its end."""
        return self.most is not None and len(self.files) >= self.most

    def wrong(
        self, code: str, file: str, seen: str, rule: str, *, remedy: str = "", level: Level = Level.ERROR
    ) -> None:
        """Adds a finding."""
        self.findings.append(Finding(code, "", seen, rule, remedy, level, file=file))

    def folder(self, actual: str, prefix: str, real: Path, above: frozenset[Path], *, excluded: bool) -> None:
        """Takes what lies in one folder.

        Args:
            actual: The folder as walked, through links.
            prefix: Its name in the snapshot with a trailing ``/``; empty for the root.
            real: The folder with links resolved: what ignore patterns see.
            above: All folders that it lies in, resolved; finds circles.
            excluded: The patterns take nothing directly below; only a link can lead out of that.
        """
        base = os.path.relpath(real, self.ignore.base)
        start = "" if base == "." else f"{base}/"
        try:
            entries = sorted(os.scandir(actual), key=lambda entry: entry.name)
        except OSError as error:
            if not excluded and not self.ignore.excludes(f"{start}x"):
                self.unreadable(prefix.rstrip("/") or ".", error)
            return
        inside, place, excludes = real.is_relative_to(self.root), f"{real}/".replace("//", "/"), self.ignore.excludes
        for entry in entries:
            if self.is_full:
                return
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False  # a circle of links: judged as a broken link below
            if is_folder:
                self.subfolder(entry, prefix, real, above, excluded=excluded)
            elif not excluded and not excludes(start + entry.name):
                if not inside:
                    raise _LeavesError
                self.file(entry, prefix + entry.name, place + entry.name)

    def subfolder(
        self, entry: os.DirEntry[str], prefix: str, real: Path, above: frozenset[Path], *, excluded: bool
    ) -> None:
        """Takes what lies in a folder within a folder, unless it leads in a circle or out of the root."""
        relative = prefix + entry.name
        linked = entry.is_symlink()
        target = Path(os.path.realpath(entry.path)) if linked else real / entry.name
        if linked or not excluded:
            excluded = self.ignore.excludes_all_below(os.path.relpath(target, self.ignore.base))
        if target in above:
            if not excluded:
                self.wrong(
                    "link-circle",
                    relative,
                    f"the link {relative} leads back to a folder that it lies in",
                    "A snapshot has an end",
                    remedy="Remove the link or list its target in .amlignore",
                )
            return
        if entry.name == ".git" and not prefix and not excluded and not linked:
            self.git()
        try:
            self.folder(entry.path, f"{relative}/", target, above | {target}, excluded=excluded)
        except _LeavesError:
            if not (linked and real.is_relative_to(self.root)):
                raise
            self.leaves(relative, target)

    def file(self, entry: os.DirEntry[str], relative: str, place: str) -> None:
        """Takes one file, or says why not; ``place`` is where it lies."""
        try:
            linked = entry.is_symlink()
            if linked:
                place = os.path.realpath(place)
                if not Path(place).is_relative_to(self.root):
                    self.leaves(relative, Path(place))
                    return
            relative.encode()
            status = Path(place).stat() if linked else entry.stat()
        except UnicodeEncodeError:
            shown = relative.encode(errors="backslashreplace").decode()
            self.wrong(
                "file-name-no-text",
                shown,
                f"the name {shown} is no UTF-8",
                "Azure's paths are text",
                remedy="Rename it",
            )
            return
        except OSError as error:
            if entry.is_symlink():
                self.wrong(
                    "link-broken",
                    relative,
                    f"the link {relative} leads nowhere",
                    "A link is uploaded as the content it leads to",
                    remedy="Mend or remove it, or list it in .amlignore",
                )
            else:
                self.unreadable(relative, error)
            return
        if _CONTROL.search(relative):
            shown = text.line(relative)
            self.wrong(
                "file-name-control",
                shown,
                f"the name {shown} has a control character",
                "Azure's blobs have none in their names (learn.microsoft.com, naming of containers and blobs)",
                remedy="Rename it, or list it in .amlignore",
            )
            return
        if not stat.S_ISREG(status.st_mode):
            self.wrong(
                "file-special",
                relative,
                f"{relative} is a pipe, a socket or a device",
                "Only files with content can be uploaded",
                remedy="List it in .amlignore",
            )
            return
        self.files.append(File(place, relative, FileState.from_stat(status)))

    def leaves(self, relative: str, target: Path) -> None:
        """A link that leads out of the folder."""
        self.wrong(
            "link-leaves-folder",
            relative,
            f"the link {relative} leads to {target}, outside of the {self.what} folder",
            "What is uploaded lies in the folder: nothing else is sent to Azure by surprise",
            remedy="Copy the content into the folder, or list the link in .amlignore",
        )

    def unreadable(self, relative: str, error: OSError) -> None:
        """A file or folder that nobody may read, or that has just gone."""
        self.wrong(
            "file-unreadable",
            relative,
            f"{relative} cannot be read ({error.strerror or error})",
            "Everything in the folder is uploaded",
            remedy="Make it readable or list it in .amlignore",
        )

    def git(self) -> None:
        """A repository's history that no ignore file leaves out."""
        self.wrong(
            f"git-folder-in-{self.what}",
            ".git",
            f"the folder .git would be uploaded with the {self.what}",
            "The history of a repository is large, changes the hash with every commit and may hold secrets",
            remedy=f"Add .git/ to {self.ignore.path.name if self.ignore.path else '.amlignore'}",
            level=Level.WARNING,
        )
