"""Evidence of a run: all that its logs show, with consequences separated from causes."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amlstack.code_reading.starters import PROGRAMS, STARTERS
from amlstack.diagnose.diagnosis import Victim
from amlstack.diagnose.events import Event, Log, Origin, comparable
from amlstack.diagnose.reading.last_words import logged_as_error
from amlstack.diagnose.reading.tracebacks import COMMUNICATION, GIVES_UP, definite
from amlstack.diagnose.signatures import EventRole, by_code

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from amlstack.diagnose.flight_recorder import Exchange, Flight, Group

CODE = "flight-recorder-waits"


def waits(logs: Sequence[Log]) -> list[Event]:
    """An event for each rank that waits for ranks that did not come, or that are still in an earlier collective."""
    flights = {log.flight.rank: (log, log.flight) for log in logs if log.flight is not None}
    names = sorted({name for _, flight in flights.values() for name in flight.groups})
    behind: dict[str, tuple[int, ...]] = {}
    for name in names:
        ranks = {rank: flight.groups[name] for rank, (_, flight) in flights.items() if name in flight.groups}
        if missing := _behind(ranks):
            behind[name] = missing
    alone = {rank: flight for rank, (_, flight) in flights.items()}
    collective, exchanged = _in_collectives(behind, alone), _in_exchanges(alone)
    missing = _roots(collective, exchanged, alone)
    if not missing:
        return []
    events = []
    for rank in sorted(set(flights) - set(missing)):
        log, flight = flights[rank]
        if (group := _waited(flight.groups, behind)) is not None:
            text = f"rank {rank} waits in {group.operation} number {group.pending} of the group {group.description}"
            events.append(_event(log, rank, text, {"missing": missing, "group": group.name, "seq": group.pending}))
        elif exchange := next(iter(exchanged.get(rank, {}).values()), None):
            way = "send to" if exchange.sends else "receive from"
            text = f"rank {rank} waits to {way} rank {exchange.peer} in the group {exchange.group}"
            events.append(_event(log, rank, text, {"missing": missing}))
    return events


def _behind(ranks: Mapping[int, Group]) -> tuple[int, ...]:
    """The few members of one group that never enqueued what others wait for, or are in an earlier one than these."""
    waiting = {rank: group.pending for rank, group in ranks.items() if group.pending is not None}
    if not waiting:
        return ()
    first = min(waiting.values())
    members = {member for group in ranks.values() for member in group.members} or set(ranks)
    never = {rank for rank in members if rank not in ranks or ranks[rank].last < first}
    stuck = {rank for rank, at in waiting.items() if at == first} if len(set(waiting.values())) > 1 else set()
    few = never or stuck
    return tuple(sorted(few)) if 0 < len(few) * 2 <= len(members) else ()


def _in_collectives(behind: Mapping[str, tuple[int, ...]], flights: Mapping[int, Flight]) -> dict[int, set[int]]:
    """Ranks that wait in a collective → those that they wait for."""
    found: dict[int, set[int]] = {}
    for name, ranks in behind.items():
        for rank, flight in flights.items():
            if rank not in ranks and name in flight.groups and flight.groups[name].pending is not None:
                found.setdefault(rank, set()).update(ranks)
    return found


def _in_exchanges(flights: Mapping[int, Flight]) -> dict[int, dict[int, Exchange]]:
    """Ranks that wait for the other end of point-to-points → that rank and what they wait for.

    Of messages of which both ends are pending the transfer is under way, and nobody waits for anybody.
    """
    pending = {(rank, each.peer, each.sends): each for rank, flight in flights.items() for each in flight.exchanges}
    found: dict[int, dict[int, Exchange]] = {}
    for (rank, peer, sends), exchange in pending.items():
        other = pending.get((peer, rank, not sends))
        if exchange.count > (0 if other is None else other.count):
            found.setdefault(rank, {}).setdefault(peer, exchange)
    return found


def _roots(
    collective: Mapping[int, set[int]], exchanged: Mapping[int, Mapping[int, Exchange]], flights: Mapping[int, Flight]
) -> tuple[int, ...]:
    """Of the ranks that others wait for the few that wait for nobody themselves.

    A receive that was posted ahead waits for nobody yet: where point-to-points make each wait for another, the
    collectives alone decide, and where these do so too, all that they name.
    """
    every = {rank: {*collective.get(rank, ()), *exchanged.get(rank, ())} for rank in (*collective, *exchanged)}
    for waiting in (every, collective):
        awaited = {rank for ranks in waiting.values() for rank in ranks}
        roots = awaited - set(waiting)
        if roots and len(roots) * 2 <= len(awaited | set(flights)):
            return tuple(sorted(roots))
    return tuple(sorted({rank for ranks in collective.values() for rank in ranks}))


def _waited(groups: Mapping[str, Group], behind: Mapping[str, tuple[int, ...]]) -> Group | None:
    return next((groups[name] for name in behind if name in groups and groups[name].pending is not None), None)


def _event(log: Log, rank: int, text: str, facts: dict[str, Any]) -> Event:
    signature = by_code(CODE)
    return Event(signature, log.name, 1, text, signature.role, Origin.RECORD, rank=rank, node=log.node, facts=facts)


ENDS = frozenset({"job-timeout", "job-cancelled", "terminated-from-outside"})
"""Ends from outside: often of a run in which something hung."""
OUTSIDE = ENDS | {"node-preempted", "node-failed", "hangup"}
"""The deeds of nobody in the run: of signs that count alike these come last."""
LAST = 10
"""Lines before a log's end in which a definite cause needs no other sign of an end: what is shown may be cut there."""
SAID = 4
"""Lines after a line that holds a definite cause among other words, in which the program may still report its end."""
EXCERPT = 40
"""Lines of a log without any progress that is likely a piece cut out because of what it shows."""
FAR = 2000
"""Lines after an exception, none of them progress, that a message and what others still print may have."""
WENT_ON = 2
"""Lines of progress of the same writer after which a sign was no end."""
OTHERS_WENT_ON = 20
"""The same where a line does not name its writer, which may have been another one."""
BEGAN_AFTER = 5
"""The same where no progress came before the sign: no training takes its first steps without all of its ranks."""


