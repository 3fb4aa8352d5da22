"""One log → its events. Streams: memory does not grow with the log."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from amlstack.diagnose import exit_codes, timestamps
from amlstack.diagnose.events import Log, Origin
from amlstack.diagnose.reading import (
    counters,
    lines,
    logged_errors,
    messages,
    pieces,
    tracebacks,
    watchdog,
)
from amlstack.diagnose.reading.collector import Collector
from amlstack.diagnose.reading.exceptions import Exceptions
from amlstack.diagnose.reading.records import torchrun_table
from amlstack.diagnose.reading.writers import learned, prefixes, processes
from amlstack.diagnose.reading.writers.layout import Layout
from amlstack.diagnose.signatures import EventRole, by_code, hedged, match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amlstack.diagnose.reading.writers.prefixes import Line
    from amlstack.diagnose.signatures import Signature


MOST_LOOKED_BACK = 2000
"""Lines without a time for which the lines before are searched for one."""
_OURS = re.compile(r"(?:\[[^\]]*\]:? ?)*amlstack: ")
"""Begins what a rehearsal itself writes into a rank's log: no cause, whatever it quotes."""


class Scanner:
    """Reads one log line by line.

    Args:
        name: The log, as it is shown.
        rank: Its rank, when it is one rank's own log.
        node: Its node, when its folder names it.
    """

    __slots__ = (
        "_block", "_exceptions", "_looked_back", "_notes", "_table", "collector", "layout", "name", "node", "prefixes"
    )  # fmt: skip

    def __init__(self, name: str, rank: int | None = None, node: str | None = None) -> None:
        self.name, self.node = name, node
        self.layout = Layout(rank)
        self.collector = Collector(name, node)
        self._exceptions = Exceptions(self.collector)
        self._table = torchrun_table.TableReader()
        self._block = messages.BlockReader()
        self.prefixes = learned.Prefixes()
        self._notes = self._looked_back = 0

    def attentive(self) -> bool:
        """Whether every following line matters: inside a traceback, a table or a summary of several lines."""
        collector = self.collector  # asked for every line of a log: plain attributes, no calls
        return (
            self._table.open
            or self._block.open
            or collector.details > 0
            or collector.dumped > 0
            or self._exceptions.open
        )

    def _is_note(self, number: int, raw: str) -> bool:
        """Whether a line is no output of the run: on an excerpt's origin, above it, or by the rehearsal itself."""
        if number == self._notes + 1 and raw.startswith("#"):
            self._notes = number
            return True
        return _OURS.match(raw) is not None

    def feed(self, number: int, raw: str, before: Callable[[], Iterable[str]]) -> None:
        """Takes one line."""
        if self._is_note(number, raw):
            return
        line = self.prefixes.of(raw)
        self.layout.feed(line)
        self._exceptions.notice(line)

        def stamp() -> timestamps.Stamp | None:
            own = timestamps.find(raw[:160])
            if own is not None or self._looked_back >= MOST_LOOKED_BACK:
                return own
            self._looked_back += 1
            return timestamps.last(before())

        row = self._table.feed(line.text, number)
        if row is not None:
            self._row(row)
        if self._table.open:
            return
        if (block := self._block.feed(line.text, number)) is not None:
            self._whole(block, line, stamp)
        self.collector.follow(line)
        rest = self._exceptions.feed(number, line, stamp)
        if rest is not None:
            self._line(number, rest, stamp)

    def _whole(self, block: tuple[int, str], line: Line, stamp: Callable[[], timestamps.Stamp | None]) -> None:
        """The whole text of one of Open MPI's messages, unless its lines have shown the same already."""
        begin, text = block
        found = match(text)
        if found is None or found[0].role in (EventRole.NOISE, EventRole.CONTEXT) or "WARNING:" in text[:20]:
            return
        if not any(event.line >= begin and event.weight >= found[0].weight for event in self.collector.events[-8:]):
            facts = {**pieces.values(found[1]), "block": True}
            self.collector.add(found[0], begin, line, text, time=stamp(), facts=facts)

    def last_words(self, shown: tuple[int, Line] | None) -> None:
        """Takes the error that the program logged last: it counts where the log shows no other sign of an end."""
        if shown is None:
            return
        number, line = shown
        # What another event is about already, or a log with a better sign, gains nothing.
        better = (EventRole.CULPRIT, EventRole.VICTIM)
        if not any(event.role in better or event.line == number for event in self.collector.events):
            self.collector.add(by_code("logged-error"), number, line, line.text.strip())

    def finish(self, lines: int, parts: Iterable[bytes] = ()) -> Log:
        """The log with everything that was seen.

        Args:
            lines: How many it has.
            parts: Its begin and its end, which may tell the ranks of processes.
        """
        row = self._table.finish()
        if row is not None:
            self._row(row)
        self._exceptions.finish(lines)
        layout, events = self.layout, self.collector.events
        if any(event.rank is None and "pid" in event.facts for event in events):
            events = processes.ranked(events, processes.seen(parts), layout.world)
        if layout.launcher:  # each task is a launcher's, on a node of its own
            events = [each if "task" not in each.facts else replace(each, rank=None) for each in events]
        rank = None if layout.rank is None or not layout.launcher else str(layout.rank)
        return Log(
            name=self.name,
            lines=lines,
            rank=None if layout.launcher else layout.rank,
            node=rank if self.node is None else self.node,
            launcher=layout.launcher,
            ranks=frozenset(layout.ranks),
            ready=frozenset(layout.ready),
            world=layout.world,
            per_node=layout.per_node,
            events=tuple(sorted(events, key=lambda event: event.line)),
            ending=self.collector.ending(lines),
        )

    def _line(self, number: int, line: Line, stamp: Callable[[], timestamps.Stamp | None]) -> None:
        text = line.text.strip()
        found = match(text)
        if found is None:
            if tracebacks.definite(text) and not prefixes.soft(text):
                self._added(line, by_code("bare-exception"), number, text, time=stamp())
            return
        signature, facts = found
        if signature.role is EventRole.NOISE:
            return
        soft = signature.role in (EventRole.CULPRIT, EventRole.VICTIM) and prefixes.soft(text)
        read = pieces.values(facts)
        if signature.code in ("nccl-watchdog-timeout", "nccl-heartbeat"):
            read |= watchdog.facts(text)
        if (
            signature.role is EventRole.CULPRIT
            and not signature.ends
            and (hedged(text, signature) or tracebacks.DONE_WITHOUT.search(text))
        ):
            read["guess"] = True
        self._added(line, signature, number, text, time=stamp(), soft=soft, facts=read)

    def _added(self, line: Line, signature: Signature, number: int, text: str, **rest: Any) -> None:
        """Adds an event of a line; of one that reads like an exception the message may go on."""
        before = len(self.collector.events)
        self.collector.add(signature, number, line, text, **rest)
        if len(self.collector.events) > before and not rest.get("soft") and tracebacks.definite(text, lived=True):
            self._exceptions.message(line, before, number)

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
    first = next(blocks, None)
    begin = b"" if first is None else first[: processes.LONGEST]
    scanner.prefixes.sample(first or b"")
    for number, text, before in lines.interesting(
        chain(() if first is None else (first,), blocks), scanner.attentive, scanner.collector.cover_all
    ):
        if text:
            scanner.feed(number, text, before)
    of = scanner.prefixes.of
    scanner.last_words(logged_errors.last(tail.kept, number, of))
    log = scanner.finish(number, (begin, tail.kept))
    if not log.events:
        return replace(log, reached=counters.last(tail.kept, of))
    progress, finished = counters.progress(tail.kept, number, of), logged_errors.finished(tail.kept, number, of)
    return replace(log, reached=counters.last(tail.kept, of), progress=progress, finished=finished)
