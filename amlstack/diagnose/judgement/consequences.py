"""What follows from the end of another rank, although it reads like a cause: exceptions, aborts, numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amlstack.diagnose.events import Event, Origin
from amlstack.diagnose.signatures import EventRole

if TYPE_CHECKING:
    from collections.abc import Iterable

CONSEQUENCE = 30
"""Lines between a victim's line and a weak sign of the same rank that still belong together."""
MESSAGE = 400
"""Lines after a traceback's end in which its message may go on: TensorFlow prints whole graphs."""
OUTLIVED = 500
"""Lines that a rank does not write after an exception that ends it."""
_COMMUNICATION = re.compile(
    r"torch[/\\](?:distributed|nn[/\\]parallel[/\\]distributed)|horovod|mpi4py|deepspeed[/\\]comm\b|apex[/\\]parallel"
    r"|p2p_communication|ray[/\\]util[/\\]collective|c10d"
)
"""Files of libraries in which ranks wait for each other."""
WAITED = frozenset(
    {
        "nccl-watchdog-timeout",
        "nccl-heartbeat",
        "gloo-timeout",
        "barrier-not-joined",
        "horovod-stalled",
        "flight-recorder-waits",
        "jax-task-lost",
    }
)
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
    return _outlived([_with_role(event, victims) for event in events])


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


def _with_role(event: Event, victims: _Victims) -> Event:
    """An event as a victim or a summary, where it only follows from another rank's end."""
    if _aborted_while_waiting(event, victims) or (
        event.code == "exit-without-reason" and event.rank in victims.waiting
    ):
        return replace(event, role=EventRole.VICTIM)
    if event.role is not EventRole.CULPRIT or event.weight > 2:
        return event
    inner = str(event.facts.get("inner", ""))
    if event.code == "traceback-cut-short" and (_COMMUNICATION.search(inner) or victims.waiting - {event.rank}):
        return replace(event, role=EventRole.SUMMARY)  # it failed; whether by itself, its end would say
    waited = (event.file, event.rank) in victims.timed_out or (
        event.rank is None and event.line > victims.first_timeout.get(event.file, event.line)
    )
    if waited and (_COMMUNICATION.search(inner) or event.code == "loss-not-finite"):
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
    """Whether a victim's words of the same writer are what an exception or a weak sign is about."""
    if _exited(event) and victim.signature.kind == "stop":
        return False  # the others are stopped because of this end
    apart = victim.line - event.line
    weak = event.weight <= 1 and abs(apart) <= CONSEQUENCE and not event.signature.blameless
    goes_on = 0 < apart <= MESSAGE and any(word in event.text.lower() for word in _LONG_MESSAGE)
    # A launcher that stops the others afterwards is no sign of what ended this one.
    own = victim.origin is Origin.LINE and victim.signature.kind != "stop"
    return weak or goes_on or (event.code == "python-exception" and 0 < apart <= 12 and own)


def _outlived(events: list[Event]) -> list[Event]:
    """Exceptions after which their rank went on for long, until another one: caught and printed, not fatal."""
    last: dict[tuple[str, int | None], int] = {}
    for event in events:
        if event.role is EventRole.CULPRIT and event.origin is Origin.TRACEBACK:
            key = (event.file, event.rank)
            last[key] = max(event.line, last.get(key, 0))
    return [
        replace(event, soft=True)
        if event.role is EventRole.CULPRIT
        and event.origin is not Origin.TABLE
        and last.get((event.file, event.rank), 0) - event.line > OUTLIVED
        else event
        for event in events
    ]