def gated(events: Iterable[Event], logs: Mapping[str, Log]) -> list[Event]:
    """The events, those that ended nothing as notes.

    Args:
        events: With ranks and nodes, in any order.
        logs: By name.
    """
    events = list(events)
    signs = {(event.file, event.line) for event in events}
    near = [event.origin is Origin.RECORD or _near(event, logs[event.file], signs) for event in events]
    ended = any(close and shows_end(event) for event, close in zip(events, near, strict=True))
    counts = [
        _counts(event, logs[event.file], ended=ended, near=close)
        and (ended or event.code not in _OF_A_SHELL or not _ran_beside(event, logs))
        for event, close in zip(events, near, strict=True)
    ]
    why = [
        event
        for event, each in zip(events, counts, strict=True)
        if each and event.role in (EventRole.CULPRIT, EventRole.VICTIM) and not event.soft
    ]
    if ended and not why:
        # A run ended, and nothing near its end says why: what a long message or a listing follows is not far from it.
        counts = [each or _last_exception(event, logs[event.file]) for event, each in zip(events, counts, strict=True)]
    counted = [
        event if each else replace(event, role=EventRole.NOTE) for event, each in zip(events, counts, strict=True)
    ]
    return [_whole(event, logs[event.file], counted) for event in counted]


def _whole(event: Event, log: Log, events: Iterable[Event]) -> Event:
    """An exception without its header, where it ends its rank's output and no traceback of that rank is seen."""
    if event.code != "bare-exception" or event.role is not EventRole.CULPRIT or event.weight > 1:
        return event
    whole = any(
        each.origin is Origin.TRACEBACK and (each.file, each.rank) == (event.file, event.rank) for each in events
    )
    went_on = any(line > event.line for rank in (event.rank, None) for line in log.progress.get(rank, ()))
    return event if whole or went_on else replace(event, signature=replace(event.signature, weight=2))


def _last_exception(event: Event, log: Log) -> bool:
    """An exception of a traceback after which nobody came forward, however many lines follow."""
    return (
        event.origin is Origin.TRACEBACK
        and event.role is EventRole.CULPRIT
        and not event.soft
        and "guess" not in event.facts
        and log.lines - event.line <= FAR
        and not any(line > event.line for lines in log.progress.values() for line in lines)
        and not any(line > event.line for line in log.finished.values())
    )


def shows_end(event: Event) -> bool:
    """True where an event shows that a process ended: a warning, or a line that may be harmless, does not."""
    if event.soft or "guess" in event.facts:
        return False
    if event.role in (EventRole.VICTIM, EventRole.SUMMARY):
        return True
    return event.role is EventRole.CULPRIT and _by_itself(event)


def _by_itself(event: Event) -> bool:
    """True where the event itself is an end: an uncaught exception, an exit code, a signal, the service's refusal."""
    signature = event.signature
    killed = signature.kind in ("signal", "crash", "stop") or "signal" in event.facts or "over" in event.facts
    return event.origin is not Origin.LINE or signature.ends or killed or GIVES_UP.search(event.text) is not None


