"""Log files of a run: the files of a folder or an archive, and the ranks that wrote them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import tarfile
import zipfile
import zlib
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from multiprocessing import get_context
from os import sched_getaffinity
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, cast

from amlstack.base.findings import Finding, Level
from amlstack.base.text import did_you_mean
from amlstack.diagnose import flight_recorder
from amlstack.diagnose.events import Log
from amlstack.diagnose.reading import lines, records
from amlstack.diagnose.reading.scanner import scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_FILES = 20_000
LARGE = "large"
BROKEN = "broken"
MOST_UNPACKED = 16 << 30
"""Bytes that a packed tar is unpacked to at most: it lies on this machine's disk while it is read."""
_TEXTS = frozenset({"", ".txt", ".log", ".out", ".err", ".json", ".stdout", ".stderr", ".o", ".e", ".pickle"})
_PACKED_TEXTS = frozenset({".gz", ".bz2", ".xz", ".zst"})
_END = bytes(tarfile.BLOCKSIZE)
"""The bytes behind the last member of a tar."""
_NULS = re.compile(rb"\0{16,}")
"""A hole in a log: of a file system that was cut off, or of a log that was emptied while its program wrote on."""
_CONTROL = bytes({*range(32)} - {*b"\a\b\t\n\v\f\r\x1b"})
"""Bytes that no terminal's text has."""
_TAR = re.compile(r"\.(?:tar|t(?:ar\.)?(?P<packed>gz|bz2|xz))$", re.IGNORECASE)
_PACKERS: dict[str, Any] = {"gz": gzip, "bz2": bz2, "xz": lzma}
_MAGIC: dict[bytes, Any] = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ\0": lzma}
_ZSTD = b"\x28\xb5\x2f\xfd"
_NO_ZSTD = "it is packed with zstd; unpack it with `zstd -d`"
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
        """The part that two names of one log have in common."""
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
                head = file.read(8)
                file.seek(0)
                if head.startswith(_ZSTD):
                    raise OSError(_NO_ZSTD)
                packer = next((module for magic, module in _MAGIC.items() if head.startswith(magic)), None)
                file = file if packer is None else opened.enter_context(packer.open(file, "rb"))
                yield file
            except (RuntimeError, NotImplementedError, KeyError, *_DAMAGED[2:]) as error:
                raise OSError(str(error)) from error


@lru_cache(maxsize=4)
def _zip(path: Path, *_as_it_is: int) -> zipfile.ZipFile:
    """A zip, whose list of members is read once for all of them."""
    return zipfile.ZipFile(path)


def folder_logs(root: Path, opened: ExitStack, refused: dict[Path, str]) -> Iterator[LogSource]:
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
            yield from archive_logs(entry, opened, refused)
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
    """True where a file is an archive by its name and its first bytes."""
    try:
        if path.suffix.lower() == ".zip":
            return zipfile.is_zipfile(path)
        return _TAR.search(path.name) is not None and tarfile.is_tarfile(path)
    except _DAMAGED:
        return False


def should_be_archive(path: Path) -> bool:
    """True where a file is an archive by its name."""
    return path.suffix.lower() == ".zip" or _TAR.search(path.name) is not None


def archive_logs(path: Path, opened: ExitStack, refused: dict[Path, str]) -> Iterator[LogSource]:
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
    """True where a file is a log by its name."""
    if path.name.startswith("."):
        return False
    return path.suffix.lower() in _TEXTS | _PACKED_TEXTS or bool(re.fullmatch(r"\.\d+", path.suffix))


def natural(source: LogSource) -> list[tuple[int, int, str]]:
    """Orders names by the numbers in them."""
    parts = re.split(r"(\d+)", str(source.path))
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]


