"""A folder of logs as a report shows it: the verdict on them, lines, numbers; and its words for times and signals."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from amlstack.base.credentials import scrub
from amlstack.diagnose import Diagnosis, judge, read
from amlstack.diagnose.events import Log, Origin
from amlstack.diagnose.reading.messages import counter
from amlstack.diagnose.reading.writers import strip
from amlstack.diagnose.signatures import EventRole
from amlstack.sandbox.runner.finish import signal_name

if TYPE_CHECKING:
    from amlstack.base.findings import Finding
    from amlstack.sandbox.store.tables import Logged


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a job's life: a status, and when it began and ended (seconds since the epoch; None: not yet)."""

    name: str
    began: float
    ended: float | None


@dataclass(frozen=True, slots=True)
class RankOutcome:
    """One training process.

    Attributes:
        rank: Its number.
        node: Its node's number or name; None when unknown.
        local: Its number on the node; None when unknown.
        code: Exit code, negative for a signal; None while it runs, or when unknown.
        began, ended: Seconds since the epoch; None when unknown.
        stopped: It ended by SIGTERM, with which a job is stopped.
    """

    rank: int
    node: str | None
    local: int | None = None
    code: int | None = None
    began: float | None = None
    ended: float | None = None

    @property
    def stopped(self) -> bool:
        """It ended by SIGTERM."""
        return self.code == -15


@dataclass(frozen=True, slots=True)
class OutputFile:
    """An output: its name and its size in bytes, None for what is not on this disk."""

    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ChildJob:
    """A step or a trial.

    Attributes:
        place: In the parent: the step's name, the trial's number.
        job: Its job's name.
        status: The job's.
        values: Of a trial the hyperparameters that were drawn.
        metric: Of a trial the last value of the sweep's primary metric; empty where it logged and printed none.
        best: It is the best trial, as the service has it.
    """

    place: str
    job: str
    status: str
    values: Mapping[str, str] = field(default_factory=dict)
    metric: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One curve.

    Attributes:
        name: As it was printed.
        points: Pairs of x and y; y is NaN where the script printed one.
        axis: What x counts: ``step``, ``epoch``, …, or ``print`` when lines name no step.
        source: Where the numbers come from, for the reader.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    axis: str
    source: str

    @property
    def loss(self) -> bool:
        """True where it is a loss."""
        return "loss" in self.name.lower()