def _counts(event: Event, log: Log, *, ended: bool, near: bool) -> bool:
    if event.role in (EventRole.CONTEXT, EventRole.NOTE, EventRole.NOISE):
        return True  # they are no end anyway
    if not near or event.text.startswith("# "):  # a comment of a script that the log shows
        return False
    unsaid = "guess" in event.facts and not (ended and event.facts["guess"] == "raised")
    if unsaid or (event.soft and event.code == "bare-exception" and log.lines > EXCERPT):
        return False
    if event.role is not EventRole.CULPRIT or ended:
        return True
    if event.code == "missing-launcher" and _ran(event, log):
        return False
    if _OF_SCRIPT.search(event.text) and len(log.ordinary) - bisect_right(log.ordinary, event.line) > SAID:
        return False  # what a script lacks does not end it, and its program wrote on
    if event.code == "nccl-warning" and log.spoken - event.line > WENT_ON:
        return False
    first = str(event.facts.get("message", event.text))
    raised_so = definite(first) or _OF_R.match(first) is not None
    raised = event.weight >= 3 or raised_so
    went_on = event.text.startswith("Error: ") and any(line > event.line for line in log.progress.get(None, ()))
    last = log.lines - event.line <= LAST and not went_on
    if log.lines <= EXCERPT and not log.progress:
        if event.soft:
            return last and event.weight >= 3 and not _HARMLESS.search(event.text)
        known = event.code != "bare-exception" and definite(first, lived=True)
        mere = event.origin is Origin.LINE and not (known or raised_so or _by_itself(event))
        wrote = len(log.ordinary) - bisect_right(log.ordinary, event.line)
        if mere and log.lines - event.line > LAST and wrote > WENT_ON:
            return False  # a mere line, after which the program wrote on
        return raised or known or event.weight >= 2 or logged_as_error(event.text)
    raised |= event.line >= log.spoken and logged_as_error(event.text)
    whole = logged_as_error(event.text) or _by_itself(event) or definite(first, lived=True)
    return last and raised and not event.soft and (whole or log.spoken <= event.line + SAID)


_OF_R = re.compile(r"[> ]*Error in .{1,200}?\) ?: \S")
"""Begins what R prints of an error that its program did not catch."""
_HARMLESS = re.compile(r"Warning: |^W tensorflow/|^[\[\d:., -]{0,40}INFO\b|\bIgnore\b")
"""Warnings of Python's own, notes that quote what they work on, and what a program does without."""


_OF_A_SHELL = frozenset({"missing-launcher", "environment-module-unknown"})
"""Signs of the script that starts a program: they ended nothing where it came forward, be it on its other stream."""
_STREAM = re.compile(r"(?:std)?(?:out(?:put)?|err(?:or)?)(?=\.|$)")
_OF_SCRIPT = re.compile(r"(?:: line \d+|^\w*sh(?=: -)): (?P<name>[^:]+): ")
_NOT_FOUND = re.compile(r"(?:^|: )(?P<name>[^: ]+)(?:: [^:]+$|'? is not recognized as )")
_REST = re.compile(r"-|.*[=,)]|..?$")


def _ran(event: Event, log: Log) -> bool:
    """True where a script goes on behind its program with a word that starts none: the rest of a broken command."""
    if (found := _OF_SCRIPT.search(event.text)) is None or found["name"] in (*PROGRAMS, *STARTERS):
        return False
    rest = log.lines > EXCERPT and _REST.match(found["name"])
    return bool(rest or log.finished or any(min(lines) < event.line for lines in log.progress.values()))


def _ran_beside(event: Event, logs: Mapping[str, Log]) -> bool:
    """True where a program's other stream shows that it came forward."""
    name = _STREAM.sub("", event.file)
    return any(log.reached and log.name != event.file and _STREAM.sub("", log.name) == name for log in logs.values())


_DEBUGGED = re.compile(r"(?:Program|Thread \d+ \S+) received signal SIG")
"""Begins what gdb says where it stops a program: what follows is a stack, however long, or its user's commands."""


def _near(event: Event, log: Log, signs: Collection[tuple[str, int]]) -> bool:
    """True where its log only ends from the event on, as far as its writer is concerned."""
    if event.line < log.ending and not _DEBUGGED.match(event.text):
        return False
    over = event.role is EventRole.SUMMARY or "stops" in event.facts
    if not over and _finished(log, event.rank) > event.line:
        return False
    if event.facts.get("caught") and not any(name == log.name and line > event.line for name, line in signs):
        wrote = len(log.ordinary) - bisect_right(log.ordinary, event.line)
        if (wrote > OTHERS_WENT_ON and _alone(log)) or (
            event.facts["caught"] == "library" and log.lines - event.line >= LAST
        ):
            return False  # who caught it wrote on
    if "aside" in event.facts and 0 < max(log.finished.values(), default=0) < event.line:
        return False  # a thread of a program that had finished
    own = log.progress.get(event.rank, ()) if event.rank is not None else ()
    if sum(line > event.line for line in own) >= WENT_ON:
        return False
    # `batch 64 does not fit (CUDA out of memory)` counts nothing.
    lines = [line for line in log.progress.get(None, ()) if (log.name, line) not in signs]
    after = sum(line > event.line for line in lines)
    if log.rank is not None:
        return after < WENT_ON
    return after < (BEGAN_AFTER if after == len(lines) else OTHERS_WENT_ON)