CHUNK = 1 << 20
MOST_LOGS = MOST_FILES
WORTH_PROCESSES = 48 << 20
"""Bytes of several files from which on they are read by several processes: below, starting these costs more."""
MOST_PROCESSES = 8
_LOGS_ARE = "Logs are text files such as user_logs/std_log_process_00.txt or 70_driver_log_0.txt."
_PLACES = frozenset({"user_logs", "azureml-logs", "logs", "system_logs", "torchrun", "logs.azureml", "lifecycler"})
# File name → rank. The first that fits.
_RANKS = tuple(
    re.compile(pattern)
    for pattern in (
        r"std_?log_process_?(\d+)",
        r"70_driver_log_(\d+)",
        r"(?:^|[_.-])(?:rank|process|proc|task)[_.-]?(\d+)(?:\D|$)",
        r"(?:^|[_.-])(?:worker|trainer)[_.-]?(\d+)(?:\D|$)",
        r"^(?:stdout|stderr|std|log|out|output|err)[_.-](\d+)(?:\D|$)",
        r"^(\d+)\.(?:log|txt|out|err|stdout|stderr)$",
    )
)
_RANK_FOLDER = re.compile(r"^(?:rank[._-]?)?(\d{1,5})$")
_ATTEMPT = re.compile(r"^(?:attempt|retry|restart)[._-]?(\d{1,4})$", re.IGNORECASE)
_NODE_FOLDER = re.compile(r"^(?:node|host|vm|instance)[._-]?(\S+)$|^((?:ip-|\d+\.\d+\.\d+\.)\S+)$")


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The logs of some files.

    Attributes:
        logs: In the order of the files' names.
        findings: What could not be read, and why.
    """

    logs: tuple[Log, ...]
    findings: tuple[Finding, ...]

    @property
    def empty(self) -> bool:
        """Nothing at all could be read."""
        return not self.logs


def read(paths: Iterable[Path]) -> LogFiles:
    """Reads files, folders and archives of logs; many bytes in several files by several processes."""
    findings: list[Finding] = []
    wanted: list[tuple[LogSource, Path]] = []
    names: dict[str, list[str]] = {}
    seen: set[Path] = set()
    logs: list[Log] = []
    with ExitStack() as opened:
        for path in paths:
            for source in _sources(path, findings, opened):
                identity = source.identity()
                if identity not in seen:
                    seen.add(identity)
                    wanted.append((source, path))
                    names.setdefault(_shape(source), []).append(source.path.name)
        alone = frozenset(shape for shape, each in names.items() if len(each) == 1 or _catalogued(each))
        for log, found in _all(wanted, alone):
            findings += found
            if log is not None:
                logs.append(log)
    if wanted and not any(log.lines or log.flight for log in logs) and not findings:
        for path in dict.fromkeys(root for _, root in wanted):
            findings.append(_finding("no-logs", path, "holds no log", _LOGS_ARE, Level.ERROR))
    return LogFiles(tuple(logs), tuple(findings))


def _shape(source: LogSource) -> str:
    return re.sub(r"\d+", "0", source.path.name)


def _catalogued(names: list[str]) -> bool:
    """True where names are numbers alone that begin above 1, so that none of a run's first ranks is there."""
    return all(name.split(".")[0].isdigit() for name in names) and min(int(name.split(".")[0]) for name in names) > 1


