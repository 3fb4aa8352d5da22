"""Hashes what the files of a snapshot hold, reading every file once."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding
from amlstack.snapshot.secrets import HEAD, suspicion
from amlstack.snapshot.tool_leftovers import litter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.snapshot.folder import File

_CHUNK: Final = HEAD


class Content:
    """Reads each file once, for every hash that it is part of.

    Args:
        files: In hash order.
        extra: Those of them that travel beside the folder.

    Attributes:
        digests: After `read`, SHA-256 of each file of the folder alone, by its name.
    """

    def __init__(self, files: tuple[File, ...], extra: frozenset[File]) -> None:
        self._files = files
        own = tuple(file for file in files if file not in extra)
        left = litter(file.relative for file in own)
        tidy = tuple(file for file in own if file.relative not in left)
        self._lists = (files, own, tidy)
        # Each list is part of the one before: of equal length they are equal, and hashed once. Most folders have
        # nothing beside them and nothing that is left out.
        distinct = {len(each): each for each in self._lists}
        self._hashes = {length: (frozenset(each), _started(each)) for length, each in distinct.items()}
        self._own = frozenset(own)
        self.digests: dict[str, str] = {}

    def read(self) -> Iterator[Finding]:
        """Findings for files that cannot be read, change meanwhile or look like secrets."""
        for file in self._files:
            alone = hashlib.sha256()
            hashes = [alone, *(whole for members, whole in self._hashes.values() if file in members)]
            read = 0
            try:
                with file.path.open("rb") as stream:
                    while chunk := stream.read(_CHUNK):
                        if not read and (finding := suspicion(file.relative, chunk)):
                            yield finding
                        read += len(chunk)
                        for each in hashes:
                            each.update(chunk)
            except OSError as error:
                seen = f"{file.relative} cannot be read ({error.strerror or error})"
                rule, remedy = "Everything in the folder is uploaded", "Make it readable or list it in .amlignore"
                yield Finding("file-unreadable", "", seen, rule, remedy, file=file.relative)
                continue
            if not file.size and (finding := suspicion(file.relative, b"")):
                yield finding
            if read != file.size:
                seen = f"{file.relative} had {file.size} bytes and then {read}"
                rule = "A snapshot is taken of a folder that nobody writes to"
                yield Finding("file-changed", "", seen, rule, "Try again", file=file.relative)
            if file in self._own:
                self.digests[file.relative] = alone.hexdigest()

    def hashes(self) -> tuple[str, str, str]:
        """After `read`: of everything, of the folder alone, and of that without what tools leave in it."""
        whole, own, tidy = (self._hashes[len(each)][1].hexdigest() for each in self._lists)
        return whole, own, tidy


def _started(files: tuple[File, ...]) -> hashlib._Hash:
    """A content hash that knows how many files there are, their names and sizes; their contents come next."""
    started = hashlib.sha256(str(len(files)).encode())
    for file in files:
        started.update(f"#{file.relative}#{file.size}".encode())
    return started