def _finished(log: Log, rank: int | None) -> int:
    """The line on which the writer says that its run is finished; of one without a name where nobody has one."""
    if rank is None and (log.ranks or set(log.finished) - {None}):
        return 0
    return max(log.finished.get(rank, 0), log.finished.get(None, 0) if log.rank is not None else 0)


CONSEQUENCE = 30
"""Lines between a victim's line and a weak sign of the same rank that still belong together."""
MESSAGE = 400
"""Lines after a traceback's end in which its message may go on: TensorFlow prints whole graphs."""
OUTLIVED = 500
"""Lines that a rank does not write after an exception that ends it."""
APART = 100
"""The same after a line that only mentions a failure."""
MOST_SAID = 5
"""Lines after an exception that may be its message though they are not indented."""
SETTLED = 2.0
"""Seconds after a process's end in which the launcher's other codes may be earlier ones."""
WAITED = frozenset(
    (CODE, "nccl-watchdog-timeout", "nccl-heartbeat", "gloo-timeout", "barrier-not-joined", "horovod-stalled")
) | {"jax-task-lost"}
"""Victims that waited for other ranks."""
_LONG_MESSAGE = ("graph execution error", "unknownerror", "internalerror", "abortederror")

Writer = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class _Victims:
    """Victims of a run: by file and rank, all that waited, and lines that continue one."""

    of: dict[Writer, list[Event]]
    all: tuple[Event, ...]
    said: frozenset[tuple[str, int]]
    waiting: frozenset[int | None]
    nameless: frozenset[str]
    timed_out: frozenset[Writer]
    first_timeout: dict[str, int]


def demoted(events: Iterable[Event]) -> list[Event]:
    """Exceptions and weak signs that only continue, or follow, what a victim logged are victims too."""
    events = list(events)
    victims = _victims(events)
    return _outlived(_after_the_end([_with_role(event, victims) for event in events]))


def _after_the_end(events: list[Event]) -> list[Event]:
    """A launcher's exit codes after the end that led to them, and ends of an earlier start, as notes."""
    raised = [
        each
        for each in events
        if _complete(each) or (each.code == "wrong-arguments" and each.role is EventRole.CULPRIT)
    ]
    exits = [
        each
        for each in events
        if each.role is EventRole.SUMMARY and 0 < each.facts.get("exit", each.code == "mpi-process-failed") < 128
    ]
    stopped = [each for each in events if each.code == "interrupted" and each.origin is Origin.TRACEBACK]
    again = [each for each in stopped if each.source is not None and each.source.own]
    return [
        replace(event, role=EventRole.NOTE)
        if event.role is EventRole.CULPRIT and event.origin is Origin.LINE and _led_to(event, raised, exits, again)
        else event
        for event in events
    ]


def _led_to(event: Event, raised: list[Event], exits: list[Event], again: list[Event]) -> bool:
    if event.code == "missing-launcher" and (found := _NOT_FOUND.search(event.text)):  # and the script went on
        return any(each.file == event.file and found["name"] not in each.shown for each in raised)
    if event.signature.kind == "crash":  # it crashed when it was ended: its, or another one's, exception was before
        return any(each.file == event.file and 0 < event.line - each.line <= OUTLIVED for each in raised)
    if "exit" in event.facts and "signal" in event.facts:
        moments = [(each.time, comparable([each.time, event.time])) for each in exits if each.time and event.time]
        return any(both is not None and both[1] - both[0] > SETTLED for _, both in moments)
    # Who has ended is not interrupted any more: that was started later.
    ended = event.signature.ends and event.signature.shared and event.rank is None
    return ended and any(each.file == event.file and each.line > event.line for each in again)


def _complete(event: Event) -> bool:
    """An exception with its traceback that ends its process."""
    whole = event.role is EventRole.CULPRIT and event.origin is Origin.TRACEBACK and event.weight > 1
    return whole and not event.soft and "aside" not in event.facts


def _victims(events: Iterable[Event]) -> _Victims:
    by_writer: dict[Writer, list[Event]] = {}
    for event in events:
        if event.role is EventRole.VICTIM:
            by_writer.setdefault((event.file, event.rank), []).append(event)
    everyone = tuple(event for each in by_writer.values() for event in each)
    waiting = [event for event in everyone if event.signature.kind != "stop"]
    return _Victims(
        of=by_writer,
        all=everyone,
        said=frozenset((event.file, event.line) for event in everyone if event.text.startswith("what()")),
        waiting=frozenset(event.rank for event in waiting),
        nameless=frozenset(event.file for event in waiting if event.rank is None),
        timed_out=frozenset((event.file, event.rank) for event in everyone if event.code in WAITED),
        first_timeout={
            event.file: event.line for event in sorted(everyone, key=lambda event: -event.line) if event.code in WAITED
        },
    )