@dataclass(frozen=True, slots=True)
class LogPart:
    """Lines that stand together: the 1-based number of the first, their texts."""

    first: int
    lines: tuple[str, ...]

    @property
    def after(self) -> int:
        """The number of the line after the last."""
        return self.first + len(self.lines)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of one log that is shown.

    Attributes:
        name: The log.
        rank, node: Whose it is; None when unknown.
        size: Bytes in all.
        lines: Lines in all.
        parts: What is shown, in order.
        marks: Line number → ``cause`` or ``victim``.
    """

    name: str
    rank: int | None
    node: str | None
    size: int
    lines: int
    parts: tuple[LogPart, ...]
    marks: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one page shows.

    Attributes:
        title: The job's name, or the folder's.
        status: The job's; empty for a folder.
        active: The job has not ended: all of this is so far.
        made: When this was gathered, seconds since the epoch.
        facts: Names and values of the declaration.
        error: The service's message about the end; empty for none.
        verdict: The diagnosis of the logs; None where there is nothing to explain.
        phases: The job's statuses in their order.
        ranks: In the order of their numbers.
        series: Numbers over steps.
        numbers: Last values without steps, by name, as text.
        excerpts: The logs.
        outputs: What the job wrote.
        children: Steps or trials.
        metric: Name of a sweep's primary metric; empty for other jobs.
        notes: What a reader should know about the report itself.
        usage: The use of each node over time, by measure.
        steps: Where the times of a step come from, and those of each rank in seconds.
        compared: Runs side by side: a row with their names, then a name and a text of each run.
    """

    title: str
    status: str
    active: bool
    made: float
    facts: tuple[tuple[str, str], ...] = ()
    error: str = ""
    verdict: Diagnosis | None = None
    phases: tuple[Phase, ...] = ()
    ranks: tuple[RankOutcome, ...] = ()
    series: tuple[Series, ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    outputs: tuple[OutputFile, ...] = ()
    children: tuple[ChildJob, ...] = ()
    metric: str = ""
    notes: tuple[str, ...] = ()
    usage: Mapping[str, tuple[Series, ...]] = field(default_factory=dict)
    steps: tuple[str, Mapping[int, list[float]]] = ("", {})
    compared: tuple[tuple[str, ...], ...] = ()


def moment(seconds: float) -> str:
    """``2026-11-21 14:02:07 UTC``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: float) -> str:
    """``0.02 s``, ``47 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 9.95:
        return f"{seconds:.2g} s" if seconds >= 0.005 else "0 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(count: int) -> str:
    """Bytes with a unit: ``512 B``, ``3.4 KiB``."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def number(value: float) -> str:
    """Five digits at most."""
    return f"{value:.5g}" if math.isfinite(value) else str(value)


def ended(code: int | None, *, running: bool) -> str:
    """The end of a process."""
    if code is None:
        return "running" if running else "end unknown"
    return f"exit {code}" if code >= 0 else signal_name(-code)


def count(amount: int, what: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{amount:,} {what}{'' if amount == 1 else 's'}"


TAIL = 64 * 1024
"""Bytes of one log that are shown, unless there are many logs."""
ALL = 3 * 1024 * 1024
LEAST = 4 * 1024
AROUND = 12
"""Lines before and after an error that lies before the tail."""
LONGEST = 2000
CHUNK = 1 << 20

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def budget(logs: int) -> int:
    """Bytes of each of so many logs."""
    return max(LEAST, min(TAIL, ALL // max(1, logs)))


def excerpt(
    path: Path, name: str, *, rank: int | None, node: str | None, marks: Mapping[int, str], size: int = TAIL
) -> Excerpt:
    """Reads what is shown of one log.

    Args:
        path: The file.
        name: As it is shown.
        rank: Whose it is.
        node: Where that ran.
        marks: Lines to show whatever their place: number → ``cause`` or ``victim``.
        size: Bytes of the tail.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        total = file.seek(0, 2)
        begin = max(0, total - size)
        file.seek(0)
        skipped = 0
        left = begin
        while left > 0 and (chunk := file.read(min(CHUNK, left))):
            skipped += chunk.count(b"\n")
            left -= len(chunk)
        rest = file.read(total - begin)
        if begin:  # from a whole line on, unless it is one endless line
            _, ended, whole = rest.partition(b"\n")
            if ended:
                rest, skipped = whole, skipped + 1
        tail = LogPart(skipped + 1, tuple(_lines(rest)))
        before = sorted(number for number in marks if number < tail.first)[:1]
        parts = (*_around(path, before[0], tail.first), tail) if before else (tail,)
    return Excerpt(name, rank, node, total, tail.after - 1, parts, dict(marks))


def plain(raw: bytes) -> str:
    """A line as a reader sees it: what a progress bar wrote last, no colours, no control characters, no secrets."""
    pieces = [piece for piece in raw.split(b"\r") if piece.strip()]
    text = _COLOUR.sub("", (pieces[-1] if pieces else b"")[: LONGEST * 4].decode(errors="replace"))
    text = scrub(_CONTROL.sub("\ufffd", text))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(raw)} bytes)"


def _lines(rest: bytes) -> list[str]:
    raws = rest.split(b"\n")
    if raws and not raws[-1]:
        raws.pop()
    return [plain(raw) for raw in raws]


def _around(path: Path, number: int, until: int) -> tuple[LogPart, ...]:
    """The lines around an early error, which the tail does not reach."""
    first, last = max(1, number - AROUND), min(until - 1, number + AROUND)
    found = []
    at, fresh = 1, True
    with path.open("rb") as file:
        while at <= last and (raw := file.readline(1 << 16)):  # of an endless line its beginning
            if fresh and at >= first:
                found.append(plain(raw.rstrip(b"\n")))
            fresh = raw.endswith(b"\n")
            at += fresh
    return (LogPart(first, tuple(found)),) if found else ()


MOST_POINTS = 1000
MOST_SERIES = 12
MOST_FORMS = 16
LONGEST_SERIES = 4000
"""The part of one line that is looked at."""

NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)"
# The last word of a metric's name says what it is: train_loss, eval/accuracy, lr-AdamW.
_KINDS = r"loss|losses|accuracy|acc|perplexity|ppl|learning_rate|lr|grad_norm|tokens_per_second|samples_per_second"
_METRIC = re.compile(
    rf"(?<![\w./-])['\"]?(?P<name>(?:[A-Za-z][\w./-]{{0,40}}[_/. -])?(?:{_KINDS}))(?:\[[\w ]+\])?['\"]?"
    rf"\s{{0,4}}[:=]?\s{{0,8}}(?:tensor\()?['\"]?(?P<value>{NUMBER})(?![\w.]*[A-Za-z(/])",
    re.IGNORECASE,
)
_WORTH = re.compile(rb"loss|acc|ppl|perplexity|lr\b|learning_rate|grad_norm|per_second", re.IGNORECASE)


