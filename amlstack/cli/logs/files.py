"""The growing logs of a job, copied from a workspace and read line by line; each line names the rank that wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.paths import files_below
from amlstack.base.text import last_written
from amlstack.provider.arm import ArmClient, ArmError, SignedFiles
from amlstack.provider.runs import Runs

if TYPE_CHECKING:
    from amlstack.sandbox.files.environments import CodeCopies

_TAG = re.compile(r"\[rank (?P<rank>\d+)\]: ")
"""torchrun's prefix of the lines of its ranks; the sandbox asks for it."""
_OWN_TAG = re.compile(r"\[rank ?(?P<rank>\d+)\]: ?")
"""The same, and what PyTorch puts before the lines of an exception."""
_OF_RANKS = ("PyTorch", "Mpi")
_PLACES = (("user_logs", "std_log_process_*.txt"), ("azureml-logs", "70_driver_log_*.txt"))
"""Paths of the log of each process; the second of jobs that were submitted the older way."""
_OF_THE_JOB: Final = ("user_logs/", "azureml-logs/")
"""Logs that the job itself writes; the service's own logs are for the service's maintainers."""
_GONE: Final = frozenset({403, 404})
_LONGEST: Final = 255
"""Bytes of a file's name, as the usual file systems bound it."""


@dataclass(slots=True)
class Tail:
    """The lines that a growing file gained since the last look; an unfinished line waits for its end."""

    path: Path
    offset: int = 0
    rest: bytes = b""

    def lines(self, *, last: bool = False) -> list[str]:
        """Whole new lines, and with ``last`` the unfinished one too."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                chunk = file.read()
        except FileNotFoundError:
            return []
        self.offset += len(chunk)
        *whole, self.rest = (self.rest + chunk).split(b"\n")
        if last and self.rest:
            whole.append(self.rest)
            self.rest = b""
        return [last_written(line.decode(errors="replace")) for line in whole]


@dataclass(frozen=True, slots=True)
class ProcessKind:
    """The processes that the service starts, one log each.

    Attributes:
        word: ``rank`` where each of them is one; ``node`` where one starts on each node and may start ranks of its own,
            as torchrun does; ``process`` of TensorFlow's tasks.
    """

    word: str = "node"

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> ProcessKind:
        """From a command job's ``properties``."""
        distribution = properties.get("distribution") or {}
        kind = distribution.get("distributionType")
        if kind in _OF_RANKS:
            return cls("rank" if int(distribution.get("processCountPerInstance") or 1) > 1 else "node")
        return cls("node" if kind is None else "process")


@dataclass(slots=True)
class ProcessLog:
    """One process's log.

    Attributes:
        number: Of the process, among all that the service starts.
        tail: Its lines.
        tagged: A launcher names the rank before each line that a rank of its own wrote.
        within: The folder below `user_logs` in which it lies: of one attempt of several; empty for none.
    """

    number: int
    tail: Tail
    tagged: bool = False
    within: str = ""


@dataclass(slots=True)
class Logs:
    """All logs of one job folder.

    Attributes:
        folder: The job's folder.
        kind: What its processes are.
        copies: Where its code comes from: lines name the author's files.
        only: The one rank whose lines are wanted; None for all. Where no line names a rank, the process of that number
            stands for it: which lines are taken depends on the logs alone, and not on when they are looked at.
    """

    folder: Path
    kind: ProcessKind = field(default_factory=ProcessKind)
    copies: CodeCopies | None = None
    only: int | None = None
    logs: dict[str, ProcessLog] = field(default_factory=dict)

    def new(self, *, last: bool = False) -> Iterator[tuple[str, str]]:
        """Pairs of label (``rank 3``, ``node 1``) and line, log by log."""
        for root, pattern in _PLACES:
            for path in files_below(self.folder / root):
                number = path.stem.rpartition("_")[2]
                if number.isdigit() and path.match(pattern):
                    name = path.relative_to(self.folder / root)
                    within = name.parent.as_posix().removeprefix(".")
                    self.logs.setdefault(str(name), ProcessLog(int(number), Tail(path), within=within))
        for _, log in sorted(self.logs.items()):
            for text in log.tail.lines(last=last):
                rank, rest = _writer(log, text)
                if self.only is None or self._is_wanted(log, rank):
                    who = f"{self.kind.word} {log.number}" if rank is None else f"rank {rank}"
                    who = f"{log.within} · {who}" if log.within else who
                    yield who, rest if self.copies is None else self.copies.authors(rest)

    def _is_wanted(self, log: ProcessLog, rank: int | None) -> bool:
        if rank is not None:
            return rank == self.only
        # Lines of a launcher that names its ranks are its own.
        return log.number == self.only and not log.tagged


def _writer(log: ProcessLog, text: str) -> tuple[int | None, str]:
    """The rank that a line names as its writer, and the line without its tags: two of one rank are one."""
    found = _TAG.match(text)
    log.tagged |= found is not None
    found = found or _OWN_TAG.match(text)
    if found is None:
        return None, text
    rank, rest = int(found["rank"]), text[found.end() :]
    again = _OWN_TAG.match(rest)
    return rank, rest[again.end() :] if again is not None and int(again["rank"]) == rank else rest


class RefusedNameError(Exception):
    """A name that leads out of the folder, or that no file can have; the message is for the user."""


def inside(folder: Path, name: str) -> Path:
    """The path of a file below a folder.

    Raises:
        RefusedNameError: The name is absolute, goes upwards, or has parts that are no names of files.
    """
    parts = PurePosixPath(name).parts
    wrong = (
        not parts
        or name.startswith("/")
        or name.endswith("/")
        or any(part in {".", ".."} for part in name.split("/"))
        or any(ord(character) < 32 or character == "\\" or ord(character) == 127 for character in name)
        or any(len(part.encode("utf-8", "surrogatepass")) > _LONGEST for part in parts)
    )
    if wrong:
        raise RefusedNameError(
            f"The service names a file {name[:200]!r}, which leads out of the folder or is no file name."
        )
    return folder.joinpath(*parts)


@dataclass(slots=True)
class JobLogs:
    """The logs of a job of any workspace, copied into a folder as they grow: for printing, diagnosis and report.

    Attributes:
        arm: A client of the resource manager.
        workspace: ARM id of the workspace.
        name: Of the job.
        folder: Where the copies grow; the files have the names that run history gives them.
        whole: Also the service's own logs.
        details: What run history answered last.
        refused: Names that lead out of the folder.
        copies: None: where the code of such a job comes from is not known.
    """

    arm: ArmClient
    workspace: str
    name: str
    folder: Path
    whole: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    copies: None = None
    _files: SignedFiles | None = None

    def look(self) -> bool:
        """Copies what is new. The addresses are asked for each time, as their signatures end.

        Returns:
            Whether there was something new.

        Raises:
            ArmError: The service does not answer, or refuses.
        """
        self.details = Runs(self.arm).plane.details(self.workspace, self.name) or {}
        files = self._files = self._files or SignedFiles(self.arm.ca)
        grew = False
        for name, url in sorted((self.details.get("logFiles") or {}).items()):
            if not self.whole and not str(name).startswith(_OF_THE_JOB):
                continue
            try:
                path = inside(self.folder, str(name))
            except RefusedNameError:
                self.refused.add(str(name))
                continue
            try:
                for part in self._new(files, path, str(url)):
                    grew = grew or bool(part)
            except ArmError as error:
                if error.status not in _GONE:
                    raise
        return grew

    def _new(self, files: SignedFiles, path: Path, url: str) -> Iterator[bytes]:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as copy:
            for part in files.read(url, copy.tell()):
                copy.write(part)
                yield part