_PIPE_OF_PARENT = re.compile(r"PermissionError: \[WinError 5\].*\n.*multiprocessing[/\\]", re.DOTALL)
"""The end of a child process on Windows whose parent has ended before it took over its pipe."""
_ORPHAN = re.compile(
    r"killed by signal: Terminated\.\n|multiprocessing[/\\]spawn\.py$|^EOFError:?\n.*[/\\]connection\.py$"
)
"""Ends of a data loader's worker whose process has ended, or was stopped with it."""


def _with_role(event: Event, victims: _Victims) -> Event:
    """An event as a victim or a summary, where it only follows from another rank's end."""
    if _aborted_while_waiting(event, victims) or (
        event.code == "exit-without-reason" and event.rank in victims.waiting
    ):
        return replace(event, role=EventRole.VICTIM)
    stops = [each for each in victims.all if each.signature.kind == "stop" and each.file == event.file]
    told = any(each.soft and 0 < event.line - each.line <= CONSEQUENCE for each in stops)
    if told and event.role is EventRole.SUMMARY and event.origin is Origin.TRACEBACK:
        return replace(event, role=EventRole.NOTE)  # a server lost the engine that it had told to stop
    if _PIPE_OF_PARENT.match(f"{event.text}\n{event.facts.get('inner', '')}"):
        return replace(event, role=EventRole.VICTIM)
    if _ORPHAN.search(f"{event.text}\n{event.facts.get('inner', '')}") and any(
        each.line < event.line or event.text.startswith("EOFError") for each in stops
    ):
        return replace(event, role=EventRole.VICTIM)
    if event.role is not EventRole.CULPRIT or event.weight > 2:
        return event
    inner = str(event.facts.get("inner", ""))
    if event.code == "traceback-cut-short" and (COMMUNICATION.search(inner) or victims.waiting - {event.rank}):
        return replace(event, role=EventRole.SUMMARY)  # it failed; whether by itself, its end would say
    waited = (event.file, event.rank) in victims.timed_out or (
        event.rank is None and event.line > victims.first_timeout.get(event.file, event.line)
    )
    if waited and (COMMUNICATION.search(inner) or event.code == "loss-not-finite"):
        # It waited in vain before: what the library then raises, and numbers that never came, follow from that.
        return replace(event, role=EventRole.VICTIM)
    for victim in victims.of.get((event.file, event.rank), ()):
        if _goes_on_with(event, victim):
            return replace(event, role=EventRole.VICTIM, signature=victim.signature)
    return event


def _aborted_while_waiting(event: Event, victims: _Victims) -> bool:
    """The watchdog of a rank that waited in vain aborts it; what() of an abort may be about another rank's end."""
    if event.code != "aborted":
        return False
    if (event.file, event.line + 1) in victims.said:
        return True
    of_waiting = event.rank is None or event.rank in victims.waiting or event.file in victims.nameless
    # Ranks wait for minutes until they time out: one that had aborted by itself would have been noticed long before.
    timed_out = event.line > victims.first_timeout.get(event.file, event.line)
    return _exited(event) and bool(victims.waiting) and (of_waiting or timed_out)


def _exited(event: Event) -> bool:
    return event.origin in (Origin.TABLE, Origin.RECORD) or "exit" in event.facts


def _goes_on_with(event: Event, victim: Event) -> bool:
    """True where a victim's words of the same writer are what an exception or a weak sign is about."""
    if (_exited(event) or "over" in event.facts) and victim.signature.kind == "stop":
        return False  # the others are stopped because of this end
    inner = str(event.facts.get("inner", ""))
    if event.code == "python-exception" and inner and event.source is not None and inner == event.source.file:
        return False  # the program itself raised it: whatever its process says later is a consequence
    raised = event.code == "python-exception" and bool(inner) and not COMMUNICATION.search(inner)
    apart = victim.line - event.line
    weak = event.weight <= 1 and abs(apart) <= CONSEQUENCE and not event.signature.blameless
    goes_on = 0 < apart <= MESSAGE and any(word in event.text.lower() for word in _LONG_MESSAGE)
    # A launcher that stops the others afterwards is no sign of what ended this one.
    own = victim.origin is Origin.LINE and victim.signature.kind != "stop"
    return weak or goes_on or (event.code == "python-exception" and not raised and 0 < apart <= 12 and own)


