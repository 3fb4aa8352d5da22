"""The exceptions of one log: each writer's tracebacks, their chains, and messages that go on."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from amlstack.diagnose.events import Origin
from amlstack.diagnose.reading import messages, pieces, tracebacks, watchdog
from amlstack.diagnose.reading.writers import prefixes
from amlstack.diagnose.signatures import EventRole, by_code, match

if TYPE_CHECKING:
    from collections.abc import Callable

    from amlstack.diagnose import timestamps
    from amlstack.diagnose.reading.collector import Collector
    from amlstack.diagnose.reading.writers.prefixes import Line

    Writer = tuple[int | None, int | None]

NAMELESS = (None, None)
MOST_WRITERS = 256
CUT = 20
"""Lines after a traceback's last frame at a log's end: its exception was cut off rather than lost among others."""
PATIENCE = 200
"""Lines after which a message that its writer did not go on with is complete."""
ATTENTION = 20_000
"""Lines of a log that are read only because they may continue a message."""
_SPAWNED = re.compile(r"^-- Process (\d{1,5}) terminated with the following error")
_LOCAL = re.compile(r"--local[_-]rank=(\d{1,5})\b")
_RANKED_HEADER = re.compile(rf"\S.*\[rank ?(?P<rank>\d{{1,6}})\]: ?{re.escape(tracebacks.HEADER)}$")
"""A header that stands behind a progress bar, with its rank: the next lines have the rank at their beginning."""
_IGNORED = ("Exception ignored in", "--- Logging error ---", "Error in atexit._run_exitfuncs")
_WRAPPERS = ("Exception", "Exception:")


class Exceptions:
    """Reads tracebacks line by line, and gives back the lines that are none.

    Args:
        collector: Gets the events.
    """

    __slots__ = (
        "_attention",
        "_began",
        "_collector",
        "_ignored",
        "_last_raised",
        "_messages",
        "_readers",
        "_spawned",
        "_until",
    )

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._readers: dict[Writer, tracebacks.TracebackReader] = {}
        self._messages: dict[Writer, messages.MessageReader] = {}
        self._last_raised: dict[Writer, int] = {}
        self._spawned: int | None = None
        self._ignored: set[Writer] = set()
        self._began: Writer | None = None
        self._until, self._attention = 0, ATTENTION

    @property
    def open(self) -> bool:
        """Whether the next line may belong to a traceback or a message."""
        return bool(self._messages) or any(reader.open for reader in self._readers.values())

    def notice(self, line: Line) -> None:
        """Takes a line that may say whose the next exception is, or that it ends nothing."""
        if found := _SPAWNED.match(line.text):
            self._spawned = int(found[1])
        if line.text.startswith(_IGNORED):
            self._ignored.add((line.rank, line.local))

    def feed(self, number: int, line: Line, stamp: Callable[[], timestamps.Stamp | None]) -> Line | None:
        """Takes a line; what of it is to be judged as a line of its own, None when nothing is."""
        if self._messages:
            self._attention -= 1
            if number > self._until or self._attention < 0:
                self._messages.clear()
        if (found := _RANKED_HEADER.search(line.text)) is not None:
            line = replace(line, rank=int(found["rank"]), text=tracebacks.HEADER)
        writer = own = (line.rank, line.local)
        if (begun := self._continued(writer, line.text)) is not None:
            writer, line = begun, replace(line, rank=begun[0], local=begun[1])
        reader = self._reader(writer)
        inside = reader.open
        if (bare := reader.bare(line.text)) != line.text:
            line = replace(line, text=bare)
        one = reader.feed(line.text, number) if not (several := tracebacks.inline(line.text, number)) else None
        for raised in several or filter(None, (one,)):
            self._raised(writer, raised, prefixes.named(line, reader.before), stamp())
        if several or one is not None:
            if own != writer:  # its message goes on without a prefix as well
                self.message(prefixes.Line("", *own), self._last_raised[writer], number)
            return None
        if not reader.open:
            return None if self._goes_on(writer, number, line) else line
        self._collector.cover(number)
        # Frames quote source code: words of an error in it mean nothing. Lines of others may come between.
        self._messages.pop(writer, None)
        if not inside:
            self._began = writer if writer != NAMELESS else None
        if not inside:  # the text before the header in its line is a summary, or a progress bar
            line = replace(line, text=line.text.partition(tracebacks.HEADER)[0])
        return None if tracebacks.quoted(line.text) else line

    def _continued(self, writer: Writer, text: str) -> Writer | None:
        """Whose traceback a line goes on with: that of a writer whose name stands before the header alone."""
        if writer == self._began or (writer == NAMELESS and tracebacks.HEADER in text):
            self._began = None  # its name stands before every line, or another traceback begins
        begun = self._began
        if begun is None or writer != NAMELESS or self._reader(NAMELESS).open:
            return None
        return begun if self._reader(begun).open else None

    def message(self, line: Line, at: int, number: int) -> None:
        """The message of an event may go on in the writer's next lines."""
        if len(self._messages) < MOST_WRITERS and self._attention > 0:
            reader = self._messages.setdefault((line.rank, line.local), messages.MessageReader())
            reader.begin(at, dated=line.dated)
            self._until = number + PATIENCE

    def finish(self, lines: int) -> None:
        """The log has ended: tracebacks whose end is missing."""
        for (rank, local), reader in self._readers.items():
            cut = reader.cut_short()
            if cut is None or lines - cut.line > CUT:
                continue
            line = prefixes.named(prefixes.Line("", rank, local), reader.before)
            rest: dict[str, Any] = {"soft": (rank, local) in self._ignored, "facts": _facts(cut)}
            signature = by_code("traceback-cut-short")
            self._collector.add(signature, cut.line, line, cut.text, origin=Origin.TRACEBACK, source=cut.frame, **rest)

    def _goes_on(self, writer: Writer, number: int, line: Line) -> bool:
        """Takes a line that may continue the writer's last message, and makes more of its event where it says more."""
        reader = self._messages.get(writer)
        if reader is None:
            return False
        at, text = reader.at, line.text
        if at is None or not reader.feed(text.strip(), dated=line.dated):
            del self._messages[writer]
            return False
        event = self._collector.events[at]
        self._collector.cover(number)
        found = messages.better(event.signature, text)
        if found is not None:
            self._collector.sharpen(at, found[0], number, text, {**pieces.values(found[1]), **watchdog.facts(text)})
        return found is not None or match(text) is None

    def _reader(self, writer: Writer) -> tracebacks.TracebackReader:
        if writer not in self._readers and len(self._readers) >= MOST_WRITERS:
            self._readers = {key: each for key, each in self._readers.items() if each.open}
        return self._readers.setdefault(writer, tracebacks.TracebackReader())

    def _raised(
        self,
        writer: Writer,
        raised: tracebacks.Raised,
        line: Line,
        time: timestamps.Stamp | None,
    ) -> None:
        found = match(raised.text)
        signature, facts = found if found is not None else (by_code("python-exception"), {})
        events = self._collector.events
        if self._spawned is not None and writer == (None, None):
            facts, self._spawned = {**facts, "local": str(self._spawned)}, None
            at = self._last_raised.get(writer)
            if at is not None and events[at].text in _WRAPPERS:  # the parent's, whose message goes on with this
                wrapper = by_code("launcher-wrapper")
                events[at] = replace(events[at], signature=wrapper, role=wrapper.role)
        if signature.role in (EventRole.CONTEXT, EventRole.NOISE):
            signature = by_code("python-exception")
        at = self._last_raised.get(writer)
        chained = (raised.chained or raised.original) and at is not None and at < len(events)
        if chained and at is not None:
            self._collector.chain(at, raised, signature, time)
            return
        ignored = writer in self._ignored
        self._ignored.discard(writer)
        before = len(events)
        self._collector.add(
            signature,
            raised.line,
            line,
            raised.text,
            time=time,
            facts={**pieces.values(facts), **_facts(raised)},
            origin=Origin.TRACEBACK,
            source=raised.frame,
            soft=ignored,
        )
        if len(events) > before:
            self._last_raised[writer] = before
            self._messages.pop(writer, None)
            if not ignored:
                self.message(replace(line, rank=writer[0], local=writer[1]), before, raised.line)


def _facts(raised: tracebacks.Raised) -> dict[str, Any]:
    return {
        **({"packages": raised.packages} if raised.packages else {}),
        **({"inner": raised.inner} if raised.inner else {}),
        **({"local": int(local[1])} if raised.own_command and (local := _LOCAL.search(raised.text)) else {}),
    }
