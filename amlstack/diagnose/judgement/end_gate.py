"""Which signs ended something: only those near the end of their writer, in a run that ended.

Logs of healthy runs are full of lines that read like errors. What tells them from a cause is what comes after: hundreds
of lines of a run that goes on. A sign that may be harmless is a cause only where something ended, and near that end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.diagnose.events import Event, Log, Origin
from amlstack.diagnose.reading.logged_errors import logged_as_error
from amlstack.diagnose.reading.tracebacks import definite
from amlstack.diagnose.signatures import EventRole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LAST = 10
"""Lines before a log's end in which a definite cause needs no other sign of an end: what is shown may be cut there."""
EXCERPT = 40
"""Lines of a log without any progress that is likely a piece cut out because of what it shows."""
FAR = 2000
"""Lines after an exception, none of them progress, that a message and what others still print may have."""
WENT_ON = 2
"""Lines of progress of the same writer after which a sign was no end."""
OTHERS_WENT_ON = 20
"""The same where a line does not name its writer, which may have been another one."""


def gated(events: Iterable[Event], logs: Mapping[str, Log]) -> list[Event]:
    """The events, those that ended nothing as notes.

    Args:
        events: With ranks and nodes, in any order.
        logs: By name.
    """
    events = list(events)
    near = [event.origin is Origin.RECORD or _near(event, logs[event.file]) for event in events]
    ended = any(close and shows_end(event) for event, close in zip(events, near, strict=True))
    counts = [
        _counts(event, logs[event.file], ended=ended, near=close) for event, close in zip(events, near, strict=True)
    ]
    causes = (EventRole.CULPRIT, EventRole.VICTIM)
    if ended and not any(each and event.role in causes for event, each in zip(events, counts, strict=True)):
        # A run ended, and nothing near its end says why: what a long message or a listing follows is not far from it.
        counts = [each or _last_exception(event, logs[event.file]) for event, each in zip(events, counts, strict=True)]
    return [event if each else replace(event, role=EventRole.NOTE) for event, each in zip(events, counts, strict=True)]


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
    """Whether an event shows that a process ended: a warning, or a line that may be harmless, does not."""
    if event.soft or "guess" in event.facts:
        return False
    if event.role in (EventRole.VICTIM, EventRole.SUMMARY):
        return True
    return event.role is EventRole.CULPRIT and _by_itself(event)


def _by_itself(event: Event) -> bool:
    """Whether the event itself is an end: an uncaught exception, an exit code, a signal, the service's refusal."""
    signature = event.signature
    killed = signature.kind in ("signal", "crash", "stop") or "signal" in event.facts
    return event.origin is not Origin.LINE or signature.ends or killed


def _counts(event: Event, log: Log, *, ended: bool, near: bool) -> bool:
    if event.role in (EventRole.CONTEXT, EventRole.NOTE, EventRole.NOISE):
        return True  # they are no end anyway
    if not near:
        return False
    if "guess" in event.facts:
        return False
    if event.role is not EventRole.CULPRIT or ended:
        return True
    raised = event.weight >= 3 or definite(event.text)
    last = log.lines - event.line <= LAST
    if log.lines <= EXCERPT and not log.progress:
        if event.soft:
            return last and event.weight >= 3
        return raised or event.weight >= 2 or logged_as_error(event.text)
    return last and raised and not event.soft


def _near(event: Event, log: Log) -> bool:
    """Whether its log only ends from the event on, as far as its writer is concerned."""
    if event.line < log.ending:
        return False
    if event.role is not EventRole.SUMMARY and _finished(log, event.rank) > event.line:
        return False
    own = log.progress.get(event.rank, ()) if event.rank is not None else ()
    if sum(line > event.line for line in own) >= WENT_ON:
        return False
    nameless = sum(line > event.line for line in log.progress.get(None, ()))
    return nameless < (WENT_ON if log.rank is not None else OTHERS_WENT_ON)


def _finished(log: Log, rank: int | None) -> int:
    """The line on which the writer says that its run is finished; of one without a name where nobody has one."""
    if rank is None and (log.ranks or set(log.finished) - {None}):
        return 0
    return max(log.finished.get(rank, 0), log.finished.get(None, 0) if log.rank is not None else 0)