def _outlived(events: list[Event]) -> list[Event]:
    """Exceptions after which their rank went on for long, until another one: caught and printed, not fatal."""
    last: dict[tuple[str, int | None], int] = {}
    own: dict[tuple[str, int | None], int] = {}
    for event in events:
        if event.role is EventRole.CULPRIT and event.origin is Origin.TRACEBACK:
            key = (event.file, event.rank)
            last[key] = max(event.line, last.get(key, 0))
            if event.code == "python-exception" and _complete(event):
                own[key] = last[key]
    return [replace(event, soft=True) if _lived_through(event, last, own) else event for event in events]


def _lived_through(event: Event, last: Mapping[Writer, int], own: Mapping[Writer, int]) -> bool:
    """True where the same writer raised an exception long after it; of a mere line not so long after suffices."""
    if event.role is not EventRole.CULPRIT or event.origin is Origin.TABLE or event.code == "wrong-arguments":
        return False  # whose arguments are refused does not go on
    key = (event.file, event.rank)
    mere = event.origin is Origin.LINE and not _by_itself(event) and not definite(event.text, lived=True)
    return last.get(key, 0) - event.line > OUTLIVED or (mere and own.get(key, 0) - event.line > APART)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of one run.

    Attributes:
        events: In the order of files and lines.
        ranks: Every rank that the logs mention.
        world: Number of ranks, when known.
        owners: Ranks whose own log was read.
        reached: The last counter that each rank printed.
        places: Nodes of ranks.
        spoken: Each log's last line that is no repetition of a call.
        launchers: Nodes whose log a launcher wrote.
        ready: Ranks that were ready to meet the others.
        hosts: Hosts that the events name.
    """

    events: tuple[Event, ...]
    ranks: frozenset[int]
    world: int | None
    owners: frozenset[int]
    reached: Mapping[int, tuple[str, float]] = field(default_factory=dict)
    places: Mapping[int, str] = field(default_factory=dict)
    spoken: Mapping[str, int] = field(default_factory=dict)
    launchers: frozenset[str] = frozenset()
    ready: frozenset[int] = frozenset()
    hosts: frozenset[str] = frozenset()


def gather(logs: Sequence[Log]) -> Evidence:
    """Puts all logs together: ranks are filled in where a file, a table or a count names them."""
    ordered = _last_attempt(sorted(logs, key=lambda log: log.name))
    failed = _failed_ranks(ordered)
    events = [_placed(event, log, failed) for log in ordered for event in log.events]
    events += waits(ordered)
    worlds = [log.world for log in ordered if log.world]
    ranks = {event.rank for event in events if event.rank is not None}
    ranks |= {log.rank for log in ordered if log.rank is not None}
    ranks |= {rank for log in ordered for rank in log.ranks}
    reached: dict[int, tuple[str, float]] = {}
    for log in ordered:
        for each, counter in log.reached.items():
            rank = log.rank if each is None and not log.launcher else each
            if rank is not None:
                reached[rank] = max(counter, reached.get(rank, counter), key=lambda counter: counter[1])
    places = {event.rank: event.node for event in events if event.rank is not None and event.node is not None}
    recorded = {rank: node for log in ordered for rank, node in log.places.items()}
    # A launcher knows the hosts' names, which are one and the same on one machine; the service numbers its nodes.
    events = [event if event.rank not in recorded else _at(event, recorded) for event in events]
    places |= recorded
    by_name = {log.name: log for log in ordered}
    return Evidence(
        events=tuple(demoted(gated(_last_runs(_with_nodes(events), by_name), by_name))),
        ranks=frozenset(ranks),
        world=max(worlds, default=None),
        owners=frozenset(log.rank for log in ordered if log.rank is not None),
        reached=reached,
        places=places,
        spoken={log.name: log.spoken for log in ordered},
        launchers=frozenset(log.node for log in ordered if log.launcher and log.node is not None),
        hosts=frozenset(event.node for event in events if event.node is not None),
        ready=frozenset(rank for log in ordered for rank in log.ready),
    )


def _last_attempt(logs: list[Log]) -> list[Log]:
    """The logs of the last attempt, and those that belong to none: what ended an earlier one did not end the run."""
    last = max((log.attempt for log in logs if log.attempt is not None), default=None)
    return [log for log in logs if log.attempt in (None, last)]


def _last_runs(events: list[Event], logs: Mapping[str, Log]) -> list[Event]:
    """The events, those of earlier runs in one log as notes.

    A process ends with one exception, the last one. What is raised well after a launcher's end is another run's.
    """
    begins = {name: log.begun for name, log in logs.items() if _alone(log)}
    raised: dict[str, int] = {}
    mistakes: dict[Writer, tuple[int, bool]] = {}
    said: dict[Writer, str] = {}
    ends: dict[tuple[str, int | str | None], int] = {}
    final: dict[str, Event] = {}
    last: dict[str, Event] = {}
    for event in events:
        if (log := logs.get(event.file)) is None:
            continue
        if _ends_all(event, log):
            final[event.file] = event
        if event.role is EventRole.SUMMARY and event.origin is Origin.LINE and event.facts.get("exit", 0) > 0:
            ended = ends.get((event.file, event.code), event.line)
            again = raised.get(event.file, 0) - ended > APART
            ends[event.file, event.code] = event.line
        elif event.code == "interrupted" and "main" in event.facts and _alone(log):
            ended = ends.get((event.file, event.rank), 0)
            again = any(ended < line < event.line for line in log.progress.get(None, ()))
        elif "main" in event.facts and "inner" not in event.facts:
            # What cannot be read has done nothing before, and a program of Julia is none of Python's.
            ended, again = max(event.line - CONSEQUENCE, ends.get((event.file, event.rank), 0)), True
        elif "main" in event.facts and _complete(event) and not COMMUNICATION.search(event.facts.get("inner", "")):
            ended = ends.get((event.file, event.rank), 0)
            # Without a name it may be one of several processes.
            again = event.rank is not None or _alone(log)
            again &= not _of_parent(event, last.get(event.file), log)
            last[event.file] = event
            if event.text and said.get((event.file, event.rank), "").startswith(f"{event.text}: "):
                continue  # raised again without its words
            said[event.file, event.rank] = event.text
            raised[event.file] = ends[event.file, event.rank] = event.line
            if again and (kind := _MISTAKE.match(event.text)):
                mistakes[event.file, event.rank] = event.line, kind["data"] is None
        else:
            continue
        if again:
            begins[event.file] = max(begins.get(event.file, 0), ended)
    return [
        replace(event, role=EventRole.NOTE)
        if event.line <= begins.get(event.file, 0)
        or _went_on(event, *mistakes.get((event.file, event.rank), (0, False)))
        or (event.file in final and _outlived_by(event, final[event.file], logs[event.file]))
        or (event.file in logs and _came_forward(event, raised.get(event.file, 0), logs[event.file]))
        or (event.file in logs and _done_without(event, raised.get(event.file, 0), logs[event.file]))
        else event
        for event in events
    ]


def _of_parent(event: Event, child: Event | None, log: Log) -> bool:
    """True where another program raised right below what its child did, which may have written into the same log."""
    if child is None:
        return False
    message = min(MOST_SAID, str(child.facts.get("said", "")).count("\n"))
    between = bisect_left(log.ordinary, event.line) - bisect_right(log.ordinary, child.line) - message
    other = event.facts["main"] != child.facts["main"]
    return other and event.rank is None and child.line < event.line and between <= SAID


def _ends_all(event: Event, log: Log) -> bool:
    """True where an event ends the only program of a log, which then does nothing else."""
    signature = event.signature
    stopped = signature.kind in ("stop", "crash", "signal") or event.code in OUTSIDE or "signal" in event.facts
    unread = "main" in event.facts and "inner" not in event.facts
    over = event.origin is Origin.LINE and (
        signature.ends
        or event.weight > 3
        or event.code in ("host-out-of-memory", "logged-error")
        or "over" in event.facts
    )
    killed = event.role is EventRole.SUMMARY and _KILLED.search(event.text) is not None
    if event.soft or "guess" in event.facts or not (killed or event.role in (EventRole.CULPRIT, EventRole.VICTIM)):
        return False
    near = len(log.ordinary) - bisect_right(log.ordinary, event.line) <= LAST
    return (killed or stopped or over or unread) and near and _alone(log)


_KILLED = re.compile(r"^srun: error: .*: (?:Killed|Segmentation fault|Bus error|Aborted|Illegal instruction)\b")


def _outlived_by(event: Event, end: Event, log: Log) -> bool:
    """True where a program wrote on for long after what reads like its cause, until it ended otherwise."""
    if event.role is not EventRole.CULPRIT or event.line >= end.line or event.code == end.code:
        return False
    if end.code == "logged-error" and event.origin is Origin.TRACEBACK:
        return False  # that may be a script's word of it
    message = min(MOST_SAID, str(event.facts.get("said", "")).count("\n"))
    between = bisect_left(log.ordinary, end.line) - bisect_right(log.ordinary, event.line) - message
    return between > (0 if event.code in _OF_A_SHELL else LAST)


def _came_forward(event: Event, raised: int, log: Log) -> bool:
    """True where the only process of a log came forward between a mere line and the exception that ended it."""
    mere = event.role is EventRole.CULPRIT and not _by_itself(event) and not definite(event.text, lived=True)
    return mere and _alone(log) and any(event.line < line < raised for line in log.progress.get(None, ()))


SAID_WITHOUT = 2
"""Lines that a program writes after it has printed what it does without."""


def _done_without(event: Event, raised: int, log: Log) -> bool:
    """True where the only program of a log printed that it lacks a module, wrote on, and raised something else."""
    lacks = event.code in ("missing-module", "library-mismatch") and event.origin is Origin.LINE and event.line < raised
    wrote = bisect_left(log.ordinary, raised) - bisect_right(log.ordinary, event.line)
    return lacks and wrote >= SAID_WITHOUT and _alone(log)


def _alone(log: Log) -> bool:
    return not (log.launcher or log.ranks or (log.world or 1) > 1 or any(event.rank for event in log.events))


_MISTAKE = re.compile(
    r"(?:Key|Type|Attribute|Index|Name|UnboundLocal|ZeroDivision|NotImplemented|ModuleNotFound|"
    r"(?P<data>Value|Assertion|FileNotFound))Error\b"
)
"""Exceptions of a program itself. Those of data may come from what a resource, a service or a device did before."""


def _went_on(event: Event, end: int, own: bool) -> bool:
    """True where the process that wrote an event raised a mistake of its own later: the event had ended nothing."""
    ended = event.signature.ends or event.signature.kind or "signal" in event.facts
    caught = own or (event.origin is Origin.TRACEBACK and "main" not in event.facts)
    return event.line < end and event.role is EventRole.CULPRIT and caught and not ended


def _failed_ranks(logs: Iterable[Log]) -> dict[str, list[Event]]:
    """The processes that ended with an error of their own: rows of tables, by the log that holds them."""
    rows: dict[str, list[Event]] = {}
    for log in logs:
        found = [event for event in log.events if event.origin is Origin.TABLE and event.facts.get("exit") != -15]
        rows[log.name] = found or _only_failed(log)
    return {name: found for name, found in rows.items() if found}


def _only_failed(log: Log) -> list[Event]:
    """The process that a launcher's summary names where there is no table, if the log shows one exception alone."""
    failed = [
        each for each in log.events if each.role is EventRole.SUMMARY and each.facts.get("exit", 1) not in (0, -15)
    ]
    named = [event for event in failed if event.rank is not None or event.local is not None]
    roles = (EventRole.CULPRIT, EventRole.VICTIM)
    shown = [each for each in log.events if each.role in roles and each.signature.kind != "stop"]
    raised = [each for each in shown if each.origin is Origin.TRACEBACK and each.code != "traceback-cut-short"]
    one = len({each.text for each in raised}) == 1 or (not raised and len({each.code for each in shown}) == 1)
    return named[:1] if one and len({(event.rank, event.local) for event in named}) == 1 else []


