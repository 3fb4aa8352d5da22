"""One log → its events. Streams: memory does not grow with the log."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from amlstack.diagnose import exit_codes, timestamps
from amlstack.diagnose.events import Log, Origin
from amlstack.diagnose.reading import counters, lines, prefixes, torchrun_table, tracebacks
from amlstack.diagnose.reading.collector import MOST_EVENTS, Collector
from amlstack.diagnose.reading.layout import Layout
from amlstack.diagnose.signatures import EventRole, by_code, match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amlstack.diagnose.reading.prefixes import Line

    Writer = tuple[int | None, int | None]

MOST_WRITERS = 256
_OURS = re.compile(r"(?:\[[^\]]*\]:? ?)*amlstack: ")
"""Begins what a rehearsal itself writes into a rank's log: no cause, whatever it quotes."""
_SPAWNED = re.compile(r"^-- Process (\d{1,5}) terminated with the following error")
_IGNORED = ("Exception ignored in", "--- Logging error ---")
_WRAPPERS = ("Exception", "Exception:")


class Scanner:
    """Reads one log line by line.

    Args:
        name: The log, as it is shown.
        rank: Its rank, when it is one rank's own log.
        node: Its node, when its folder names it.
    """

    __slots__ = (
        "_ignored", "_last_raised", "_notes", "_readers", "_spawned", "_table", "collector", "layout", "name", "node"
    )  # fmt: skip

    def __init__(self, name: str, rank: int | None = None, node: str | None = None) -> None:
        self.name, self.node = name, node
        self.layout = Layout(rank)
        self.collector = Collector(name, node)
        self._readers: dict[Writer, tracebacks.TracebackReader] = {}
        self._table = torchrun_table.TableReader()
        self._last_raised: dict[Writer, int] = {}
        self._spawned: int | None = None
        self._notes = 0
        self._ignored: set[Writer] = set()

    def attentive(self) -> bool:
        """Whether every following line matters: inside a traceback, a table or a summary of several lines."""
        collector = self.collector  # asked for every line of a log: plain attributes, no calls
        return (
            self._table.open
            or collector.details > 0
            or collector.dumped > 0
            or any(reader.open for reader in self._readers.values())
        )

    def _is_note(self, number: int, raw: str) -> bool:
        """Whether a line is no output of the run: on an excerpt's origin, above it, or by the rehearsal itself."""
        if number == self._notes + 1 and raw.startswith("#"):
            self._notes = number
            return True
        return _OURS.match(raw) is not None

    def feed(self, number: int, raw: str, before: Callable[[], str]) -> None:
        """Takes one line."""
        if self._is_note(number, raw):
            return
        line = prefixes.strip(raw)
        self.layout.feed(line)
        if found := _SPAWNED.match(line.text):
            self._spawned = int(found[1])
        if line.text.startswith(_IGNORED):
            self._ignored.add((line.rank, line.local))

        def stamp() -> timestamps.Stamp | None:
            return timestamps.find(raw[:160]) or timestamps.last(before())

        row = self._table.feed(line.text, number)
        if row is not None:
            self._row(row)
        if self._table.open:
            return
        self.collector.follow(line)
        writer = (line.rank, line.local)
        reader = self._reader(writer)
        inside = reader.open
        if (bare := reader.bare(line.text)) != line.text:
            line = replace(line, text=bare)
        raised = tracebacks.inline(line.text, number) or reader.feed(line.text, number)
        if raised is not None:
            self._raised(writer, raised, prefixes.named(line, reader.before), stamp())
        elif reader.open:
            self.collector.cover(number)
            # Frames quote source code: words of an error in it mean nothing. Lines of others may come between.
            if not inside:  # the text before the header in its line is a summary, or a progress bar
                line = replace(line, text=line.text.partition(tracebacks.HEADER)[0])
            if not tracebacks.quoted(line.text):
                self._line(number, line, stamp)
        else:
            self._line(number, line, stamp)

    def _reader(self, writer: Writer) -> tracebacks.TracebackReader:
        if writer not in self._readers and len(self._readers) >= MOST_WRITERS:
            self._readers = {key: each for key, each in self._readers.items() if each.open}
        return self._readers.setdefault(writer, tracebacks.TracebackReader())

    def finish(self, lines: int) -> Log:
        """The log with everything that was seen."""
        row = self._table.finish()
        if row is not None:
            self._row(row)
        layout = self.layout
        rank = None if layout.rank is None or not layout.launcher else str(layout.rank)
        return Log(
            name=self.name,
            lines=lines,
            rank=None if layout.launcher else layout.rank,
            node=rank if self.node is None else self.node,
            launcher=layout.launcher,
            ranks=frozenset(layout.ranks),
            world=layout.world,
            per_node=layout.per_node,
            events=tuple(sorted(self.collector.events, key=lambda event: event.line)),
            ending=self.collector.ending(lines),
        )

    def _line(self, number: int, line: Line, stamp: Callable[[], timestamps.Stamp | None]) -> None:
        text = line.text.strip()
        found = match(text)
        if found is None:
            if tracebacks.definite(text) and not prefixes.soft(text):
                self.collector.add(by_code("bare-exception"), number, line, text, time=stamp())
            return
        signature, facts = found
        if signature.role is EventRole.NOISE:
            return
        soft = signature.role in (EventRole.CULPRIT, EventRole.VICTIM) and prefixes.soft(text)
        self.collector.add(signature, number, line, text, time=stamp(), soft=soft, facts=_read(facts))

    def _raised(
        self,
        writer: Writer,
        raised: tracebacks.Raised,
        line: Line,
        time: timestamps.Stamp | None,
    ) -> None:
        found = match(raised.text)
        signature, facts = found if found is not None else (by_code("python-exception"), {})
        events = self.collector.events
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
            self.collector.chain(at, raised, signature, time)
            return
        ignored = writer in self._ignored
        self._ignored.discard(writer)
        before = len(events)
        self.collector.add(
            signature,
            raised.line,
            line,
            raised.text,
            time=time,
            facts={**_read(facts), **({"packages": raised.packages} if raised.packages else {})},
            origin=Origin.TRACEBACK,
            source=raised.frame,
            soft=ignored,
        )
        if len(events) > before:
            self._last_raised[writer] = before

    def _row(self, row: torchrun_table.FailedProcess) -> None:
        self.layout.launcher = True
        self.layout.ranks.add(row.rank if row.rank is not None else 0)
        line = prefixes.Line("", rank=row.rank, local=row.local, node=row.host)
        facts: dict[str, Any] = {"exit": row.code, "root": row.root, "error_file": row.error_file}
        time = timestamps.find(row.time)
        if row.last_reason:
            found = match(row.last_reason)
            signature = found[0] if found is not None else by_code("python-exception")
            frame = tracebacks.frame_in("\n".join(text[2:] for text in row.reason[1:]))
            self.collector.add(
                signature, row.line, line, row.last_reason, time=time, facts=facts, origin=Origin.TABLE, source=frame
            )
            return
        text = f"rank {row.rank} (local rank {row.local}) ended with exit code {row.code}"
        signature = by_code(exit_codes.code_of(row.code) or "exit-summary")
        self.collector.add(signature, row.line, line, text, time=time, facts=facts, origin=Origin.TABLE)


