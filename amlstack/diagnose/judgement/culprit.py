"""Events → the first true cause. Pure: the same events give the same verdict, whatever the order of the files."""

from __future__ import annotations

import re
from dataclasses import replace
from signal import SIGABRT
from typing import TYPE_CHECKING

from amlstack.diagnose.diagnosis import Diagnosis, Pointer, listed
from amlstack.diagnose.events import Event, Origin, comparable
from amlstack.diagnose.judgement import no_culprit
from amlstack.diagnose.judgement.evidence import CONSEQUENCE, ENDS, OUTSIDE, gather, victims
from amlstack.diagnose.judgement.no_culprit import SIMULTANEOUS
from amlstack.diagnose.reading.collector import MOST_OF_ONE
from amlstack.diagnose.signatures import SURE, EventRole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amlstack.diagnose.events import Log
    from amlstack.diagnose.judgement.evidence import Evidence


BELOW = 3
"""Lines from what a library says to MPI's word of the rank that it failed in."""


def first_cause(logs: Sequence[Log]) -> Diagnosis:
    """Names the first true cause.

    Args:
        logs: What the scanner saw, one per file.
    """
    evidence = gather(logs)
    candidates = _candidates(evidence.events)
    if not candidates:
        return no_culprit.verdict(evidence)
    first, others = _first(candidates)
    if all(event.code in ENDS for event in candidates) and (late := no_culprit.stalled(evidence)):
        reason = f"{first.text[:80]}; {listed(late)} came less far than the others, and lines may lag"
        return no_culprit.did_not_join(evidence, late, first, reason, sure="low")
    return _verdict(evidence, first, others)


def _candidates(events: Iterable[Event]) -> list[Event]:
    """The culprits of the best tier that has any.

    1. definite causes, uncaught exceptions, ends by a signal that a launcher names;
    2. lines that may be harmless;
    3. consequences that are causes only when there is nothing better;
    4. causes logged at the level of a warning; those that runs often survive only where a rank ended.
    """
    events = list(events)
    ends = [event for event in events if event.role in (EventRole.VICTIM, EventRole.SUMMARY) and not event.soft]
    by_hand = bool(ends) and all(event.signature.kind == "stop" for event in ends)
    if any(event.code == "job-cancelled" for event in events):  # what a program logs as a note it had caught
        noted = "\n".join(event.text for event in events if event.soft and "INFO" in event.text[:60])
        events = [event for event in events if event.signature.blameless or event.text.split("] ")[-1] not in noted]
    tiers: dict[int, list[Event]] = {}
    for event in events:
        told = _leads_to(event, ends) if ends else event.weight > 2
        warned = event.soft and (by_hand or not told)  # who pressed Ctrl-C had another reason
        if event.role is EventRole.CULPRIT and not warned:
            tiers.setdefault(_tier(event), []).append(event)
    best = tiers[min(tiers)] if tiers else []
    best = [event for event in best if "aside" not in event.facts] or best
    if all(event.code == "process-group-missing" for event in best):  # a warning may say why none was made
        best = best + [event for event in tiers.get(4, ()) if event.weight > 2]
    return best


def _leads_to(event: Event, ends: Iterable[Event]) -> bool:
    """True where an end stands in another log, or not far below an event."""
    return any(end.file != event.file or abs(end.line - event.line) <= CONSEQUENCE for end in ends)


def _tier(event: Event) -> int:
    if event.soft:
        return 4
    if event.code in ENDS:
        return 2  # after an exception it is only what ended the rest
    if event.weight <= 1:
        return 3
    certain = event.signature.kind or "signal" in event.facts or event.code == "bare-exception"
    if event.weight == 2 and event.origin is Origin.LINE and not certain:
        return 2
    return 1


def _first(candidates: list[Event]) -> tuple[Event, list[Event]]:
    """The first of the candidates, and the rest in the order in which they stand for blame."""
    moments = _moments(candidates)
    if moments is None:
        ordered = sorted(candidates, key=lambda event: (_outside(event, candidates), *_by_weight(event)))
    else:
        begin = min(moments)
        keyed = list(zip(moments, candidates, strict=True))

        def turn(pair: tuple[float, Event]) -> tuple[float, ...]:
            moment, event = pair
            late = moment - begin > SIMULTANEOUS
            outside = _outside(event, candidates)
            return (outside, late, moment if late else 0.0, -event.weight, moment)

        ordered = [event for _, event in sorted(keyed, key=lambda pair: (*turn(pair), *_by_weight(pair[1])[1:]))]
    return _nearest_cause(ordered[0], ordered), ordered[1:]


