"""Contents of a snapshot's files: their hashes, what in them looks like a secret, and lists that show changes."""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from amlstack.base.credentials import FORMS
from amlstack.base.findings import Finding, Level, stated
from amlstack.snapshot.remembered import FileContent
from amlstack.snapshot.walk import File, FileState

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


_NAMES: Final = {
    ".env": "environment files usually hold credentials",
    ".netrc": "it holds passwords of hosts",
    ".pgpass": "it holds database passwords",
    ".git-credentials": "it holds tokens of git hosts",
    "id_rsa": "it is named like an SSH key",
    "id_dsa": "it is named like an SSH key",
    "id_ecdsa": "it is named like an SSH key",
    "id_ed25519": "it is named like an SSH key",
    "msal_token_cache.json": "it holds tokens of the Azure CLI",
    "accessTokens.json": "it holds tokens of the Azure CLI",
}
_SUFFIXES: Final = {
    ".pfx": "it is a key store",
    ".p12": "it is a key store",
    ".jks": "it is a key store",
    ".kdbx": "it is a password database",
}
_FOLDERS: Final = {".ssh": "keys of SSH", ".aws": "credentials of AWS", ".azure": "tokens of the Azure CLI"}
_TEMPLATE: Final = re.compile(r"\.(example|sample|template|dist)$", re.IGNORECASE)

_CONTENT: Final = tuple((re.sub(r"^(?:\\b|\[[^]]*\])", "", at).encode(), at.encode(), what) for at, what in FORMS)
"""Each pattern twice, first without the boundary or set that it begins with: text at the start is found ten times as
fast, and nearly no file has it."""

HEAD: Final = 1024 * 1024
"""The number of bytes from the start of a file that are looked at."""


def secret_finding(relative: str, secret: tuple[str, int] | None, *, what: str = "code") -> Finding | None:
    """A warning when the file's name or the start of its content looks like a secret; never quotes the content.

    Args:
        relative: Path in the snapshot, with ``/``.
        secret: What `secret_in` found in the content.
        what: ``code`` or ``data``.
    """
    line = None
    if by_name := _by_name(relative):
        seen = f"{relative} looks like a secret: {by_name}"
    elif secret:
        seen, line = f"{relative} holds what looks like {secret[0]}", secret[1]
    else:
        return None
    uploads = "code snapshots" if what == "code" else "data"
    rule = f"Everybody who can read the workspace can read its {uploads}, and they are kept"
    remedy = "List it in .amlignore and hand the secret over through a key vault or an identity"
    return Finding(f"secret-in-{what}", "", seen, rule, remedy, Level.WARNING, file=relative, line=line)


def secret_in(head: bytes) -> tuple[str, int] | None:
    """The text at the start of a file that looks like a secret, and its line.

    Args:
        head: The first `HEAD` bytes.
    """
    if b"\0" in head[:8192]:
        return None  # a binary file: matches there are chance
    for quick, pattern, what in _CONTENT:
        if re.search(quick, head) and (match := re.search(pattern, head)):
            return what, head.count(b"\n", 0, match.start()) + 1
    return None


def _by_name(relative: str) -> str | None:
    *folders, name = relative.split("/")
    if _TEMPLATE.search(name):
        return None
    stem, _, ending = name.rpartition(".")
    if why := _NAMES.get(name) or (stem and _SUFFIXES.get(f".{ending.lower()}")):
        return why
    if name.startswith(".env."):
        return _NAMES[".env"]
    if _FOLDERS.keys().isdisjoint(folders):
        return None
    folder = next(part for part in folders if part in _FOLDERS)
    return f"{folder}/ holds {_FOLDERS[folder]}"


MOST: Final = 256
"""Entries of a list at most: a folder with more files than there is room for is one entry."""
_DIGITS: Final = 10

_Tree = dict[str, Any]
"""The entries of a folder: name to digest of a file, ``name/`` to digest of a folder taken as one, name to a tree."""


