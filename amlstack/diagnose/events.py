"""Events of logs: one per line, table row or record that reports on the end of a process; and the times of lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from amlstack.code_reading.starters import STARTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.diagnose.flight_recorder import Flight
    from amlstack.diagnose.signatures import EventRole, Signature

_ISO = re.compile(
    r"(?P<y>20\d\d)[-/](?P<m>\d\d)[-/](?P<d>\d\d)[ T_](?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)(?:[.,](?P<f>\d{1,9}))?"
    r"(?:Z|(?P<zone>[+-]\d\d:?\d\d))?"
)
# glog as torch and absl write it: no year.
_GLOG = re.compile(r"\b[EWIF](?P<m>\d{1,2}?)(?P<d>\d\d) (?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)\.(?P<f>\d{3,9})")
_CLOCK = re.compile(r"^\W{0,2}(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)(?:[.,](?P<f>\d{1,9}))?\b")
_EPOCH = re.compile(r"^\[(?P<s>1\d{9})\.(?P<f>\d{3,9})\]")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A moment.

    Attributes:
        seconds: Seconds since 1970 (UTC when no zone was written), or since the year's or the day's begin.
        kind: What it is counted from: ``epoch``, ``year`` or ``day``.
    """

    seconds: float
    kind: str = "epoch"


def find_stamp(text: str) -> Stamp | None:
    """The first time stamp of a line."""
    if not any(mark in text for mark in (":", "[1")):
        return None
    if found := _ISO.search(text):
        return _iso(found)
    if found := _GLOG.search(text):
        day = _moment(1972, found)
        return None if day is None else Stamp((day - datetime(1972, 1, 1, tzinfo=UTC)).total_seconds(), "year")
    if found := _EPOCH.search(text):
        return Stamp(float(f"{found['s']}.{found['f']}"))
    if found := _CLOCK.search(text):
        seconds = int(found["H"]) * 3600 + int(found["M"]) * 60 + int(found["S"])
        return Stamp(seconds + float(f"0.{found['f'] or 0}"), "day")
    return None


def last_stamp(before: Iterable[str]) -> Stamp | None:
    """The last time stamp of the lines before an event, of which the nearest comes first."""
    for line in before:
        if stamp := find_stamp(line[:160]):
            return stamp
    return None


def comparable(stamps: list[Stamp]) -> list[float] | None:
    """The moments on one scale; None when they have none in common."""
    kinds = {stamp.kind for stamp in stamps}
    if len(kinds) == 1:
        return [stamp.seconds for stamp in stamps]
    if kinds == {"epoch", "year"}:
        return [stamp.seconds if stamp.kind == "year" else _within_year(stamp.seconds) for stamp in stamps]
    return None


def _iso(found: re.Match[str]) -> Stamp | None:
    moment = _moment(int(found["y"]), found)
    if moment is None:
        return None
    if zone := found["zone"]:
        digits = zone.replace(":", "")
        away = timedelta(hours=int(digits[1:3]), minutes=int(digits[3:]))
        if away < timedelta(hours=24):
            moment = moment.replace(tzinfo=timezone(-away if digits[0] == "-" else away))
    return Stamp(moment.timestamp())


def _moment(year: int, found: re.Match[str]) -> datetime | None:
    try:
        seconds = datetime(
            *(year, int(found["m"]), int(found["d"]), int(found["H"]), int(found["M"]), int(found["S"])), tzinfo=UTC
        )
    except ValueError:
        return None
    return seconds + timedelta(seconds=float(f"0.{found['f'] or 0}"))


def _within_year(seconds: float) -> float:
    moment = datetime.fromtimestamp(seconds, UTC)
    return (moment.replace(year=1972) - datetime(1972, 1, 1, tzinfo=UTC)).total_seconds()


_LIBRARY = re.compile(
    r"(?:site|dist)-packages[/\\]|[/\\](?i:lib)(?:64)?[/\\](?i:python)3|^<(?!ipython)|[/\\]python3\.\d+[/\\]"
    r"|^/opt/conda/(?:(?:envs/[^/]+/)?lib/|(?!.*(?:work|code)))|[/\\]\.cache[/\\]huggingface[/\\]"
    r"|[/\\](?i:python3\d+|\w*conda3?|envs[/\\][\w.-]+)[/\\](?i:lib)[/\\]"
    rf"|^/usr/(?:local/)?bin/|[/\\]bin[/\\](?:{'|'.join(STARTERS)})"
    r"|[/\\](?:amlcpu|amlparallel)[/\\]\w+\.py$"  # a rehearsal's own calls beside the job's
)