def _outside(event: Event, candidates: Sequence[Event]) -> bool:
    """True where an end from outside has a sign of the run's own just before it, or of the same strength anywhere."""
    if event.code not in OUTSIDE:
        return False
    own = [each for each in candidates if each.code not in OUTSIDE]
    return any(
        each.weight >= event.weight or (each.file == event.file and 0 <= event.line - each.line <= CONSEQUENCE)
        for each in own
    )


def _nearest_cause(first: Event, ordered: list[Event]) -> Event:
    """A definite cause just before, or in, the same rank's exception is what that exception is about."""
    near = [
        event
        for event in ordered
        if (event.file, event.rank) == (first.file, first.rank)
        and event.weight > first.weight
        and event.soft <= first.soft
        and abs(event.line - first.line) <= CONSEQUENCE
    ]
    return min(near, key=_by_weight, default=first)


def _by_weight(event: Event) -> tuple[float, ...]:
    # What a parent says of its child's end comes after the child's own words.
    traced = event.origin is not Origin.TRACEBACK or event.text.startswith("subprocess.CalledProcessError")
    record = event.origin is Origin.RECORD
    rank = -1 if event.rank is None else event.rank
    return (-event.weight, record, traced, event.line if not record else 0, rank)


def _verdict(evidence: Evidence, first: Event, others: Sequence[Event]) -> Diagnosis:
    same = {event.rank for event in (first, *others) if event.code == first.code and event.rank is not None}
    several = len(same) > 1 or "other" in first.facts
    # A weak sign that several ranks show, no one knows which first, blames none of them.
    vague = first.weight <= 1 and _moments((first, *others)) is None
    common = first.signature.shared or vague or _shared_by_all(evidence, first, others, same)
    blameless = first.signature.blameless or (common and several)
    rank, node = (None, None) if blameless else _whose(evidence, first)
    shared = tuple(sorted({*same, first.facts.get("other", first.rank)} - {None})) if several and blameless else ()
    if rank is None and not shared and not first.signature.blameless:
        shared = _rows(evidence, first, others)
    sure, reason = _sure(evidence, first, others, same, blameless=blameless or bool(shared))
    if first.code == no_culprit.MEETING:
        named = tuple(first.facts.get("missing", ()))
        silent, node = (named, None) if named else no_culprit.absent_from_rendezvous(evidence)
        rank, shared = silent[0] if len(silent) == 1 else None, silent if len(silent) > 1 else ()
        if silent or node is not None:
            who = listed(silent) if silent else f"node {node}"
            reason = f"the others waited for {who}, " + ("as they say" if named else "whose log does not mention it")
    return Diagnosis.shown_by(
        first,
        first.signature,
        rank=rank,
        ranks=shared,
        node=node,
        source=first.source if first.source is not None and first.source.own else None,
        confidence=sure,
        reason=reason,
        victims=victims(evidence, rank),
        pointers=_same_cause(first, others),
        notes=no_culprit.notes(evidence),
        events=_lines_behind(evidence, first),
    )


def _shared_by_all(evidence: Evidence, first: Event, others: Sequence[Event], same: set[int]) -> bool:
    """More than half of the ranks that the logs show ended with the same words, and no clock says which was first."""
    alike = [event for event in (first, *others) if event.code == first.code]
    moments = _moments(alike)
    apart = moments is not None and max(moments) - min(moments) > SIMULTANEOUS
    most = 2 * len(same) > len(no_culprit.known(evidence))
    return most and len({_form(event.text) for event in alike}) == 1 and not apart


def _rows(evidence: Evidence, first: Event, others: Sequence[Event]) -> tuple[int, ...]:
    """The ranks that a launcher's table lists without a reason, where as many nameless ones show the same words."""
    alike = [event for event in (first, *others) if event.rank is None and _form(event.text) == _form(first.text)]
    rows = {
        event.rank
        for event in evidence.events
        if event.origin is Origin.TABLE and event.role is EventRole.SUMMARY and event.facts.get("exit") != -15
    }
    ranks = tuple(sorted(rank for rank in rows if rank is not None))
    return ranks if len(ranks) > 1 and len(alike) >= min(len(ranks), MOST_OF_ONE) else ()