@dataclass(slots=True)
class _Kept:
    """Points of one series: every n-th, n doubled whenever there are too many; the last one always."""

    axis: str
    points: list[tuple[float, float]] = field(default_factory=list)
    every: int = 1
    seen: int = 0
    last: tuple[float, float] | None = None

    def add(self, x: float, y: float) -> None:
        self.last = (x, y)
        if self.seen % self.every == 0:
            self.points.append((x, y))
            if len(self.points) > MOST_POINTS:
                self.points = self.points[::2]
                self.every *= 2
        self.seen += 1

    def all(self) -> tuple[tuple[float, float], ...]:
        """The points kept, and the last."""
        ends = [] if self.last is None or self.last in self.points[-1:] else [self.last]
        return (*self.points, *ends)


def from_log(path: Path, name: str, rank: int | None = None) -> tuple[Series, ...]:
    """The series that one log's lines print.

    Args:
        path: The log.
        name: As it is shown to the reader.
        rank: Of a log of several ranks, the one whose lines count; None for all lines.
    """
    try:
        with path.open("rb") as file:
            return from_lines(_parts(file), f"lines of {name}" + ("" if rank is None else f" by rank {rank}"), rank)
    except OSError:
        return ()


def from_lines(lines: Iterable[bytes], source: str, rank: int | None = None) -> tuple[Series, ...]:
    """The series that lines print; see `from_log`."""
    # Lines of different forms tell different things: steps, an epoch's mean, a summary at the end.
    kept: dict[str, dict[tuple[str, str], _Kept]] = {}
    for raw in lines:
        if not _WORTH.search(raw):
            continue
        line = strip(raw[:LONGEST_SERIES].decode(errors="replace"))
        if rank is not None and line.rank is not None and line.rank != rank:
            continue
        axis, at = counter(line.text) or ("print", None)
        for metric, value, begin in metrics(line.text):
            forms = kept.setdefault(metric, {}) if metric in kept or len(kept) < MOST_SERIES else {}
            key = (axis, _form(line.text[:begin]))
            track = forms.setdefault(key, _Kept(axis)) if key in forms or len(forms) < MOST_FORMS else _Kept(axis)
            track.add(float(track.seen) if at is None else at, value)
    return tuple(_series(metric, _longest(forms.values()), source) for metric, forms in kept.items())


def metrics(text: str) -> Iterator[tuple[str, float, int]]:
    """Name, value and place of the metrics that a line prints, each name once."""
    seen = set()
    for found in _METRIC.finditer(text):
        name = re.sub(r"\s+", " ", found["name"]).strip()
        if name not in seen:
            seen.add(name)
            yield name, float(found["value"]), found.start()


def from_metrics(data: Any, source: str) -> tuple[tuple[Series, ...], tuple[tuple[str, str], ...]]:
    """Lists of numbers as series, other plain values as text, of the JSON that a script left at its end."""
    if not isinstance(data, dict):
        return (), ()
    series = [
        Series(str(name), tuple(enumerate(map(float, value))), "entry", source)
        for name, value in data.items()
        if isinstance(value, list) and value and all(_number(each) for each in value)
    ]
    plain = [(str(name), _text(value)) for name, value in data.items() if isinstance(value, str | int | float)]
    return tuple(series[:MOST_SERIES]), tuple(plain[:24])


def read_json(path: Path) -> Any:
    """A small JSON file's content; None when there is none or it is no JSON."""
    try:
        return json.loads(path.read_text()) if path.stat().st_size < 1 << 22 else None
    except (OSError, ValueError, RecursionError):
        return None


def from_logged(values: Iterable[Logged]) -> tuple[Series, ...]:
    """Series of the metrics that a job logged to its run; one without steps counts its values."""
    kept: dict[str, _Kept] = {}
    for each in values:
        track = kept.setdefault(each.name, _Kept("step"))
        track.add(float(each.step or track.seen), each.value)
    source = "metrics that the job logged to its run"
    return tuple(_series(name, track, source) for name, track in kept.items())[:MOST_SERIES]


def _series(name: str, kept: _Kept, source: str) -> Series:
    points = kept.all()
    rises = all(before[0] <= after[0] for before, after in pairwise(points))
    if kept.axis == "print" or not rises or len({x for x, _ in points}) * 2 < len(points):
        # Counters that begin anew with each epoch, or stand still in it, make no axis: the lines themselves do.
        return Series(name, tuple((float(each * kept.every), y) for each, (_, y) in enumerate(points)), "print", source)
    return Series(name, points, kept.axis, source)


