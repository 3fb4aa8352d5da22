"""One log → its events. Streams: memory does not grow with the log."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amlstack.base.redaction import scrub
from amlstack.diagnose import exit_codes, timestamps
from amlstack.diagnose.events import Event, Log, Origin
from amlstack.diagnose.reading import counters, lines, prefixes, torchrun_table, tracebacks
from amlstack.diagnose.signatures import Role, by_code, match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amlstack.diagnose.reading.prefixes import Line
    from amlstack.diagnose.signatures import Signature

MOST_OF_ONE = 6
"""Events kept of one code and rank in one log: the first few show it, the count stands for the rest."""
MOST_EVENTS = 4000
MOST_WRITERS = 256
LONGEST_TEXT = 500

_LAUNCHER = re.compile(
    r"torch\.distributed\.(?:elastic|launcher|run)|torch/distributed/elastic|ChildFailedError|torchelastic"
    r"|\[launch\.py:|deepspeed\.launcher|accelerate\.commands\.launch|elastic_operator"
)
_WORLD = re.compile(r"\b(?:nranks|world[_ ]size)\b\D{1,4}(\d{1,6})\b", re.IGNORECASE)
_PER_NODE = re.compile(r"\bnproc_per_node\s*[:=]\s*(\d{1,4})\b")
_V1_RANK = re.compile(r"This is an MPI job\. Rank:(\d+)")
_WHO = re.compile(
    r"Process name: *\[+[^\]@]*[\]@,]+[^\d\]]*(?P<rank>\d+)\]|Process name: *(?P<rank2>\d+)\s*$"
    r"|Process name: *(?P<where>[\w.-]+)\[(?P<local>\d+)\]|Remote daemon *:.* on node (?P<node>\S+)"
    r"|^\s*hostname: +(?P<host>\S+)|(?:RANK (?P<rank3>\d+) )?PID \d+ RUNNING AT (?P<at>\S+)"
)
_SPAWNED = re.compile(r"^-- Process (\d{1,5}) terminated with the following error")
_IGNORED = ("Exception ignored in", "--- Logging error ---")
_WRAPPERS = ("Exception", "Exception:")
_CURRENT = "Current thread 0x"
MOST_FRAMES = 100
_STALLED_ROW = re.compile(r"^(?P<rank>\d{1,6}): ?\[")


@dataclass(slots=True)
class Scanner:
    """Reads one log line by line.

    Attributes:
        name: The log, as it is shown.
        rank: Its rank, when it is one rank's own log.
        node: Its node, when its folder names it.
    """

    name: str
    rank: int | None = None
    node: str | None = None
    events: list[Event] = field(default_factory=list)
    launcher: bool = False
    ranks: set[int] = field(default_factory=set)
    world: int | None = None
    per_node: int | None = None
    _readers: dict[tuple[int | None, int | None], tracebacks.Reader] = field(default_factory=dict)
    _table: torchrun_table.Reader = field(default_factory=torchrun_table.Reader)
    _kept: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    _last_raised: dict[tuple[int | None, int | None], int] = field(default_factory=dict)
    _details: int = 0
    _dumped: int = 0
    _named: tuple[int | None, str | None] = (None, None)
    _spawned: int | None = None
    _notes: int = 0
    _ignored: set[tuple[int | None, int | None]] = field(default_factory=set)

    def attentive(self) -> bool:
        """Whether every following line matters: inside a traceback, a table or a summary of several lines."""
        return (
            self._table.open
            or self._details > 0
            or self._dumped > 0
            or any(reader.open for reader in self._readers.values())
        )

    def feed(self, number: int, raw: str, before: Callable[[], str]) -> None:
        """Takes one line."""
        if number == self._notes + 1 and raw.startswith("#"):
            self._notes = number  # whoever kept the excerpt wrote above it where it comes from
            return
        line = prefixes.strip(raw)
        self._survey(line)

        def stamp() -> timestamps.Stamp | None:
            return timestamps.find(raw[:160]) or timestamps.last(before())

        row = self._table.feed(line.text, number)
        if row is not None:
            self._row(row)
        if self._table.open:
            return
        if self._details > 0:
            self._detail(line)
        self._dump(line)
        writer = (line.rank, line.local)
        reader = self._reader(writer)
        inside = reader.open
        if (bare := reader.bare(line.text)) != line.text:
            line = replace(line, text=bare)
        raised = tracebacks.inline(line.text, number) or reader.feed(line.text, number)
        if raised is not None:
            self._raised(writer, raised, prefixes.named(line, reader.before), stamp())
        elif reader.open:
            # Frames quote source code: words of an error in it mean nothing. Lines of others may come between.
            if not inside:  # the text before the header in its line is a summary, or a progress bar
                line = replace(line, text=line.text.partition(tracebacks.HEADER)[0])
            if not tracebacks.quoted(line.text):
                self._line(number, line, stamp)
        else:
            self._line(number, line, stamp)

    def _reader(self, writer: tuple[int | None, int | None]) -> tracebacks.Reader:
        if writer not in self._readers and len(self._readers) >= MOST_WRITERS:
            self._readers = {key: each for key, each in self._readers.items() if each.open}
        return self._readers.setdefault(writer, tracebacks.Reader())

    def finish(self, lines: int) -> Log:
        """The log with everything that was seen."""
        row = self._table.finish()
        if row is not None:
            self._row(row)
        return Log(
            name=self.name,
            lines=lines,
            rank=None if self.launcher else self.rank,
            node=self.node if self.node is not None or not self.launcher or self.rank is None else str(self.rank),
            launcher=self.launcher,
            ranks=frozenset(self.ranks),
            world=self.world,
            per_node=self.per_node,
            events=tuple(self.events),
        )

    def _survey(self, line: Line) -> None:
        if line.rank is not None and len(self.ranks) < MOST_EVENTS:
            self.ranks.add(line.rank)
        text = line.text
        if not self.launcher and _LAUNCHER.search(text):
            self.launcher = True
        if self.world is None and (found := _WORLD.search(text)):
            self.world = int(found[1])
        if self.per_node is None and (found := _PER_NODE.search(text)):
            self.per_node = int(found[1])
        if found := _SPAWNED.match(text):
            self._spawned = int(found[1])
        if text.startswith(_IGNORED):
            self._ignored.add((line.rank, line.local))
        if self.rank is None and (found := _V1_RANK.search(text)):
            self.rank = int(found[1])

    def _line(self, number: int, line: Line, stamp: Callable[[], timestamps.Stamp | None]) -> None:
        text = line.text.strip()
        found = match(text)
        if found is None:
            if tracebacks.definite(text) and not prefixes.soft(text):
                self._add(by_code("bare-exception"), number, line, text, time=stamp())
            return
        signature, facts = found
        if signature.role is Role.NOISE:
            return
        soft = signature.role in (Role.CULPRIT, Role.VICTIM) and prefixes.soft(text)
        self._add(signature, number, line, text, time=stamp(), soft=soft, facts=_read(facts))

    def _raised(
        self,
        writer: tuple[int | None, int | None],
        raised: tracebacks.Raised,
        line: Line,
        time: timestamps.Stamp | None,
    ) -> None:
        found = match(raised.text)
        signature, facts = found if found is not None else (by_code("python-exception"), {})
        if self._spawned is not None and writer == (None, None):
            facts, self._spawned = {**facts, "local": str(self._spawned)}, None
            at = self._last_raised.get(writer)
            if at is not None and self.events[at].text in _WRAPPERS:  # the parent's, whose message goes on with this
                wrapper = by_code("launcher-wrapper")
                self.events[at] = replace(self.events[at], signature=wrapper, role=wrapper.role)
        if signature.role in (Role.CONTEXT, Role.NOISE):
            signature = by_code("python-exception")
        at = self._last_raised.get(writer)
        chained = (raised.chained or raised.original) and at is not None and at < len(self.events)
        if chained and at is not None:
            self._chain(at, raised, signature, time)
            return
        ignored = writer in self._ignored
        self._ignored.discard(writer)
        before = len(self.events)
        self._add(
            signature,
            raised.line,
            line,
            raised.text,
            time=time,
            facts=_read(facts),
            origin=Origin.TRACEBACK,
            source=raised.frame,
            soft=ignored,
        )
        if len(self.events) > before:
            self._last_raised[writer] = before

    def _chain(self, at: int, raised: tracebacks.Raised, signature: Signature, time: timestamps.Stamp | None) -> None:
        """A later exception of a chain: the first is the root; the later one may know better what it means."""
        root = self.events[at]
        if raised.original:  # what a worker process sent: the first line was only its wrapper
            self.events[at] = replace(
                root, signature=signature, role=signature.role, text=_cut(raised.text), line=raised.line,
                source=raised.frame or root.source, time=root.time or time,
            )  # fmt: skip
            return
        final = {**root.facts, "finally": _cut(raised.text)}
        better = root.code == "python-exception" and signature.code != "python-exception"
        if better and signature.role is not Role.SUMMARY:
            root = replace(root, signature=signature, role=signature.role)
        self.events[at] = replace(root, facts=final, source=root.source or raised.frame)

    def _row(self, row: torchrun_table.Row) -> None:
        self.launcher = True
        self.ranks.add(row.rank if row.rank is not None else 0)
        line = prefixes.Line("", rank=row.rank, local=row.local, node=row.host)
        facts: dict[str, Any] = {"exit": row.code, "root": row.root, "error_file": row.error_file}
        time = timestamps.find(row.time)
        if row.last_reason:
            found = match(row.last_reason)
            signature = found[0] if found is not None else by_code("python-exception")
            frame = tracebacks.frame_in("\n".join(text[2:] for text in row.reason[1:]))
            self._add(
                signature, row.line, line, row.last_reason, time=time, facts=facts, origin=Origin.TABLE, source=frame
            )
            return
        text = f"rank {row.rank} (local rank {row.local}) ended with exit code {row.code}"
        signature = by_code(exit_codes.code_of(row.code) or "exit-summary")
        self._add(signature, row.line, line, text, time=time, facts=facts, origin=Origin.TABLE)

    def _detail(self, line: Line) -> None:
        """Lines after a summary that name mpirun's process, the lost daemon's node, the stalled ranks."""
        self._details -= 1
        last = len(self.events) - 1
        if last < 0:
            self._details = 0
            return
        event = self.events[last]
        if event.code == "horovod-stalled":
            if found := _STALLED_ROW.match(line.text.strip()):
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
        """Where an interpreter that a signal ended was: the stack of its current thread, the innermost frame first."""
        self._dumped -= self._dumped > 0
        if not self.events or self.events[-1].signature.kind != "crash":
            return
        if _CURRENT in line.text:
            self._dumped = MOST_FRAMES
        elif self._dumped and (frame := tracebacks.dumped(line.text)):
            self.events[-1] = replace(self.events[-1], source=frame)
            self._dumped = 0

    def _add(
        self, signature: Signature, number: int, line: Line, text: str, *, origin: Origin = Origin.LINE, **rest: Any
    ) -> None:
        facts = rest.pop("facts", {})
        signature, facts = exit_codes.settle(signature, facts)
        rank = facts.get("rank", line.rank)
        node = facts.get("node") or line.node or prefixes.inline_node(text)
        ended = "signal" in facts or text.startswith("signal ")
        if self._details > 0 and ended and rank is None and node is None:
            rank, node = self._named  # the lines before named the process
        if rank is None:
            rank = prefixes.inline_rank(text)
        local = facts.get("local", line.local)
        key = (signature.code, rank, local, origin is Origin.TRACEBACK)
        self._kept[key] += 1
        if self._kept[key] > MOST_OF_ONE or len(self.events) >= MOST_EVENTS:
            return
        self.events.append(
            Event(
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
        )
        if signature.code in ("mpi-process-failed", "mpi-daemon-lost", "horovod-stalled"):
            self._details, self._named = 12, (rank, node)


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
    tail = counters.Tail()
    for number, text, before in lines.interesting(lines.whole_lines(tail.keep(chunks)), scanner.attentive):
        if text:
            scanner.feed(number, text, before)
    return replace(scanner.finish(number), reached=counters.last(tail.kept))


def _cut(text: str) -> str:
    return scrub(text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…")


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
