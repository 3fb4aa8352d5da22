"""Walks a folder, judges what it finds and hashes it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding, Level, errors
from amlstack.snapshot.content import Content
from amlstack.snapshot.ignore import Ignore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HASH_VERSION: Final = "202208"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a snapshot.

    Attributes:
        path: Where its content lies; links resolved.
        relative: Its name in the snapshot, with ``/``; the link's name where it is one.
        size: In bytes.
    """

    path: Path
    relative: str
    size: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A folder's content.

    Attributes:
        root: The folder, links resolved.
        files: In hash order.
        hash: Content hash, 64 hex digits; empty when an error among the findings makes the content unknown.
        own_hash: The same of the folder alone, without what travels beside it.
        tidy_hash: The same as ``own_hash`` without what tools leave in a folder.
        digests: SHA-256 of each file of the folder alone, by its name; empty where the hashes are.
        findings: Errors refuse the upload; warnings are for the reader.
    """

    root: Path
    files: tuple[File, ...]
    hash: str
    own_hash: str
    findings: tuple[Finding, ...]
    tidy_hash: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The size of all files together."""
        return sum(file.size for file in self.files)


def scan(folder: Path, beside: Sequence[Path] = ()) -> Snapshot:
    """What an upload of ``folder`` would hold. Never raises for what is wrong with the folder: that is in the findings.

    Each package (a folder of Python files) in ``beside`` travels along under its own name, unless the folder has
    something of that name already: a person's own wins.

    Two files whose paths differ only in letter case are ordered by the exact path; azure-ai-ml leaves their order to
    the file system, so its hash of such a folder may differ between two machines.
    """
    shown = str(folder)
    if not folder.is_dir():
        return Snapshot(folder, (), "", "", (_no_folder(folder),))
    root = folder.resolve()
    ignore = Ignore.of(root)
    walk = _Walk(root, ignore, findings=list(ignore.findings))
    walk.folder(root, "", root, frozenset({root}), excluded=False)
    extra = [file for package in beside if not (root / package.name).exists() for file in _package(package)]
    files = tuple(sorted([*walk.files, *extra], key=lambda file: (file.relative.lower(), file.relative)))
    if not files and not errors(walk.findings):
        walk.wrong(
            "code-folder-empty",
            shown,
            f"{shown} holds no file that would be uploaded",
            "A code snapshot needs at least one file",
            remedy=f"Check {ignore.path.name}" if ignore.path else "",
        )
    if errors(walk.findings):
        return Snapshot(root, files, "", "", tuple(walk.findings))
    content = Content(files, frozenset(extra))
    walk.findings += content.read()
    if errors(walk.findings):
        return Snapshot(root, files, "", "", tuple(walk.findings))
    whole, own, tidy = content.hashes()
    return Snapshot(root, files, whole, own, tuple(walk.findings), tidy, content.digests)


def _package(folder: Path) -> list[File]:
    """A package's Python files under its own name."""
    paths = sorted(path for path in folder.rglob("*.py") if path.is_file())
    return [File(path, path.relative_to(folder.parent).as_posix(), path.stat().st_size) for path in paths]


def _no_folder(folder: Path) -> Finding:
    if folder.exists():
        seen, remedy = f"{folder} is no folder", f"Name its folder, {folder.parent}, instead"
    else:
        near = sorted(item.name for item in folder.parent.iterdir() if item.is_dir()) if folder.parent.is_dir() else []
        seen = f"there is no folder {folder}"
        remedy = f"{folder.parent} holds {', '.join(near[:8])}" if near else f"{folder.parent} holds no folder either"
    return Finding("code-folder-missing", "", seen, "The code of a job is a folder", remedy, file=str(folder))


class _LeavesError(Exception):
    """Something that would be taken lies outside of the folder, behind a linked folder."""


@dataclass(slots=True)
class _Walk:
    root: Path
    ignore: Ignore
    files: list[File] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def wrong(
        self, code: str, file: str, seen: str, rule: str, *, remedy: str = "", level: Level = Level.ERROR
    ) -> None:
        self.findings.append(Finding(code, "", seen, rule, remedy, level, file=file))

    def folder(self, actual: Path, prefix: str, real: Path, above: frozenset[Path], *, excluded: bool) -> None:
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
        for entry in entries:
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False  # a circle of links: judged as a broken link below
            if is_folder:
                self.subfolder(entry, prefix, real, above, excluded=excluded)
            elif not excluded and not self.ignore.excludes(start + entry.name):
                self.file(entry, prefix, real)

    def subfolder(
        self, entry: os.DirEntry[str], prefix: str, real: Path, above: frozenset[Path], *, excluded: bool
    ) -> None:
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
            self.folder(Path(entry.path), f"{relative}/", target, above | {target}, excluded=excluded)
        except _LeavesError:
            if not (linked and real.is_relative_to(self.root)):
                raise
            self.leaves(relative, target)

    def file(self, entry: os.DirEntry[str], prefix: str, real: Path) -> None:
        relative = prefix + entry.name
        if not real.is_relative_to(self.root):
            raise _LeavesError
        path = real / entry.name
        if entry.is_symlink():
            path = Path(os.path.realpath(path))
            if not path.is_relative_to(self.root):
                self.leaves(relative, path)
                return
        try:
            relative.encode()
            status = path.stat()
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
        if not stat.S_ISREG(status.st_mode):
            self.wrong(
                "file-special",
                relative,
                f"{relative} is a pipe, a socket or a device",
                "Only files with content can be uploaded",
                remedy="List it in .amlignore",
            )
            return
        self.files.append(File(path, relative, status.st_size))

    def leaves(self, relative: str, target: Path) -> None:
        self.wrong(
            "link-leaves-folder",
            relative,
            f"the link {relative} leads to {target}, outside of the code folder",
            "What is uploaded lies in the folder: nothing else is sent to Azure by surprise",
            remedy="Copy the content into the folder, or list the link in .amlignore",
        )

    def unreadable(self, relative: str, error: OSError) -> None:
        self.wrong(
            "file-unreadable",
            relative,
            f"{relative} cannot be read ({error.strerror or error})",
            "Everything in the folder is uploaded",
            remedy="Make it readable or list it in .amlignore",
        )

    def git(self) -> None:
        self.wrong(
            "git-folder-in-code",
            ".git",
            "the folder .git would be uploaded with the code",
            "The history of a repository is large, changes the hash with every commit and may hold secrets",
            remedy=f"Add .git/ to {self.ignore.path.name if self.ignore.path else '.amlignore'}",
            level=Level.WARNING,
        )
