"""Hashes what the files of a snapshot hold, reading every file once."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from amlstack.base.findings import Finding
from amlstack.snapshot.remembered import FileContent
from amlstack.snapshot.secrets import HEAD, secret_in
from amlstack.snapshot.walk import FileState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor

    from amlstack.snapshot.walk import File

_BATCH: Final = 4 * 1024 * 1024
_AHEAD: Final = 2
"""Batches that may wait for the slowest hash. With the one that is being read they are all that is in memory."""


class FilePiece(NamedTuple):
    """A part of one file's content; each file ends with an empty one."""

    file: File
    data: bytes


_Batch = list[FilePiece]


class Content:
    """What the files of one snapshot hold, as far as they have been read.

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
                    if FileState.of(os.fstat(stream.fileno())) != file.state:
                        self.unsteady.add(file.place)
            except OSError as error:
                seen = f"{file.relative} cannot be read ({error.strerror or error})"
                rule, remedy = "Everything in the folder is uploaded", "Make it readable or list it in .amlignore"
                self.findings.append(Finding("file-unreadable", "", seen, rule, remedy, file=file.relative))
                continue
            yield FilePiece(file, b"")
            if read != file.size:
                seen = f"{file.relative} had {file.size} bytes and then {read}"
                rule = "A folder must not change while its snapshot is taken"
                self.findings.append(Finding("file-changed", "", seen, rule, "Try again", file=file.relative))


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