def _all(wanted: list[tuple[LogSource, Path]], alone: frozenset[str]) -> Iterator[tuple[Log | None, list[Finding]]]:
    """Each log, in the order in which they are wanted."""
    processes = min(len(sched_getaffinity(0)), MOST_PROCESSES, len(wanted))
    if processes < 2 or sum(map(_size, wanted)) < WORTH_PROCESSES:
        yield from map(partial(_one, alone=alone), wanted)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(
            partial(_one, alone=alone), wanted, chunksize=max(1, min(16, len(wanted) // (4 * processes)))
        )


def _size(wanted: tuple[LogSource, Path]) -> int:
    try:
        return wanted[0].size
    except OSError:
        return 0


def rank_of(path: Path, root: Path, *, alone: bool = False) -> int | None:
    """The rank whose log a file is, by its name or, for torchrun's and mpirun's folders, its folder's.

    Args:
        path: The file.
        root: The folder that was given.
        alone: No other file has the same name with another number, or none of the first ranks' numbers: it is no rank,
            but in the names that the service gives.
    """
    if path.stem == "70_driver_log":
        return None
    for pattern in _RANKS[:2] if alone else _RANKS:
        if found := pattern.search(path.name):
            return int(found[1])
    if (
        path.stem in ("stdout", "stderr", "error")
        and path.parent != root
        and (found := _RANK_FOLDER.match(path.parent.name))
    ):
        return int(found[1])
    return None


def node_of(path: Path, root: Path) -> str | None:
    """The node whose log a file is, by a folder's name below the root."""
    for parent in path.parents:
        if found := _NODE_FOLDER.match(parent.name):
            return found[1] or found[2]
        if parent == root:
            break
    return None


def attempt_of(path: Path, root: Path) -> int | None:
    """The attempt of the run that wrote a file, by a folder's name below the root: ``attempt_1``, ``retry-2``."""
    for parent in path.parents:
        if found := _ATTEMPT.match(parent.name):
            return int(found[1])
        if parent == root:
            break
    return None


def _sources(path: Path, findings: list[Finding], opened: ExitStack) -> Iterator[LogSource]:
    if path.is_file() and not is_archive(path) and not should_be_archive(path):
        yield LogSource(path)
        return
    if not path.exists():
        otherwise = "Give a log file, or the folder that `az ml job download` made."
        remedy = did_you_mean(path.name, _beside(path), otherwise=otherwise)
        findings.append(_finding("path-missing", path, "does not exist", remedy, Level.ERROR))
        return
    refused: dict[Path, str] = {}
    entries = archive_logs if path.is_file() else folder_logs
    found = sorted(entries(path, opened, refused), key=natural)
    for each in (one for one, why in refused.items() if why == BROKEN):
        seen = "is damaged or was cut off: what comes after the damage is not read, and a failure may be there"
        remedy = "Download or copy it again, and compare its size."
        findings.append(_finding("archive-damaged", each, seen, remedy, Level.WARNING))
    for each in (one for one, why in refused.items() if why == LARGE):
        seen = f"is not read: unpacked it is larger than {MOST_UNPACKED >> 30} GiB or half of the free disk"
        findings.append(_finding("archive-too-large", each, seen, "Unpack it and give its logs.", Level.WARNING))
    if path.name in _PLACES and (path.parent / "report.json").is_file():
        found.append(LogSource(path.parent / "report.json"))
    if not found and not refused:
        findings.append(_finding("no-logs", path, "holds no log", _LOGS_ARE, Level.ERROR))
    if len(found) > MOST_LOGS:
        seen = f"holds {len(found)} files"
        findings.append(_finding("too-many-files", path, seen, f"The first {MOST_LOGS} are read.", Level.WARNING))
    yield from found[:MOST_LOGS]


def _one(wanted: tuple[LogSource, Path], alone: frozenset[str]) -> tuple[Log | None, list[Finding]]:
    """One log and what is wrong with its file; a JSON file that is no record of a run is neither."""
    (source, root), path = wanted, wanted[0].path
    name = _shown(path, root)
    base = root if root.is_dir() or source.archive is not None else root.parent
    rank, node = rank_of(path, base, alone=_shape(source) in alone), node_of(path, base)
    level = Level.ERROR if path == root else Level.WARNING  # a file of a folder may be no log
    try:
        with source.open() as file:
            log = _log(file, path, name, rank=rank, node=node)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return None, [_finding("unreadable-file", path, f"cannot be read: {reason}", "", level)]
    if log is None and path.suffix == ".json":
        return None, []
    if log is None:
        return None, [_finding("binary-file", path, "is not text", "Give text files.", level)]
    return replace(log, attempt=attempt_of(path, base)), []


def _log(file: IO[bytes], path: Path, name: str, *, rank: int | None, node: str | None) -> Log | None:
    head = file.read(8192)
    while head and not head.strip(b"\0"):
        head = file.read(CHUNK)
    if path.suffix == ".json" or flight_recorder.looks_like_one(head):
        content = head + file.read(flight_recorder.LARGEST_DUMP)
        flight = flight_recorder.parse(path.name, content)
        if flight is not None:
            return Log(name=name, lines=1, rank=flight.rank, node=node, flight=flight)
        if path.suffix == ".json":
            if len(content) <= records.LARGEST:
                log = records.parse(name, content.decode(errors="replace"), rank=rank, node=node)
                if log is not None:
                    return log
            if "error" not in path.name:
                return None
        return _text((head, content[len(head) :]), file, name, rank=rank, node=node)
    return _text((head, b""), file, name, rank=rank, node=node)


def _text(begin: tuple[bytes, bytes], file: IO[bytes], name: str, *, rank: int | None, node: str | None) -> Log | None:
    kind = _encoding(begin[0])
    if kind is None:
        return None
    chunks = _chunks(begin, file)
    texts = (chunk.replace(b"\0", b"") for chunk in chunks) if kind == "utf-8" else lines.as_utf8(chunks, kind)
    return scan(name, texts, rank=rank, node=node)


def _chunks(begin: Iterable[bytes], file: IO[bytes]) -> Iterator[bytes]:
    yield from filter(None, begin)
    yield from iter(partial(file.read, CHUNK), b"")


def _encoding(head: bytes) -> str | None:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if head and head.count(0) > len(head) // 4 and set(head[1::2]) == {0}:
        return "utf-16-le"
    text = _NULS.sub(b"", head)
    strange = len(text) - len(text.translate(None, _CONTROL))
    return None if strange * 50 > len(text) else "utf-8"


def _shown(path: Path, root: Path) -> str:
    if path == root:
        return str(path)
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name


def _beside(path: Path) -> list[str]:
    try:
        return [each.name for each in path.parent.iterdir()]
    except OSError:
        return []


def _finding(code: str, path: Path, seen: str, remedy: str, level: Level) -> Finding:
    return Finding(code, "", f"{path} {seen}", "", remedy, level)
