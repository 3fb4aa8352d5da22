"""Where bytes of logs come from: files of folders, and members of archives as the studio gives them."""

from __future__ import annotations

import gzip
import re
import zipfile
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_FILES = 20_000
_TEXTS = frozenset({"", ".txt", ".log", ".out", ".err", ".json", ".gz", ".stdout", ".stderr", ".o", ".e", ".pickle"})
_GZIP = b"\x1f\x8b"
_NO_LOGS = frozenset({"inputs", "outputs", "wd", ".git", "__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class LogSource:
    """One log that can be read.

    Attributes:
        path: Where it lies; of a member of an archive the archive's path, and the member's below it.
        archive: The archive that it is a member of.
        member: Its name there.
    """

    path: Path
    archive: Path | None = None
    member: str = ""

    @property
    def size(self) -> int:
        """Bytes, as they lie in the archive or on the disk."""
        return self.path.stat().st_size if self.archive is None else 0

    def identity(self) -> Path:
        """What two names of one log have in common."""
        return self.path.resolve() if self.archive is None else self.archive.resolve() / self.member

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
                else:
                    archive = opened.enter_context(zipfile.ZipFile(self.archive))
                    file = opened.enter_context(archive.open(self.member))
                if self.path.suffix == ".gz" and file.read(2) == _GZIP:
                    file.seek(0)
                    file = cast("IO[bytes]", opened.enter_context(gzip.open(file, "rb")))
                elif self.path.suffix == ".gz":
                    file.seek(0)
                yield file
            except (RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
                raise OSError(str(error)) from error


def of_folder(root: Path) -> Iterator[LogSource]:
    """The logs below a folder, and those in its archives."""
    try:
        entries = sorted(root.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink() and entry.is_dir():
            continue
        if entry.is_dir():
            if entry.name not in _NO_LOGS:
                yield from of_folder(entry)
        elif entry.is_file() and is_archive(entry):
            yield from of_archive(entry)
        elif entry.is_file() and textual(entry):
            yield LogSource(entry)


def is_archive(path: Path) -> bool:
    """Whether a file is an archive by its name and its first bytes."""
    if path.suffix.lower() != ".zip":
        return False
    try:
        return zipfile.is_zipfile(path)
    except OSError:
        return False


def of_archive(path: Path) -> Iterator[LogSource]:
    """The logs in an archive, in the order of their names; none where it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(each.filename for each in archive.infolist() if not each.is_dir())
    except (OSError, zipfile.BadZipFile):
        return
    for name in names:
        parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if parts and not _NO_LOGS & set(parts[:-1]):
            member = path.joinpath(*parts)
            if textual(member):
                yield LogSource(member, path, name)


def textual(path: Path) -> bool:
    """Whether a file is a log by its name."""
    if path.name.startswith("."):
        return False
    return path.suffix.lower() in _TEXTS or bool(re.fullmatch(r"\.\d+", path.suffix))


def natural(source: LogSource) -> list[tuple[int, int, str]]:
    """Orders names by the numbers in them."""
    parts = re.split(r"(\d+)", str(source.path))
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]