def _placed(event: Event, log: Log, failed: dict[str, list[Event]]) -> Event:
    """An event with its rank and node, as far as they are known."""
    rank, node = event.rank, event.node
    if rank is None and event.local is not None:
        rank = _global(event.local, log, failed)
    if rank is None and log.rank is not None and not log.launcher:
        rank = log.rank
    if rank is None and event.origin is not Origin.TABLE:
        rows = failed.get(log.name, [])
        alone = event.origin is Origin.TRACEBACK or event.weight <= 1
        if event.role is EventRole.CULPRIT and alone and len({(row.rank, row.local) for row in rows}) == 1:
            rank = rows[0].rank if rows[0].rank is not None else rows[0].local
            node = node or rows[0].node
    return replace(event, rank=rank, node=node or log.node)


def _global(local: int, log: Log, failed: dict[str, list[Event]]) -> int | None:
    for row in failed.get(log.name, []):
        if row.local is not None and row.rank is not None:
            return row.rank - row.local + local
    if log.per_node and log.node is not None and log.node.isdigit():
        return int(log.node) * log.per_node + local
    return local


def _with_nodes(events: list[Event]) -> list[Event]:
    """Nodes of ranks that another event places; a host's name rather than a number."""
    placed = [event for event in events if event.rank is not None and event.node is not None]
    placed.sort(key=lambda event: not str(event.node).isdigit())
    nodes = {event.rank: event.node for event in placed if event.rank is not None and event.node is not None}
    return [event if event.node is not None else _at(event, nodes) for event in events]


def _at(event: Event, nodes: dict[int, str]) -> Event:
    return event if event.rank is None else replace(event, node=nodes.get(event.rank))


def victims(evidence: Evidence, culprit: int | None) -> tuple[Victim, ...]:
    """Ranks that ended because of others, each once."""
    found: dict[int | str, Victim] = {}
    for event in evidence.events:
        stopped = event.role is EventRole.VICTIM or (event.role is EventRole.SUMMARY and event.facts.get("exit") == -15)
        if not stopped or (event.rank is not None and event.rank == culprit):
            continue
        if event.rank is None and event.code == "termination-requested":
            continue  # a launcher that stops its ranks
        named = event.rank if event.rank is not None else (f"node {event.node}" if event.node else event.file)
        found.setdefault(named, Victim(event.rank, event.node, event.code, event.file, event.line, event.text))
    return tuple(sorted(found.values(), key=lambda each: (each.rank is None, each.rank or 0, each.file, each.line)))
