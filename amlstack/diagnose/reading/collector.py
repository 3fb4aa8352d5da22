"""The events of one log: bounded in number, completed by the lines after them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amlstack.base.credentials import scrub
from amlstack.diagnose import signatures
from amlstack.diagnose.events import Event, Frame, Origin
from amlstack.diagnose.reading import tracebacks, writers
from amlstack.diagnose.signatures import EventRole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.diagnose.events import Stamp
    from amlstack.diagnose.reading.writers import Line
    from amlstack.diagnose.signatures import Signature

MOST_OF_ONE = 6
"""Events kept of one code and rank in one log, besides the last one: the first few show it."""
BUCKET = 32
"""Lines that `Collector.ending` takes together."""
NEAR = 120
"""Lines of a run that is ending that may lie between two of its signs, or between the last one and the log's end."""
MOST_EVENTS = 4000
LONGEST_TEXT = 500
LONGEST_SAID = 2000


_WHO = re.compile(
    r"Process name: *\[+[^\]@]*[\]@,]+[^\d\]]*(?P<rank>\d+)\]|Process name: *(?P<rank2>\d+)\s*$"
    r"|Process name: *(?P<where>[\w.-]+)\[(?P<local>\d+)\]|Remote daemon *:.* on node (?P<node>\S+)"
    r"|^\s*hostname: +(?P<host>\S+)|(?:RANK (?P<rank3>\d+) )?PID \d+ RUNNING AT (?P<at>\S+)"
)
_CURRENT = "Current thread 0x"
MOST_FRAMES = 100
_TASK = re.compile(r"/job:\w+/(?:replica:\d+/)?task:(?P<rank>\d{1,6})\W*$")
_ANNOUNCES = re.compile(
    r"\w: \d+ validation errors? for \S+$|\w\W? \w.*(?: -|:)$|^(?!Exception:)[\w.]+:$"
    r"|^[\w.]+\.\w+Exception$|error: \(-\d+:[^)]*\) in function '[^']+'$"
    r"|^[\w.]*ArgumentError: Python argument types in$|\d root error\(s\) found\.$|\bstatus = StatusCode\.\w+$"
)
"""The end of a message that goes on with a list, or begins in the next line."""
_ASKED = re.compile(
    r"(?:[\w.]*\.)?(?:KeyError|NameError|AttributeError|TypeError|IndexError|LookupError|StopIteration|TimeoutError|Empty"
    r"|binascii\.Error|JSONDecodeError|UnicodeDecodeError|DeferredInitializationError)\b"
)
"""Exceptions by which a program asks: what it does instead may fail, and is the cause then."""
_IMPORT = re.compile(r"(?:ImportError|ModuleNotFoundError): (?:cannot import name|No module named) ")
_QUOTED = re.compile(r"File |Traceback|at \S+\(|(?:\S+\.py|<ipython-input\S*>):\d+ \w")
"""Begins a line of a traceback that a message quotes; the last one is the form of old TensorFlow."""
_LISTING = {
    "horovod-stalled": re.compile(r"(?P<rank>\d{1,6}): ?\["),
    "rendezvous-timeout": _TASK,
    "barrier-not-joined": _TASK,
}
"""Code of an event → rows below it that name the ranks that did not come."""


WHAT = 2
"""Lines from the class of a C++ exception to its text; other processes write between."""


