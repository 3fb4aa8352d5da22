"""A code folder as an upload would hold it: scanned, inspected without hashes, and staged with what goes along.

A file or folder of data goes as azure-ai-ml uploads an input of a job: below ``LocalUpload/<hash>/<name>`` of a
datastore. The hash is its `get_object_hash`: SHA-256 of a first sentence, then, folder by folder, of each entry's name
and each file's content, in the order of lower-cased names. Names of folders count although nothing but files is
uploaded. Code has another hash, which knows sizes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from amlstack.base.findings import Finding, Level, errors, stated
from amlstack.snapshot import remembered
from amlstack.snapshot import walk as walk_module
from amlstack.snapshot.content import HEAD, Content, ContentHash, FilePiece, secret_finding, secret_in
from amlstack.snapshot.remembered import Remembered
from amlstack.snapshot.walk import File, FileState, Ignore, Walk

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
        secret_finding(file.relative, content.facts[file.place].secret) for file in files if file.place in content.facts
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
    return stated("code-folder-empty", "", folder=folder, remedy=f"Check {ignored.name}" if ignored else "").changed(
        file=str(folder)
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


MOST_FILES: Final = 20_000
"""Files after which the walk ends."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""Bytes that are searched for secrets, besides files of which an earlier scan remembers what they hold."""
_START: Final = 8192
"""Bytes by which a binary file is known."""


class Inspected(NamedTuple):
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
    walk = walked(folder, MOST_FILES)
    found = list(walk.findings)
    if not walk.files and not accompanied and not found:
        found.append(empty(folder, walk))
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
            secret = secret_in(head)
        else:
            unread.append(file)
            secret = None
        if (wrong := secret_finding(file.relative, secret)) is not None:
            found.append(wrong)
    if unread or walk.is_full:
        found.append(_partly(walk.files, unread, full=walk.is_full))
    return Inspected(len(walk.files), sum(file.size for file in walk.files), tuple(found))


def _head(file: File) -> bytes:
    """The bytes to search for secrets: of a binary file its start, and nothing of one that cannot be read."""
    try:
        with file.open() as stream:
            start = stream.read(_START)
            return start if b"\0" in start or len(start) < _START else start + stream.read(HEAD - _START)
    except OSError:
        return b""


def _partly(files: Sequence[File], unread: Sequence[File], *, full: bool) -> Finding:
    seen = f"{len(unread):,} of the code folder's {len(files):,} files were searched for secrets by name only"
    if full:
        seen = f"Only the first {len(files):,} files of the code folder were looked at"
    rule = "A check reads a bounded part of a large folder; a rehearsal and an `up` read all of it"
    return Finding("code-partly-read", "", seen, rule, "", Level.INFO, file=".")


STAGED_NAME: Final = "code_with_additional_includes"
"""The name of such a folder, which is part of where it is uploaded to."""
_COMPILED: Final = "__pycache__"


def zipped(include: Path) -> Path | None:
    """The folder that goes along as a zip file: ``libs`` for ``libs.zip``, when only the folder is there."""
    folder = include.with_suffix("")
    return folder if include.suffix == ".zip" and not include.exists() and folder.is_dir() else None


def staged(folder: Path, includes: Sequence[Path], cache: Path) -> Path:
    """A folder with the code and each include under its own name; made once for each content.

    Ignore files count as azure-ai-ml lets them: the code folder's for everything, an included folder's for itself.

    Args:
        folder: The code.
        includes: Files and folders; a missing ``NAME.zip`` stands for the folder ``NAME``, compressed.
        cache: Where such folders are kept, each under the hash of its content.

    Returns:
        The folder; where one of its parts cannot be read, that part itself, whose scan says why.

    Raises:
        OSError: The cache cannot be written.
    """
    for part in (folder, *(zipped(include) or include for include in includes)):
        if part.is_dir() and errors(scan(part).findings):
            return part
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as made:
        target = Path(made) / STAGED_NAME
        target.mkdir()
        for source, relative in _files(folder, includes):
            place = target / relative
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)
        for include in includes:
            if (inner := zipped(include)) is not None:
                _compress(inner, target / include.name, Ignore.read(folder.resolve()))
        digest = scan(target, remember=False).hash
        if not digest:
            return folder
        found = cache / digest
        with contextlib.suppress(FileExistsError):
            found.mkdir()
        if not (found / STAGED_NAME).is_dir():
            with contextlib.suppress(OSError):  # another process has just made the same
                target.rename(found / STAGED_NAME)
    return found / STAGED_NAME


