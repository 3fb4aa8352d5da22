"""A file or folder of data as azure-ai-ml uploads an input of a job: which files, and the hash that names their place.

azure-ai-ml puts them below ``LocalUpload/<hash>/<name>`` of a datastore. The hash is its `get_object_hash`: SHA-256 of
a first sentence, then, folder by folder, of each entry's name and each file's content, in the order of lower-cased
names. Names of folders count although nothing but files is uploaded. Code has another hash, which knows sizes.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding, errors
from amlstack.snapshot import remembered
from amlstack.snapshot.content import Content, secret_finding
from amlstack.snapshot.folder import Snapshot, digests_of, key_of
from amlstack.snapshot.ignore import Ignore
from amlstack.snapshot.remembered import Remembered
from amlstack.snapshot.walk import File, FileState, Walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from amlstack.snapshot.content import FilePiece

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
        walk.wrong(
            "data-folder-empty",
            str(path),
            f"{path} holds no file that would be uploaded",
            "An upload has at least one file",
            remedy=f"Check {ignore.path.name}" if ignore.path else "",
        )
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


def indicator(found: Snapshot) -> str:
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
