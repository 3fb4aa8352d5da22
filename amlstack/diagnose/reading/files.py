"""Paths → logs: which files of a folder are read, whose they are by their names, and what could not be read."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.base.near_misses import did_you_mean
from amlstack.diagnose.reading import json_records, lines
from amlstack.diagnose.reading.scanner import scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amlstack.diagnose.events import Log

CHUNK = 1 << 20
MOST_FILES = 20_000
_TEXTS = frozenset({"", ".txt", ".log", ".out", ".err", ".json", ".gz", ".stdout", ".stderr", ".o", ".e"})
_PLACES = frozenset({"user_logs", "azureml-logs", "logs", "system_logs", "torchrun", "logs.azureml", "lifecycler"})
_NO_LOGS = frozenset({"inputs", "outputs", "wd", ".git", "__pycache__", "node_modules"})
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
    """Reads files and folders of logs."""
    logs: list[Log] = []
    findings: list[Finding] = []
    seen: set[Path] = set()
    for path in paths:
        files = list(_files(path, findings))
        for file in files:
            resolved = file.resolve()
            if resolved in seen:
                continue
            seen.add(resolved)
            log = _one(file, path, findings)
            if log is not None:
                logs.append(log)
    return LogFiles(tuple(logs), tuple(findings))


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


def _files(path: Path, findings: list[Finding]) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        otherwise = "Give a log file, or the folder that `az ml job download` made."
        remedy = did_you_mean(path.name, _beside(path), otherwise=otherwise)
        findings.append(_finding("path-missing", path, "does not exist", remedy, Level.ERROR))
        return
    found = sorted(_walk(path), key=_natural)
    if path.name in _PLACES and (path.parent / "report.json").is_file():
        found.append(path.parent / "report.json")
    if not found:
        remedy = "Logs are text files such as user_logs/std_log_process_00.txt or 70_driver_log_0.txt."
        findings.append(_finding("no-logs", path, "holds no log", remedy, Level.ERROR))
    if len(found) > MOST_FILES:
        seen = f"holds {len(found)} files"
        findings.append(_finding("too-many-files", path, seen, f"The first {MOST_FILES} are read.", Level.WARNING))
    yield from found[:MOST_FILES]


def _walk(root: Path) -> Iterator[Path]:
    try:
        entries = sorted(root.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink() and entry.is_dir():
            continue
        if entry.is_dir():
            if entry.name not in _NO_LOGS:
                yield from _walk(entry)
        elif entry.is_file() and _textual(entry):
            yield entry


def _textual(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    if path.suffix == ".json":
        return path.name in ("report.json", "error.json") or "error" in path.name
    return path.suffix.lower() in _TEXTS or bool(re.fullmatch(r"\.\d+", path.suffix))


def _one(path: Path, root: Path, findings: list[Finding]) -> Log | None:
    name = _shown(path, root)
    base = root if root.is_dir() else root.parent
    rank, node = rank_of(path, base), node_of(path, base)
    try:
        with path.open("rb") as file:
            head = file.read(8192)
            size = path.stat().st_size
        if path.suffix == ".json" and size <= json_records.LARGEST:
            log = json_records.parse(name, path.read_text(errors="replace"), rank=rank, node=node)
            if log is not None:
                return log
        kind = _encoding(head, path)
        if kind is None:
            remedy = "Give text files; unpack archives first."
            findings.append(_finding("binary-file", path, "is not text", remedy, Level.WARNING))
            return None
        return scan(name, _chunks(path, kind), rank=rank, node=node)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        findings.append(_finding("unreadable-file", path, f"cannot be read: {reason}", "", Level.WARNING))
        return None


def _chunks(path: Path, kind: str) -> Iterator[bytes]:
    with gzip.open(path, "rb") if kind == "gzip" else path.open("rb") as file:
        raw = iter(lambda: file.read(CHUNK), b"")
        yield from raw if kind in ("gzip", "utf-8") else lines.as_utf8(raw, kind)


def _encoding(head: bytes, path: Path) -> str | None:
    if path.suffix == ".gz" and head[:2] == b"\x1f\x8b":
        return "gzip"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if head and head.count(0) > len(head) // 4 and set(head[1::2]) == {0}:
        return "utf-16-le"
    return None if head.count(0) * 50 > len(head) else "utf-8"


def _shown(path: Path, root: Path) -> str:
    if root.is_file():
        return str(path)
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name


def _natural(path: Path) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", str(path))
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]


def _beside(path: Path) -> list[str]:
    try:
        return [each.name for each in path.parent.iterdir()]
    except OSError:
        return []


def _finding(code: str, path: Path, seen: str, remedy: str, level: Level) -> Finding:
    return Finding(code, "", f"{path} {seen}", "", remedy, level)
