"""Files that are written whole or not at all, and values kept in the user's cache."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

ROOM: Final = 32 * 1024 * 1024
"""Free bytes below which nothing is begun: the state and the tables of a small stack, each with its copies and log."""

_REMEDIES: Final = {
    errno.ENOSPC: "Free some room there",
    errno.EDQUOT: "Free some room there, or have the quota raised",
    errno.EROFS: "Name a folder that can be written",
    errno.EACCES: "Name a folder that you may write, or have the permission given",
    errno.EPERM: "Name a folder that you may write, or have the permission given",
    errno.EIO: "The disk does not work: name a folder on another one",
    errno.ENAMETOOLONG: "Name a folder with a shorter path",
}
"""The remedy for an error of the system, by its number; other errors are bugs until they are known."""


def write_whole(path: Path, content: str | bytes, *, mode: int | None = None, folders: bool = False) -> None:
    """Replaces a file by another content, or leaves it as it was: also where the disk is full or the machine stops.

    Args:
        path: The file; a link is replaced itself, and what it leads to stays.
        content: Text is written as UTF-8.
        mode: Its mode; that of the file that was there, when absent, and of a new one as the umask says.
        folders: Whether the folders above it are made.

    Raises:
        OSError: It cannot be written; what was there before is there still.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    if folders:
        path.parent.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), _mode(path) if mode is None else mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(made, path)  # noqa: PTH105 - both names are at hand as they are
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)  # noqa: PTH108
        raise
    _sync_folder(path.parent)


def read_regular(path: str | Path) -> bytes:
    """The content of a file that a person named; a pipe, a socket or a device is an error and is not waited for.

    Raises:
        OSError: It cannot be read; `strerror` says why in words.
    """
    with open_regular(path) as file:
        return file.read()


def open_regular(path: str | Path) -> BinaryIO:
    """Opens a file that a person named, as `read_regular` reads it.

    Raises:
        OSError: It cannot be opened; `strerror` says why in words.
    """
    # Without waiting for who writes into a pipe; of a file the flag means nothing.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", str(path))
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    raise OSError(errno.EINVAL, f"It is {kinds.get(stat.S_IFMT(mode), 'no regular file')} and no file", str(path))


def sentence(error: OSError, *, place: Path | None = None) -> str:
    """A sentence on an error of the disk: what was seen, where, and the remedy; empty for any other error.

    Args:
        error: The error.
        place: The folder that was to be written, for an error that names no file.
    """
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None:
        return ""
    named = error.filename if isinstance(error.filename, str) else os.fsdecode(error.filename or b"")
    where = named or (str(place) if place else "")
    variables = (
        "AMLSTACK_HOME says where the sandbox keeps its files, AMLSTACK_CACHE where engines and copies are kept."
    )
    return f"{f'{where}: ' if where else ''}{error.strerror}. {remedy}, then run this again. {variables}"


def no_room(folder: Path) -> str:
    """The reason not to begin to write into a folder, which may have to be made; empty where there is room."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return sentence(error, place=folder)
    if free >= ROOM:
        return ""
    return (
        f"{folder} lies on a disk with {free / 2**20:.1f} MiB left; at least {ROOM // 2**20} MiB are needed: a state "
        "that is cut off cannot be read. Free some room there, or set AMLSTACK_HOME to a folder on another disk."
    )


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Makes sure that the new name is on the disk, too; where the file system has no such thing, it is not."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


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