def compact(digests: Mapping[str, str], most: int = MOST) -> dict[str, str]:
    """Files and, where those are too many, folders (their names end in ``/``) with ten hex digits of their content.

    Folders are opened from the top down, as long as the list has room.

    Args:
        digests: The content digest of each file, by its path with ``/``.
        most: How many entries there may be.
    """
    root = _tree({path: digest[:_DIGITS] for path, digest in digests.items()})
    if len(root) > most:
        return {"./": _digest(root)}
    entries: dict[str, Any] = {_entry(name, node): node for name, node in root.items()}
    waiting = [(name, node) for name, node in entries.items() if isinstance(node, dict)]
    for folder, node in waiting:  # grows as folders are opened: the upper ones come first
        if len(entries) - 1 + len(node) > most:
            continue
        del entries[folder]
        inner = {f"{folder}{_entry(name, each)}": each for name, each in node.items()}
        entries |= inner
        waiting += [(name, each) for name, each in inner.items() if isinstance(each, dict)]
    return {name: _digest(node) for name, node in sorted(entries.items())}


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    """``train.py changed``, ``data.py added``, ``old.py removed`` between two lists that `compact` made."""
    whole = {name for entries in (old, new) for name in entries if name.endswith("/")}
    before, after = _closed(old, whole), _closed(new, whole)
    return tuple(
        f"{name} {'added' if name not in before else 'removed' if name not in after else 'changed'}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _closed(entries: Mapping[str, str], folders: set[str]) -> dict[str, str]:
    """The list with these folders as one entry each, so that two lists can be compared name by name."""
    if "./" in folders:
        return dict(entries) if "./" in entries else {"./": _digest(_tree(entries))} if entries else {}
    outer = sorted(folders, key=lambda name: name.count("/"))
    result: dict[str, str] = {}
    below: dict[str, dict[str, str]] = {}
    for name, digest in entries.items():
        folder = next((each for each in outer if name != each and name.startswith(each)), None)
        if folder is None:
            result[name] = digest
        else:
            below.setdefault(folder, {})[name.removeprefix(folder)] = digest
    return result | {folder: _digest(_tree(inner)) for folder, inner in below.items()}


def _tree(entries: Mapping[str, str]) -> _Tree:
    root: _Tree = {}
    for path, digest in entries.items():
        closed = "/" if path.endswith("/") else ""
        *folders, last = path.removesuffix("/").split("/")
        node = root
        for folder in folders:
            node = node.setdefault(folder, {})
        node[f"{last}{closed}"] = digest
    return root


def _entry(name: str, node: Any) -> str:
    return f"{name}/" if isinstance(node, dict) else name


def _digest(node: Any) -> str:
    """A file's digest, or a folder's: the same whether its own folders are given by their files or by digests."""
    if isinstance(node, str):
        return node
    whole = hashlib.sha256("\n".join(_lines(node)).encode())
    return whole.hexdigest()[:_DIGITS]


def _lines(node: _Tree) -> Iterator[str]:
    for name in sorted(node, key=lambda each: each.removesuffix("/")):
        yield f"{name.removesuffix('/')}/{_digest(node[name])}"


_BATCH: Final = 4 * 1024 * 1024
_AHEAD: Final = 2
"""Batches that may wait for the slowest hash. With the one that is being read they are all that is in memory."""


class FilePiece(NamedTuple):
    """A part of one file's content; each file ends with an empty one."""

    file: File
    data: bytes


_Batch = list[FilePiece]


class Content:
    """The contents of one snapshot's files, as far as they have been read.

    Attributes:
        facts: By place.
        unsteady: Places of files that changed between the walk and the end of their reading.
        findings: Files that could not be read, or whose size changed.
    """

    def __init__(self) -> None:
        self.facts: dict[str, FileContent] = {}
        self.unsteady: set[str] = set()
        self.findings: list[Finding] = []

    def forget(self, *, all_but: Collection[str]) -> None:
        """Drops all that was found, the facts of these places excepted: what is read next is read afresh."""
        self.facts = {place: facts for place, facts in self.facts.items() if place in all_but}
        self.unsteady.clear()
        self.findings.clear()

    def read(self, files: Iterable[File], *hashes: Callable[[list[FilePiece]], None]) -> None:
        """Reads files in their order.

        Args:
            files: What is read. The facts of those that have none are there afterwards.
            hashes: Get the pieces of the files, in their order; without meaning where there are findings.
        """
        with _Feeding([_Each(self.facts), *hashes]) as feeding:
            for batch in _batches(self._pieces(files)):
                feeding.feed(batch)

    def _pieces(self, files: Iterable[File]) -> Iterator[FilePiece]:
        for file in files:
            read = 0
            try:
                with file.open() as stream:
                    while chunk := stream.read(min(HEAD, max(file.size - read, 0) + 1)):
                        read += len(chunk)
                        yield FilePiece(file, chunk)
                    if FileState.from_stat(os.fstat(stream.fileno())) != file.state:
                        self.unsteady.add(file.place)
            except OSError as error:
                seen = f"{file.relative} cannot be read ({error.strerror or error})"
                rule, remedy = "Everything in the folder is uploaded", "Make it readable or list it in .amlignore"
                self.findings.append(Finding("file-unreadable", "", seen, rule, remedy, file=file.relative))
                continue
            yield FilePiece(file, b"")
            if read != file.size:
                self.findings.append(stated("file-changed", "", file=file, read=read).changed(file=file.relative))


class _Each:
    """Finds the facts of each file that has none."""

    def __init__(self, facts: dict[str, FileContent]) -> None:
        self._facts = facts
        self._hash = hashlib.sha256()
        self._head: bytes | None = None

    def __call__(self, batch: _Batch) -> None:
        for file, data in batch:
            if file.place in self._facts:
                continue
            if data:
                self._hash.update(data)
                if self._head is None:
                    self._head = data
            else:
                self._facts[file.place] = FileContent(self._hash.hexdigest(), secret_in(self._head or b""))
                self._hash, self._head = hashlib.sha256(), None


class ContentHash:
    """The content hash of files: it begins with how many there are, their names and sizes."""

    def __init__(self, files: Collection[File]) -> None:
        self._hash = hashlib.sha256(str(len(files)).encode())
        for file in files:
            self._hash.update(f"#{file.relative}#{file.size}".encode())

    def __call__(self, batch: _Batch) -> None:
        """Takes the contents of the files, piece by piece."""
        for _, data in batch:
            self._hash.update(data)

    def hexdigest(self) -> str:
        """After all batches; 64 hex digits."""
        return self._hash.hexdigest()


class _Feeding:
    """Gives each batch to all hashes, each in a thread of its own: hashlib lets others run while it computes.

    The last batch, which is the only one of a small folder, needs no thread.
    """

    def __init__(self, hashes: Sequence[Callable[[_Batch], None]]) -> None:
        self._hashes = hashes
        self._threads: list[ThreadPoolExecutor] = []
        self._running: deque[list[Future[None]]] = deque()
        self._last: _Batch = []

    def feed(self, batch: _Batch) -> None:
        """Batches come in the order of the files; each hash takes them in this order."""
        if self._last:
            self._threads = self._threads or _threads(len(self._hashes))
            self._running.append(
                [thread.submit(each, self._last) for thread, each in zip(self._threads, self._hashes, strict=True)]
            )
        self._last = batch
        while len(self._running) > _AHEAD:
            _wait(self._running.popleft())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                for futures in self._running:
                    _wait(futures)
                for each in self._hashes:
                    each(self._last)
        finally:
            for thread in self._threads:
                thread.shutdown(cancel_futures=True)


def _threads(count: int) -> list[ThreadPoolExecutor]:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - small folders need none, and it takes long to load

    return [ThreadPoolExecutor(1) for _ in range(count)]


def _wait(futures: Iterable[Future[None]]) -> None:
    for future in futures:
        future.result()


def _batches(pieces: Iterable[FilePiece]) -> Iterator[_Batch]:
    batch: _Batch = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece.data)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
