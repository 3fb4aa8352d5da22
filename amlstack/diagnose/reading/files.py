"""Paths → logs: which files of a folder are read, whose they are by their names, and what could not be read."""

from __future__ import annotations

import re
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from os import sched_getaffinity
from typing import IO, TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.base.near_misses import did_you_mean
from amlstack.diagnose.events import Log
from amlstack.diagnose.reading import lines, sources
from amlstack.diagnose.reading.records import flight_recorder, json_records
from amlstack.diagnose.reading.scanner import scan
from amlstack.diagnose.reading.sources import LogSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

CHUNK = 1 << 20
MOST_FILES = sources.MOST_FILES
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
    seen: set[Path] = set()
    logs: list[Log] = []
    with ExitStack() as opened:
        for path in paths:
            for source in _sources(path, findings, opened):
                identity = source.identity()
                if identity not in seen:
                    seen.add(identity)
                    wanted.append((source, path))
        for log, found in _all(wanted):
            findings += found
            if log is not None:
                logs.append(log)
    if wanted and not logs and not findings:  # what is no log was only seen when it was read
        for path in dict.fromkeys(root for _, root in wanted):
            findings.append(_finding("no-logs", path, "holds no log", _LOGS_ARE, Level.ERROR))
    return LogFiles(tuple(logs), tuple(findings))


def _all(wanted: list[tuple[LogSource, Path]]) -> Iterator[tuple[Log | None, list[Finding]]]:
    """Each log, in the order in which they are wanted."""
    processes = min(len(sched_getaffinity(0)), MOST_PROCESSES, len(wanted))
    if processes < 2 or sum(map(_size, wanted)) < WORTH_PROCESSES:
        yield from map(_one, wanted)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_one, wanted, chunksize=max(1, min(16, len(wanted) // (4 * processes))))


def _size(wanted: tuple[LogSource, Path]) -> int:
    try:
        return wanted[0].size
    except OSError:
        return 0


def rank_of(path: Path, root: Path) -> int | None:
    """The rank whose log a file is, by its name or, for torchrun's and mpirun's folders, its folder's."""
    if path.stem == "70_driver_log":
        return None
    for pattern in _RANKS:
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
    """Which attempt of the run wrote a file, by a folder's name below the root: ``attempt_1``, ``retry-2``."""
    for parent in path.parents:
        if found := _ATTEMPT.match(parent.name):
            return int(found[1])
        if parent == root:
            break
    return None


def _sources(path: Path, findings: list[Finding], opened: ExitStack) -> Iterator[LogSource]:
    if path.is_file() and not sources.is_archive(path) and not sources.should_be_archive(path):
        yield LogSource(path)
        return
    if not path.exists():
        otherwise = "Give a log file, or the folder that `az ml job download` made."
        remedy = did_you_mean(path.name, _beside(path), otherwise=otherwise)
        findings.append(_finding("path-missing", path, "does not exist", remedy, Level.ERROR))
        return
    refused: dict[Path, str] = {}
    of = sources.of_archive if path.is_file() else sources.of_folder
    found = sorted(of(path, opened, refused), key=sources.natural)
    for each in (one for one, why in refused.items() if why == sources.BROKEN):
        seen = "is damaged or was cut off: what comes after the damage is not read, and a failure may be there"
        remedy = "Download or copy it again, and compare its size."
        findings.append(_finding("archive-damaged", each, seen, remedy, Level.WARNING))
    for each in (one for one, why in refused.items() if why == sources.LARGE):
        seen = f"is not read: unpacked it is larger than {sources.MOST_UNPACKED >> 30} GiB or half of the free disk"
        findings.append(_finding("archive-too-large", each, seen, "Unpack it and give its logs.", Level.WARNING))
    if path.name in _PLACES and (path.parent / "report.json").is_file():
        found.append(LogSource(path.parent / "report.json"))
    if not found and not refused:
        findings.append(_finding("no-logs", path, "holds no log", _LOGS_ARE, Level.ERROR))
    if len(found) > MOST_FILES:
        seen = f"holds {len(found)} files"
        findings.append(_finding("too-many-files", path, seen, f"The first {MOST_FILES} are read.", Level.WARNING))
    yield from found[:MOST_FILES]


def _one(wanted: tuple[LogSource, Path]) -> tuple[Log | None, list[Finding]]:
    """One log and what is wrong with its file; a JSON file that is no record of a run is neither."""
    (source, root), path = wanted, wanted[0].path
    name = _shown(path, root)
    base = root if root.is_dir() or source.archive is not None else root.parent
    rank, node = rank_of(path, base), node_of(path, base)
    try:
        with source.open() as file:
            log = _log(file, path, name, rank=rank, node=node)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return None, [_finding("unreadable-file", path, f"cannot be read: {reason}", "", Level.WARNING)]
    if log is None and path.suffix == ".json":
        return None, []
    if log is None:
        return None, [_finding("binary-file", path, "is not text", "Give text files.", Level.WARNING)]
    return replace(log, attempt=attempt_of(path, base)), []


def _log(file: IO[bytes], path: Path, name: str, *, rank: int | None, node: str | None) -> Log | None:
    head = file.read(8192)
    if path.suffix == ".json" or flight_recorder.looks_like_one(head):
        content = head + file.read(flight_recorder.LARGEST)
        flight = flight_recorder.parse(path.name, content)
        if flight is not None:
            return Log(name=name, lines=1, rank=flight.rank, node=node, flight=flight)
        if path.suffix == ".json":
            if len(content) <= json_records.LARGEST:
                log = json_records.parse(name, content.decode(errors="replace"), rank=rank, node=node)
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
    return scan(name, chunks if kind == "utf-8" else lines.as_utf8(chunks, kind), rank=rank, node=node)


def _chunks(begin: Iterable[bytes], file: IO[bytes]) -> Iterator[bytes]:
    yield from filter(None, begin)
    yield from iter(partial(file.read, CHUNK), b"")


def _encoding(head: bytes) -> str | None:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if head and head.count(0) > len(head) // 4 and set(head[1::2]) == {0}:
        return "utf-16-le"
    return None if head.count(0) * 50 > len(head) else "utf-8"


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
