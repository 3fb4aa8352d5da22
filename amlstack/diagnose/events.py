"""Events of logs: one per line, table row or record that reports on the end of a process."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.diagnose.flight_recorder import Flight
    from amlstack.diagnose.signatures import EventRole, Signature
    from amlstack.diagnose.timestamps import Stamp


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
    ending: int = 0
    places: Mapping[int, str] = field(default_factory=dict)
    flight: Flight | None = None
    attempt: int | None = None
