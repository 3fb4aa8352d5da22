"""Values kept in the user's cache: whole or not at all, private, checked when they are read, and not for ever.

Whatever is wrong with a kept value, it counts as not kept: cut off, edited, written by another version or another
user. Several processes may read and write at once; the last writer wins.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_AGAIN = 3600
"""Seconds after which a value that is read counts as used again."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Values by name, each a file of its own.

    Attributes:
        folder: Where they lie; made when the first is written.
        version: Of what wrote them. Values of another version are not read.
        most_bytes: The room of all of them together; what was not used for longest goes first.
    """

    folder: Path
    version: str
    most_bytes: int

    def read(self, name: str) -> Any:
        """The value, plain as JSON has it; None where there is none that can be trusted."""
        path = self._path(name)
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                    return None  # somebody else may have written it
                head, body = file.readline(), file.read()
            if head != self._head(body):
                return None
            if status.st_mtime < time.time() - _AGAIN:
                os.utime(path)
            return json.loads(body)
        except (OSError, ValueError, RecursionError):
            return None

    def write(self, name: str, value: Any) -> None:
        """Keeps a value; where the cache cannot be written, it is not kept."""
        body = json.dumps(value, separators=(",", ":")).encode()
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, made = tempfile.mkstemp(dir=self.folder)  # with mode 0600
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(self._head(body) + body)
                Path(made).replace(self._path(name))
            except OSError:
                Path(made).unlink()
                raise
            self._prune()

    def _path(self, name: str) -> Path:
        return self.folder / hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:40]

    def _head(self, body: bytes) -> bytes:
        return f"{self.version} {hashlib.sha256(body).hexdigest()}\n".encode()

    def _prune(self) -> None:
        """Removes what was not used for longest; what a killed process left half written goes the same way."""
        found = []
        for entry in os.scandir(self.folder):
            with contextlib.suppress(FileNotFoundError):  # another process prunes as well
                status = entry.stat(follow_symlinks=False)
                found.append((status.st_mtime, status.st_size, Path(entry)))
        room = self.most_bytes
        for _, size, path in sorted(found, reverse=True):
            room -= size
            if room < 0:
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