def _form(text: str) -> str:
    return re.sub(r"[\d.]+", "", text)


def _whose(evidence: Evidence, first: Event) -> tuple[int | None, str | None]:
    """The rank and node of an event; of one that names no rank, those of the only rank that ended in the same way."""
    if first.rank is not None or first.facts.get("other") is not None:
        return first.rank, first.node
    same = {
        (event.rank, event.node or first.node)
        for event in evidence.events
        if event.rank is not None
        and (first.node in (None, event.node) or _reports(first, event))
        and (event.code == first.code or _aborts(first, event) or _reports(first, event))
    }
    return same.pop() if len(same) == 1 else (first.rank, first.node)


def _aborts(first: Event, end: Event) -> bool:
    """True where a launcher names the process that an uncaught exception of C++ ended: by an abort."""
    thrown = first.text.startswith(("terminate called", "what()"))
    return thrown and (end.facts.get("signal") == SIGABRT or end.facts.get("exit") in (-SIGABRT, 128 + SIGABRT))


def _reports(first: Event, end: Event) -> bool:
    """True where MPI ends a rank right below the words of the library that failed in it."""
    return end.code == "mpi-error" and first.file == end.file and 0 < end.line - first.line <= BELOW


def _sure(
    evidence: Evidence, first: Event, others: Sequence[Event], same: set[int], *, blameless: bool
) -> tuple[str, str]:
    level = SURE.index(first.signature.sure)
    reasons = []
    rivals = [event for event in others if event.code != first.code and event.rank != first.rank]
    if first.soft:
        level = 0
        reasons.append("it was logged as a warning only, and nothing else explains the end")
    elif first.origin is Origin.LINE and _tier(first) == 2:
        level = min(level, 1)
        reasons.append("the line may be harmless, but nothing else explains the end")
    if first.code == "signal-9-likely-out-of-memory":
        reasons.append("signal 9 is seen, its sender is not; nothing before it gives a reason")
    if rivals and _moments((first, *others)) is None:
        level = min(level, 1)
        reasons.append("other ranks show other causes, and the logs have no common clock")
    if not blameless and _whose(evidence, first)[0] is None:
        level = min(level, 1)
        reasons.append("the log does not name the rank that wrote it")
    roots = [event for event in evidence.events if event.facts.get("root") and event.rank is not None]
    if roots and first.rank is not None and any(event.rank == first.rank for event in roots):
        reasons.append("torchrun saw this rank fail first too")
    if len(same) > 1:
        reasons.append(f"{len(same)} ranks show the same")
    return SURE[level], "; ".join(reasons or [_plain(first)])


def _plain(first: Event) -> str:
    if first.weight <= 1:
        return "it is what the others would show too; no deeper cause is in these logs"
    return "the line itself names the cause" if first.weight > 2 else "it is an exception of the program's own"


def _moments(events: Sequence[Event]) -> list[float] | None:
    """The times of the events, on one scale; None when one has no time or the scales differ."""
    stamps = [event.time for event in events if event.time is not None]
    return comparable(stamps) if len(stamps) == len(events) else None


def _same_cause(first: Event, others: Sequence[Event]) -> tuple[Pointer, ...]:
    """The other candidates, one per rank and code: what a reader may want to look at next."""
    found: dict[tuple[str, int | None], Pointer] = {}
    for event in others:
        if (event.code, event.rank) == (first.code, first.rank):
            continue
        found.setdefault((event.code, event.rank), Pointer.to(event))
    return tuple(found.values())[:8]


def _lines_behind(evidence: Evidence, first: Event) -> tuple[Event, ...]:
    """The lines behind the verdict: the cause's own, then those near it in the same log."""
    of_same = (event for event in evidence.events if (event.file, event.rank) == (first.file, first.rank))
    near = [each for each in of_same if each is not first and abs(each.line - first.line) <= CONSEQUENCE]
    final = [replace(first, text=str(first.facts["finally"]))] if "finally" in first.facts else []
    return (first, *final, *near[:4])