class Origin(StrEnum):
    """The source of an event: how far it is to be trusted depends on it."""

    LINE = "line"
    TRACEBACK = "traceback"
    TABLE = "table"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of source code named by a traceback."""

    file: str
    line: int
    function: str

    @property
    def own(self) -> bool:
        """True where it is no library's, as far as its path tells."""
        return not _LIBRARY.search(self.file)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a log shows.

    Attributes:
        signature: What it means.
        file: The log, as it is shown to the reader.
        line: 1-based line in that log.
        text: The line without its prefixes, cut to a bounded length.
        role: The signature's, unless the surroundings change it.
        origin: Where it was found.
        rank: Global rank, when known.
        local: Local rank, when known.
        node: Host name or number of the node, when known.
        time: When it was written, when the log has a time.
        source: The line of the user's code, from a traceback.
        soft: Written at the level of a warning or a note: not fatal by itself.
        facts: Named pieces of the text: ``exit``, ``signal``, ``missing``, ``seq``, ``peer``, …
    """

    signature: Signature
    file: str
    line: int
    text: str
    role: EventRole
    origin: Origin = Origin.LINE
    rank: int | None = None
    local: int | None = None
    node: str | None = None
    time: Stamp | None = None
    source: Frame | None = None
    soft: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """All that its lines say, and below it the line of code that its traceback names."""
        said = (self.facts[each] for each in ("message", "said", "finally") if each in self.facts)
        whose = "" if self.source is None else f"{'code' if self.source.own else 'library'}: {self.source}"
        return "\n".join((self.text, *map(str, said), whose))

    @property
    def code(self) -> str:
        """The signature's code."""
        return self.signature.code

    @property
    def weight(self) -> int:
        """The signature's weight."""
        return self.signature.weight


@dataclass(frozen=True, slots=True)
class Log:
    """One file that was read.

    Attributes:
        name: As it is shown to the reader.
        lines: How many lines it has.
        rank: The rank whose log it is by its name, when it is one rank's.
        node: The node it belongs to, by name or content.
        launcher: A launcher wrote it: its number is a node's rather than a rank's.
        ranks: Ranks that its lines mention.
        world: Number of ranks that it mentions.
        per_node: Processes per node that it mentions.
        events: What was found.
        ready: Ranks of which a line says that they are about to meet the others.
        reached: The last counter (``("step", 12.0)``) of each rank that its end names; of None for lines without one.
        progress: Lines at its end on which each rank, or None, still came forward.
        finished: The last line on which each rank, or None, says that its run came to its end as it should.
        spoken: The last line that says something else than that a call is tried again, or waits.
        ordinary: Lines at its end that are no part of an end.
        begun: The line on which the program of its begin was started last, as far as its words come once more.
        ending: The line from which on it does nothing but end: victims, exceptions and summaries until its last line.
        places: Nodes of ranks, where a record has them.
        flight: A dump of its rank's flight recorder.
        attempt: Which attempt of the run wrote it, when its folder says so.
    """

    name: str
    lines: int = 0
    rank: int | None = None
    node: str | None = None
    launcher: bool = False
    ranks: frozenset[int] = frozenset()
    world: int | None = None
    per_node: int | None = None
    events: tuple[Event, ...] = ()
    ready: frozenset[int] = frozenset()
    reached: Mapping[int | None, tuple[str, float]] = field(default_factory=dict)
    progress: Mapping[int | None, tuple[int, ...]] = field(default_factory=dict)
    finished: Mapping[int | None, int] = field(default_factory=dict)
    spoken: int = 0
    ordinary: tuple[int, ...] = ()
    begun: int = 0
    ending: int = 0
    places: Mapping[int, str] = field(default_factory=dict)
    flight: Flight | None = None
    attempt: int | None = None