def _form(text: str) -> str:
    """The rest of a line's beginning when its numbers, bars and marks are gone."""
    return re.sub(r"[^A-Za-z]+", "", re.sub(r"\d[\d.eE+-]*", "", text[-200:]))


def _longest(forms: Iterable[_Kept]) -> _Kept:
    """The form with the most points; of two the one whose lines name a step, then the first."""
    return max(forms, key=lambda each: (each.seen, each.axis != "print"))


def _parts(file: BinaryIO) -> Iterator[bytes]:
    """Lines, those of progress bars apart; of an endless line pieces, so that memory stays bounded."""
    for line in iter(lambda: file.readline(1 << 16), b""):
        yield from line.rstrip(b"\r\n").split(b"\r")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) and math.isfinite(value) else str(value)[:200]


_RUNNER = "runner.log"
MOST_LOGS = 128
MOST_SEARCHED = 8
"""Logs that are searched for numbers: rank 0's comes first."""


@dataclass(frozen=True, slots=True)
class FolderLogs:
    """The contents of a folder of logs.

    Attributes:
        logs: As they were read.
        verdict: On all of them.
        excerpts: What is shown.
        series: The numbers that the first rank which prints any prints.
        findings: What could not be read.
        left_out: How many logs are not shown.
    """

    logs: tuple[Log, ...]
    verdict: Diagnosis
    excerpts: tuple[Excerpt, ...]
    series: tuple[Series, ...]
    findings: tuple[Finding, ...]
    left_out: int = 0


def read_folder(folder: Path) -> FolderLogs:
    """Reads all logs of a folder."""
    found = read([folder])
    verdict = judge(found)
    texts = sorted((log for log in found.logs if (folder / log.name).suffix != ".json"), key=_turn)
    shown = _shown(texts, verdict)
    size = budget(len(shown))
    excerpts = [made for log in shown if (made := _excerpt(folder, log, verdict, size)) is not None]
    numbers = _numbers_of_logs(folder, texts)
    return FolderLogs(found.logs, verdict, tuple(excerpts), numbers, found.findings, len(texts) - len(shown))


def series_of(folder: Path) -> tuple[Series, ...]:
    """The numbers alone."""
    return _numbers_of_logs(folder, sorted(read([folder]).logs, key=_turn))


def _numbers_of_logs(folder: Path, logs: Iterable[Log]) -> tuple[Series, ...]:
    """Of the first rank that prints any; what the sandbox itself writes about the job are no numbers of it."""
    ranks = [log for log in logs if log.name != _RUNNER and (folder / log.name).suffix != ".json"]
    searched = ((log, min(log.ranks) if log.ranks else None) for log in ranks[:MOST_SEARCHED])
    return next((each for log, rank in searched if (each := from_log(folder / log.name, log.name, rank))), ())


def _turn(log: Log) -> tuple[int, int, bool, str]:
    """Ranks' own logs first, in their order; then launchers', the service's and the runner's."""
    kind = 2 if log.name.startswith("nodes/") else 1 if log.name == _RUNNER else 0
    own = not log.name.rpartition("/")[2].startswith("std_log_process")
    return (kind, -1 if log.rank is None else log.rank, own, log.name)


def _shown(texts: list[Log], verdict: Diagnosis) -> list[Log]:
    if len(texts) <= MOST_LOGS:
        return texts
    named = {verdict.file, *(victim.file for victim in verdict.victims[:8])}
    first = [log for log in texts if log.name in named]
    rest = [log for log in texts if log.name not in named]
    return sorted([*first, *rest][:MOST_LOGS], key=_turn)


def _excerpt(folder: Path, log: Log, verdict: Diagnosis, size: int) -> Excerpt | None:
    path = folder / log.name
    if path.suffix == ".gz":  # its lines are judged; its bytes are not for the eye
        return None
    try:
        return excerpt(path, log.name, rank=log.rank, node=log.node, marks=_marks(log, verdict), size=size)
    except OSError:
        return None


def _marks(log: Log, verdict: Diagnosis) -> dict[int, str]:
    """The line of the verdict, or the first line of this log that reports an end."""
    if verdict.found and verdict.file == log.name and verdict.line:
        return {verdict.line: "cause"}
    ended = [event for event in log.events if event.origin in (Origin.LINE, Origin.TRACEBACK)]
    first = min((event.line for event in ended if event.role in (EventRole.CULPRIT, EventRole.VICTIM)), default=None)
    return {} if first is None else {first: "victim"}
