"""A folder as an upload would hold it: its files, what is wrong with them, and the hashes of their content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding, errors
from amlstack.snapshot import remembered, secrets
from amlstack.snapshot import walk as walk_module
from amlstack.snapshot.content import Content, ContentHash
from amlstack.snapshot.ignore import Ignore
from amlstack.snapshot.remembered import Remembered
from amlstack.snapshot.walk import File, FileState, Walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


HASH_VERSION: Final = "202208"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A folder's content.

    Attributes:
        root: The folder, links resolved.
        files: In hash order.
        hash: Content hash, 64 hex digits; empty when an error among the findings makes the content unknown.
        digests: SHA-256 of each file, by its name; empty where the hashes are.
        beside: Names of the files that travel beside the folder.
        findings: Errors refuse the upload; warnings are for the reader.
    """

    root: Path
    files: tuple[File, ...]
    hash: str
    findings: tuple[Finding, ...]
    digests: Mapping[str, str] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()

    @property
    def bytes(self) -> int:
        """The size of all files together."""
        return sum(file.size for file in self.files)

    @property
    def own_digests(self) -> dict[str, str]:
        """SHA-256 of each file of the folder alone, by its name."""
        return {name: digest for name, digest in self.digests.items() if name not in self.beside}

    @property
    def key(self) -> str:
        """Names all contents and their places, 64 hex digits: two snapshots with one key are the same upload."""
        return key_of(self.digests, self.beside)


def scan(folder: Path, beside: Sequence[Path] = (), *, remember: bool = True) -> Snapshot:
    """The contents of an upload of ``folder``. Never raises for a fault of the folder: that is in the findings.

    Each package (a folder of Python files) in ``beside`` travels along under its own name, unless the folder has
    something of that name already: a person's own wins.

    Two files whose paths differ only in letter case are ordered by the exact path; azure-ai-ml leaves their order to
    the file system, so its hash of such a folder may differ between two machines.

    Args:
        folder: The folder.
        beside: Packages that travel along.
        remember: Files of a large folder that did not change since an earlier scan are not read again
            (`amlstack.snapshot.remembered`).
    """
    began = remembered.now()
    if not folder.is_dir():
        return Snapshot(folder, (), "", (_no_folder(folder),))
    root = folder.resolve()
    walk = walked(folder)
    extra = [file for package in beside if not (root / package.name).exists() for file in _package(package)]
    files = tuple(sorted([*walk.files, *extra], key=lambda file: (file.relative.lower(), file.relative)))
    if not files and not errors(walk.findings):
        walk.findings.append(empty(folder, walk))
    walk.findings.extend(walk_module.findings(walk.files))
    if errors(walk.findings):
        return Snapshot(root, files, "", tuple(walk.findings))
    memory = Remembered.read(root, began) if remember and remembered.is_large(files) else None
    content = Content()
    names = frozenset(file.relative for file in extra)
    digest = _hash(files, walk.files, names, content, memory)
    secret = [
        secrets.finding(file.relative, content.facts[file.place].secret)
        for file in files
        if file.place in content.facts
    ]
    findings = (*walk.findings, *filter(None, secret), *content.findings)
    if errors(findings):
        return Snapshot(root, files, "", findings)
    return Snapshot(root, files, digest, findings, digests_of(files, content), names)


def walked(folder: Path, most: int | None = None) -> Walk:
    """A walk through a folder that is there.

    Args:
        folder: The folder.
        most: Files after which the walk ends; None for no bound.
    """
    root = folder.resolve()
    ignore = Ignore.read(root)
    walk = Walk(root, ignore, findings=list(ignore.findings), most=most)
    walk.folder(str(root), "", root, frozenset({root}), excluded=False)
    return walk


def empty(folder: Path, walk: Walk) -> Finding:
    """A folder of which nothing would be uploaded."""
    ignored = walk.ignore.path
    return Finding(
        "code-folder-empty",
        "",
        f"{folder} holds no file that would be uploaded",
        "A code snapshot needs at least one file",
        f"Check {ignored.name}" if ignored else "",
        file=str(folder),
    )


def _hash(
    files: Sequence[File], inside: Sequence[File], beside: frozenset[str], content: Content, memory: Remembered | None
) -> str:
    """The content hash.

    Args:
        files: All, in hash order.
        inside: Those of the folder alone.
        beside: Names of the others.
        content: Knows what the files hold afterwards.
        memory: Of an earlier scan, if there is one.
    """
    trusted = memory.trusted(inside) if memory is not None else {}
    if memory is not None and trusted:
        # The files that are not known are read first: with their digests the hash may be known.
        content.facts |= trusted
        content.read([file for file in files if file.place not in trusted])
        known = None if content.findings else memory.kept.read(f"hash {key_of(digests_of(files, content), beside)}")
        if content.findings or known is not None:
            memory.keep(inside, content.facts, content.unsteady)
            return known or ""
    content.forget(all_but=trusted)
    content.read(files, found := ContentHash(files))
    if content.unsteady & trusted.keys():  # written to since the walk: what was known of them is no more
        content.forget(all_but=())
        content.read(files, found := ContentHash(files))
    if memory is not None and not content.findings:
        memory.keep(inside, content.facts, content.unsteady)
        memory.kept.write(f"hash {key_of(digests_of(files, content), beside)}", found.hexdigest())
    return found.hexdigest()


def digests_of(files: Sequence[File], content: Content) -> dict[str, str]:
    """SHA-256 of each file by its name, 64 hex digits."""
    return {file.relative: content.facts[file.place].digest for file in files}


def key_of(digests: Mapping[str, str], beside: frozenset[str]) -> str:
    """Names all contents and their places; ``beside`` are the names of those that travel beside the folder."""
    # No name holds a zero byte.
    words = (f"{name}\0{digest}\0{'+' if name in beside else ''}" for name, digest in digests.items())
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def _package(folder: Path) -> list[File]:
    """A package's Python files under its own name."""
    paths = sorted(path for path in folder.rglob("*.py") if path.is_file())
    return [
        File(str(path), path.relative_to(folder.parent).as_posix(), FileState.from_stat(path.stat())) for path in paths
    ]


def _no_folder(folder: Path) -> Finding:
    if folder.exists():
        seen, remedy = f"{folder} is no folder", f"Name its folder, {folder.parent}, instead"
    else:
        near = sorted(item.name for item in folder.parent.iterdir() if item.is_dir()) if folder.parent.is_dir() else []
        seen = f"there is no folder {folder}"
        remedy = f"{folder.parent} holds {', '.join(near[:8])}" if near else f"{folder.parent} holds no folder either"
    return Finding("code-folder-missing", "", seen, "The code of a job is a folder", remedy, file=str(folder))