@dataclass(slots=True)
class Collector:
    """Keeps events of a log.

    Attributes:
        name: The log, as it is shown.
        node: Its node, when its folder names it.
        events: In the order of their lines.
        details: How many of the next lines may name the process of the last event.
        dumped: How many of the next lines may be the stack of the last event's process.
    """

    name: str
    node: str | None = None
    events: list[Event] = field(default_factory=list)
    details: int = 0
    dumped: int = 0
    _kept: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    _latest: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _covered: set[int] = field(default_factory=set)
    _named: tuple[int | None, str | None] = (None, None)

    def follow(self, line: Line) -> None:
        """Takes a line that may add to the last event."""
        if self.details > 0:
            self._detail(line)
        self._dump(line)

    def cover(self, number: int) -> None:
        """A line is part of an end: of a traceback, of a victim's words, of a storm of errors."""
        self._covered.add(number // BUCKET)

    def cover_all(self, numbers: Iterable[int]) -> None:
        """The same of several lines, each of which stands for those around it."""
        self._covered |= {number // BUCKET for number in numbers}

    def ending(self, lines: int) -> int:
        """The line from which on a log of that many lines does nothing but end."""
        begin = lines
        for bucket in sorted(self._covered, reverse=True):
            if begin - (bucket + 1) * BUCKET > NEAR:
                break
            begin = min(begin, bucket * BUCKET)
        return max(0, begin - NEAR)

    def summed_up(self, lines: int) -> int:
        """The line on which a launcher says last, near the end of a log of that many lines, that a process failed."""
        found = (each for each in reversed(self.events) if each.role is EventRole.SUMMARY)
        line = next((each.line for each in found if each.origin is Origin.LINE and not each.soft), 0)
        return line if lines - line <= NEAR else 0

    def add(
        self, signature: Signature, number: int, line: Line, text: str, *, origin: Origin = Origin.LINE, **rest: Any
    ) -> None:
        """Adds an event that a line shows, unless there are enough of its kind; ``rest`` are fields of `Event`."""
        facts = rest.pop("facts", {})
        signature, facts = signatures.settle(signature, facts)
        rank = facts.get("rank", line.rank)
        node = facts.get("node") or line.node or writers.inline_node(text)
        ended = "signal" in facts or text.startswith("signal ")
        if self.details > 0 and ended and rank is None and node is None:
            rank, node = self._named  # the lines before named the process
        if rank is None:
            rank = writers.inline_rank(text)
        if rank is not None and (text.startswith("srun: ") or (line.task and "rank" not in facts)):
            facts = {**facts, "task": rank}
        if rank is None and (pid := line.pid or writers.process(text)):
            facts = {**facts, "pid": pid}
        local = facts.get("local", line.local)
        key = (signature.code, rank, local, origin is Origin.TRACEBACK)
        self._kept[key] += 1
        if ended or _shows_end(signature, origin, soft=bool(rest.get("soft"))):
            self.cover(number)
        if len(self.events) >= MOST_EVENTS:
            return
        event = Event(
            signature=signature,
            file=self.name,
            line=number,
            text=_cut(text),
            role=signature.role,
            origin=origin,
            rank=rank,
            local=local,
            node=node or self.node,
            facts=facts,
            **rest,
        )
        if self._kept[key] > MOST_OF_ONE + 1:
            self.events[self._latest[key]] = event
            return
        self._latest[key] = len(self.events)
        self.events.append(event)
        if signature.code in ("mpi-process-failed", "mpi-daemon-lost", *_LISTING):
            self.details, self._named = 12, (rank, node)

    def chain(self, at: int, raised: tracebacks.Raised, signature: Signature, time: Stamp | None) -> None:
        """A later exception of a chain: the first is the root; the later one may know better what it means."""
        root = self.events[at]
        if raised.original:  # what a worker process sent: the first line was only its wrapper
            self.events[at] = replace(
                root, signature=signature, role=signature.role, text=_cut(raised.text), line=raised.line,
                source=raised.frame or root.source, time=root.time or time,
            )  # fmt: skip
            return
        final = {**root.facts, "finally": _cut(raised.text)}
        if raised.main:  # the process ended, whatever stood above the first
            final = {**{name: final[name] for name in final if name != "record"}, "main": raised.main}
        known = signature.code != "python-exception"
        better = root.code == "python-exception" and known
        asked = raised.chained == tracebacks.HANDLED and _asked(root, raised)
        if root.role is EventRole.VICTIM and signature.role is EventRole.CULPRIT and known:
            # A connection that broke while a worker's death was handled: the death is the cause.
            root = replace(root, signature=signature, role=signature.role, text=_cut(raised.text), line=raised.line)
        elif asked and signature.role is EventRole.CULPRIT:
            final["finally"] = root.text
            root = replace(root, signature=signature, role=signature.role, text=_cut(raised.text), line=raised.line)
        elif better and raised.chained != tracebacks.HANDLED and signature.role is not EventRole.SUMMARY:
            root = replace(root, signature=signature, role=signature.role)
        self.events[at] = replace(root, facts=final, source=root.source or raised.frame)

    def hear(self, at: int, text: str) -> None:
        """One more line of an event's message."""
        said = f"{self.events[at].facts.get('said', '')}\n{_cut(text)}"
        if len(said) <= LONGEST_SAID:
            self.events[at] = replace(self.events[at], facts={**self.events[at].facts, "said": said})

    def show(self, at: int, text: str) -> None:
        """The line after one that only announces it, and the rest of one that another process's words tore apart."""
        event, more = self.events[at], text.strip()
        own = more and _QUOTED.match(more) is None
        said = str(event.facts.get("said", "")).strip()
        last = said.rpartition("\n")[2].strip()
        torn = said == ":" or (not said and more.startswith(":"))
        if own and (torn or (event.text.endswith(last) and _ANNOUNCES.search(event.text))):
            self.events[at] = replace(event, text=_cut(event.text + " " * (more[0] != ":") + more))

    def thrown(self, number: int, what: str) -> None:
        """Takes the text of a C++ exception, below the line that names its class."""
        event = self.events[-1] if self.events else None
        if event is not None and event.text.startswith("terminate called") and number - event.line <= WHAT:
            self.events[-1] = replace(event, text=_cut(f"{event.text} {what}"))

    def warned(self, number: int) -> None:
        """Makes the sign on a line a warning's, which does not end a run."""
        event = self.events[-1] if self.events else None
        if (
            event is not None
            and event.line == number
            and event.origin is Origin.LINE
            and event.signature.kind != "stop"
        ):
            self.events[-1] = replace(event, soft=True, facts={**event.facts, "guess": "said"})

    def retried(self, at: int) -> None:
        """Makes an exception one that its program outlived."""
        self.events[at] = replace(self.events[at], facts={**self.events[at].facts, "guess": "said"})

    def cut_off(self, at: int, lines: int) -> None:
        """The log ends within the chain that an exception begins: nobody wrote on after it."""
        event = self.events[at]
        facts = {name: value for name, value in event.facts.items() if name not in ("caught", "guess")}
        self.events[at] = replace(event, facts={**facts, "over": True})
        self.cover_all(range(event.line, lines))

    def sharpen(self, at: int, signature: Signature, number: int, text: str, facts: dict[str, Any]) -> None:
        """A later line of an event's message says what its first line did not."""
        event = self.events[at]
        signature, facts = signatures.settle(signature, {**event.facts, **facts, "message": event.text})
        self.events[at] = replace(
            event, signature=signature, role=signature.role, text=_cut(text.strip()), line=number, facts=facts
        )

    def _detail(self, line: Line) -> None:
        """Lines after a summary that name mpirun's process, the lost daemon's node, the stalled ranks."""
        self.details -= 1
        last = len(self.events) - 1
        if last < 0:
            self.details = 0
            return
        event = self.events[last]
        if event.code in _LISTING:
            if found := _LISTING[event.code].match(line.text.strip()):
                missing = sorted({*event.facts.get("missing", ()), int(found["rank"])})
                self.events[last] = replace(event, facts={**event.facts, "missing": tuple(missing)})
            return
        found = _WHO.search(line.text)
        if found is None:
            return
        number = found["rank"] or found["rank2"] or found["rank3"]
        rank = event.rank if number is None else int(number)
        node = found["node"] or found["host"] or found["at"] or found["where"] or event.node
        self.events[last] = replace(event, rank=rank, node=node)
        self._named = (rank, node)

    def _dump(self, line: Line) -> None:
        """The stack of an interpreter that a signal ended: its current thread's, the innermost frame first."""
        self.dumped -= self.dumped > 0
        if not self.events or self.events[-1].signature.kind != "crash":
            return
        if _CURRENT in line.text:
            self.dumped = MOST_FRAMES
        elif self.dumped and (frame := tracebacks.dumped(line.text)):
            self.events[-1] = replace(self.events[-1], source=frame)
            self.dumped = 0


def _asked(root: Event, raised: tracebacks.Raised) -> bool:
    """True where the first exception only answered a question.

    A library, or the function that asked, did something else then; or a name was not there.
    """
    own = "main" in root.facts or Frame(str(root.facts.get("inner", "")), 0, "").own or Frame(raised.inner, 0, "").own
    imports = _IMPORT.match(root.text) is not None and _IMPORT.match(raised.text) is not None
    known = not imports and (root.code != "python-exception" or _ASKED.match(root.text) is None)
    return not known and (not own or raised.instead or root.text.startswith("NameError"))


def _shows_end(signature: Signature, origin: Origin, *, soft: bool) -> bool:
    """True where an event is a part of an end: a warning and a sign that may be harmless are not."""
    if soft or signature.role in (EventRole.CONTEXT, EventRole.NOTE):
        return False
    return (
        origin is not Origin.LINE
        or signature.role in (EventRole.VICTIM, EventRole.SUMMARY)
        or signature.ends
        or signature.weight >= 3
    )


def _cut(text: str) -> str:
    return scrub(text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…")