def _files(folder: Path, includes: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    ignore = Ignore.read(folder.resolve())
    for file in scan(folder).files:
        if _COMPILED not in file.relative.split("/"):
            yield file.path, file.relative
    for include in includes:
        if include.is_file() and not ignore.excludes(include.resolve().name):
            yield include, include.resolve().name
        elif include.is_dir():
            yield from _kept(include.resolve(), ignore)


def _kept(folder: Path, ignore: Ignore) -> Iterator[tuple[Path, str]]:
    """Files of an included folder that neither its own ignore file nor the code's leaves out, under its name."""
    for file in scan(folder).files:
        relative = f"{folder.name}/{file.relative}"
        if _COMPILED not in relative.split("/") and not ignore.excludes(relative):
            yield file.path, relative


def _compress(folder: Path, place: Path, ignore: Ignore) -> None:
    """A zip file with the folder's own name on top, its files in the order of their paths."""
    with zipfile.ZipFile(place, "w") as archive:
        archive.write(folder, folder.name)
        for path, relative in sorted(_kept(folder.resolve(), ignore), key=lambda each: Path(each[1])):
            archive.write(path, relative)


_BEGIN: Final = b"Initialize for october 2021 AML CLI version"
_WHAT: Final = "data"


def scan_data(path: Path) -> Snapshot:
    """The contents of an upload of a file or folder of data; its faults are in the findings.

    Args:
        path: The file or folder; of a folder `.amlignore`, else `.gitignore`, in it is honoured as that of code is.

    Returns:
        Its files, of one file that file under its own name; ``hash`` is the one of the upload's place.
    """
    began = remembered.now()
    if not path.exists():
        seen, rule = f"`{path}` does not exist", "Data of this machine are uploaded before the job is submitted"
        missing = Finding("input-path-missing", "", seen, rule, "Make it, or correct the path.", file=str(path))
        return Snapshot(path, (), "", (missing,))
    root = path.resolve()
    if not root.is_dir():
        return _one_file(path, root, began)
    ignore = Ignore.read(root)
    walk = Walk(root, ignore, findings=list(ignore.findings), what=_WHAT)
    walk.folder(str(root), "", root, frozenset({root}), excluded=False)
    if not walk.files and not errors(walk.findings):
        walk.wrong("data-folder-empty", str(path), path=path, remedy=f"Check {ignore.path.name}" if ignore.path else "")
    if errors(walk.findings):
        return Snapshot(root, tuple(walk.files), "", tuple(walk.findings))
    return _read(root, walk.files, list(_entries(root, "", ignore, frozenset({root}))), walk.findings, began)


def folder_in_datastore(found: Snapshot, name: str) -> str:
    """The folder of a datastore in which the files of an upload lie: the part before their own names.

    Args:
        found: The upload.
        name: Of the file or folder.
    """
    is_file = len(found.files) == 1 and found.files[0].place == str(found.root)
    return f"LocalUpload/{found.hash}" + ("" if is_file else f"/{name}")


def address(found: Snapshot, name: str, datastore: str, asset_type: str) -> str:
    """The address by which a job reads an upload, as azure-ai-ml writes it.

    Args:
        found: The upload.
        name: Of the file or folder.
        datastore: Name of the datastore.
        asset_type: The input's type; that of a folder ends with a slash.
    """
    end = "/" if asset_type == "uri_folder" else ""
    return f"azureml://datastores/{datastore}/paths/LocalUpload/{found.hash}/{name}{end}"


def name_of(path: Path) -> str:
    """The name of an upload: the file's or folder's own, links resolved."""
    return path.resolve().name


def upload_mark(found: Snapshot) -> str:
    """The file whose metadata say that an upload is complete, by its name: the first by its path on this machine."""
    return min(found.files, key=lambda file: (file.place, file.relative)).relative


def _one_file(path: Path, root: Path, began: int) -> Snapshot:
    try:
        file = File(str(root), name_of(path), FileState.from_stat(root.stat()))
    except OSError as error:
        seen = f"{path} cannot be read ({error.strerror or error})"
        unreadable = Finding("file-unreadable", "", seen, "Data are uploaded", "Make it readable", file=str(path))
        return Snapshot(root, (), "", (unreadable,))
    return _read(root, [file], [file], [], began)


_Entry = File | str
"""A file, before which its name is hashed, or a folder's name; a file that is an upload by itself has no name."""


def _entries(folder: Path, prefix: str, ignore: Ignore, above: frozenset[Path]) -> Iterator[_Entry]:
    """Names and files in the order of the hash. Which are left out is asked of folders too, as azure-ai-ml asks."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name.lower()):
        if ignore.excludes(os.path.relpath(entry, ignore.base)):
            continue
        relative = prefix + entry.name
        target = entry.resolve()
        if not target.is_dir():
            yield File(str(target), relative, FileState.from_stat(target.stat()))
        elif target not in above:
            yield relative
            yield from _entries(target, f"{relative}/", ignore, above | {target})


def _read(
    root: Path, files: Sequence[File], entries: Sequence[_Entry], findings: Sequence[Finding], began: int
) -> Snapshot:
    """The content of an upload: read once, or not at all where an earlier scan remembers it."""
    ordered = [entry for entry in entries if isinstance(entry, File)]
    hashed = {file.relative for file in ordered}
    # A file that a later pattern takes in again below a folder that is left out is uploaded, and not hashed.
    ordered += [file for file in files if file.relative not in hashed]
    content = Content()
    memory = Remembered.read(root, began) if remembered.is_large(files) else None
    trusted = memory.trusted(files) if memory is not None else {}
    key = ""
    if memory is not None and len(trusted) == len({file.place for file in files}):
        content.facts |= trusted
        key = _key(root, entries, digests_of(files, content))
        if (known := memory.kept.read(key)) is not None:
            return _snapshot(root, files, known, content, findings)
        content.forget(all_but=())
    whole = _TreeHash(entries, is_file=ordered[0].place == str(root) if ordered else False)
    content.read(ordered, whole)
    if memory is not None and not content.findings:
        memory.keep(files, content.facts, content.unsteady)
        memory.kept.write(_key(root, entries, digests_of(files, content)), whole.hexdigest())
    return _snapshot(root, files, whole.hexdigest(), content, findings)


def _snapshot(
    root: Path, files: Sequence[File], digest: str, content: Content, findings: Sequence[Finding]
) -> Snapshot:
    ordered = tuple(sorted(files, key=lambda file: (file.relative.lower(), file.relative)))
    secret = (
        secret_finding(file.relative, content.facts[file.place].secret, what=_WHAT)
        for file in ordered
        if file.place in content.facts
    )
    found = (*findings, *filter(None, secret), *content.findings)
    if errors(found):
        return Snapshot(root, ordered, "", found)
    return Snapshot(root, ordered, digest, found, digests=digests_of(ordered, content))


def _key(root: Path, entries: Sequence[_Entry], digests: Mapping[str, str]) -> str:
    names = [entry if isinstance(entry, str) else entry.relative for entry in entries]
    tree = hashlib.sha256("\0".join(names).encode()).hexdigest()
    return f"data {root} {tree} {key_of(digests, frozenset())}"


class _TreeHash:
    """Takes the contents of files in the order of the entries; names come before them."""

    def __init__(self, entries: Sequence[_Entry], *, is_file: bool) -> None:
        self._hash = hashlib.sha256(_BEGIN)
        self._before: dict[str, bytes] = {}
        names = b""
        for entry in entries:
            name = entry if isinstance(entry, str) else entry.relative
            names += b"" if is_file else name.rpartition("/")[2].encode()
            if not isinstance(entry, str):
                self._before[entry.relative], names = names, b""
        self._after = names

    def __call__(self, batch: Sequence[FilePiece]) -> None:
        for file, data in batch:
            if file.relative in self._before:
                self._hash.update(self._before[file.relative])
                self._before[file.relative] = b""
                self._hash.update(data)

    def hexdigest(self) -> str:
        """After all batches; 64 hex digits."""
        last = self._hash.copy()
        last.update(self._after)
        return last.hexdigest()
