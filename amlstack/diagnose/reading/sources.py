"""Where bytes of logs come from: files of folders, and members of archives as the studio and people give them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import tarfile
import zipfile
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_FILES = 20_000
LARGE = "large"
BROKEN = "broken"
MOST_UNPACKED = 16 << 30
"""Bytes that a packed tar is unpacked to at most: it lies on this machine's disk while it is read."""
_TEXTS = frozenset({"", ".txt", ".log", ".out", ".err", ".json", ".gz", ".stdout", ".stderr", ".o", ".e", ".pickle"})
_END = bytes(tarfile.BLOCKSIZE)
"""The bytes behind the last member of a tar."""
_GZIP = b"\x1f\x8b"
_TAR = re.compile(r"\.(?:tar|t(?:ar\.)?(?P<packed>gz|bz2|xz))$", re.IGNORECASE)
_PACKERS: dict[str, Any] = {"gz": gzip, "bz2": bz2, "xz": lzma}
_DAMAGED: tuple[Any, ...] = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)
_NO_LOGS = frozenset({"inputs", "outputs", "wd", ".git", "__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class LogSource:
    """One log that can be read.

    Attributes:
        path: Where it lies; of a member of an archive the archive's path, and the member's below it.
        archive: The archive that it is a member of, unpacked where that is a packed tar.
        member: Where it is there: of a tar the header with its place, so that the others need not be gone through.
        length: Its bytes there.
    """

    path: Path
    archive: Path | None = None
    member: str | tarfile.TarInfo = ""
    length: int = 0

    @property
    def size(self) -> int:
        """Bytes, unpacked if it is a member of an archive, else as they lie on the disk."""
        return self.path.stat().st_size if self.archive is None else self.length

    @property
    def name(self) -> str:
        """The member's name."""
        return self.member if isinstance(self.member, str) else self.member.name

    def identity(self) -> Path:
        """What two names of one log have in common."""
        return self.path.resolve() if self.archive is None else self.archive.resolve() / self.name

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes, unpacked.

        Raises:
            OSError: It cannot be read; also of a member that is encrypted or packed in an unknown way.
        """
        with ExitStack() as opened:
            try:
                file: IO[bytes]
                if self.archive is None:
                    file = opened.enter_context(self.path.open("rb"))
                elif isinstance(self.member, str):
                    status = self.archive.stat()
                    archive = _zip(self.archive, status.st_mtime_ns, status.st_size)
                    file = opened.enter_context(archive.open(self.member))
                else:
                    tar = opened.enter_context(tarfile.open(self.archive, "r:"))
                    file = opened.enter_context(cast("IO[bytes]", tar.extractfile(self.member)))
                if self.path.suffix == ".gz" and file.read(2) == _GZIP:
                    file.seek(0)
                    file = cast("IO[bytes]", opened.enter_context(gzip.open(file, "rb")))
                elif self.path.suffix == ".gz":
                    file.seek(0)
                yield file
            except (RuntimeError, NotImplementedError, KeyError, *_DAMAGED[2:]) as error:
                raise OSError(str(error)) from error


@lru_cache(maxsize=4)
def _zip(path: Path, *_as_it_is: int) -> zipfile.ZipFile:
    """A zip, whose list of members is read once for all of them."""
    return zipfile.ZipFile(path)


def of_folder(root: Path, opened: ExitStack, refused: dict[Path, str]) -> Iterator[LogSource]:
    """The logs below a folder, and those in its archives.

    Args:
        root: The folder.
        opened: As for `of_archive`.
        refused: As for `of_archive`.
    """
    open_folders = [iter(_entries(root))]  # a stack and no recursion: folders may be a thousand deep
    while open_folders:
        entry = next(open_folders[-1], None)
        if entry is None:
            open_folders.pop()
        elif entry.is_dir():
            if not entry.is_symlink() and entry.name not in _NO_LOGS:
                open_folders.append(iter(_entries(entry)))
        elif entry.is_file() and is_archive(entry):
            yield from of_archive(entry, opened, refused)
        elif entry.is_file() and should_be_archive(entry):
            refused[entry] = BROKEN
        elif entry.is_file() and textual(entry):
            yield LogSource(entry)


def _entries(folder: Path) -> list[Path]:
    """The entries of a folder, by name; none where it cannot be read or the path is too long."""
    try:
        return [entry for entry in sorted(folder.iterdir()) if entry.lstat()]
    except OSError:
        return []


def is_archive(path: Path) -> bool:
    """Whether a file is an archive by its name and its first bytes."""
    try:
        if path.suffix.lower() == ".zip":
            return zipfile.is_zipfile(path)
        return _TAR.search(path.name) is not None and tarfile.is_tarfile(path)
    except _DAMAGED:
        return False


def should_be_archive(path: Path) -> bool:
    """Whether a file is an archive by its name."""
    return path.suffix.lower() == ".zip" or _TAR.search(path.name) is not None


def of_archive(path: Path, opened: ExitStack, refused: dict[Path, str]) -> Iterator[LogSource]:
    """The logs in an archive, in the order of their names; of one that is damaged those before the damage.

    Args:
        path: A zip, or a tar. A packed tar can only be read from its begin on: it is unpacked once, as a file.
        opened: Removes what was unpacked when it is closed.
        refused: Gets what is not read, or not to its end, with the reason.
    """
    archive: Path | None = path
    members: dict[str, tuple[str | tarfile.TarInfo, int]] = {}
    try:
        if path.suffix.lower() == ".zip":
            with zipfile.ZipFile(path) as packed:
                members = {one.filename: (one.filename, one.file_size) for one in packed.infolist() if not one.is_dir()}
        else:
            archive = _unpacked(path, opened, refused)
            if archive is None:
                return
            with tarfile.open(archive, "r:") as tar:
                for each in tar:
                    if each.isreg():
                        members[each.name] = each, each.size
                tar.fileobj.seek(tar.offset)
                if tar.fileobj.read(len(_END)) != _END:
                    refused[path] = BROKEN
    except _DAMAGED:
        refused[path] = BROKEN
    for name in sorted(members):
        parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if parts and not _NO_LOGS & set(parts[:-1]):
            member = path.joinpath(*parts)
            if textual(member):
                yield LogSource(member, archive, *members[name])


def _unpacked(path: Path, opened: ExitStack, refused: dict[Path, str]) -> Path | None:
    """A tar without its packing; None where that is larger than the bound, or than half of what the disk has free."""
    found = _TAR.search(path.name)
    if found is None or found["packed"] is None:
        return path
    target = Path(opened.enter_context(TemporaryDirectory(prefix="amlstack-logs-"))) / "logs.tar"
    with _PACKERS[found["packed"].lower()].open(path, "rb") as packed, target.open("wb") as file:
        left = min(MOST_UNPACKED, shutil.disk_usage(target.parent).free // 2)
        try:
            while chunk := packed.read1(1 << 20):
                left -= len(chunk)
                if left < 0:
                    file.truncate(0)
                    refused[path] = LARGE
                    return None
                file.write(chunk)
        except _DAMAGED:  # what came before it is read
            refused[path] = BROKEN
    return target


def textual(path: Path) -> bool:
    """Whether a file is a log by its name."""
    if path.name.startswith("."):
        return False
    return path.suffix.lower() in _TEXTS or bool(re.fullmatch(r"\.\d+", path.suffix))


def natural(source: LogSource) -> list[tuple[int, int, str]]:
    """Orders names by the numbers in them."""
    parts = re.split(r"(\d+)", str(source.path))
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]