def scan(name: str, chunks: Iterable[bytes], *, rank: int | None = None, node: str | None = None) -> Log:
    """Reads a log.

    Args:
        name: As it is shown.
        chunks: Its bytes, UTF-8 or nearly, in pieces of any size.
        rank: The rank whose log it is, when the file's name has it.
        node: The node it comes from, when the folder's name has it.
    """
    scanner = Scanner(name, rank, node)
    number = 0
    tail = counters.LogTail()
    blocks = lines.whole_lines(tail.keep(chunks))
    for number, text, before in lines.interesting(blocks, scanner.attentive, scanner.collector.cover):
        if text:
            scanner.feed(number, text, before)
    log = scanner.finish(number)
    progress = counters.progress(tail.kept, number) if log.events else {}
    return replace(log, reached=counters.last(tail.kept), progress=progress)


def _read(facts: dict[str, str]) -> dict[str, Any]:
    """Named pieces of a line as values: numbers, and lists of ranks."""
    read: dict[str, Any] = {}
    for name, value in facts.items():
        key = name.rstrip("0123456789")
        if key == "missing":
            read[key] = tuple(int(each) for each in re.findall(r"\d+", value)[:MOST_EVENTS])
        elif re.fullmatch(r"-?\d{1,12}", value):
            read[key] = int(value)
        else:
            read[key] = value.strip(".,:;")
    if not isinstance(read.get("rank", 0), int):
        del read["rank"]
    if "node" in read:
        read["node"] = str(read["node"])
    return read
