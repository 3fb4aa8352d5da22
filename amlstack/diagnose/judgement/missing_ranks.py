"""Ranks that did not join: found by what the waiting ranks log, by silence, and by how far each rank came."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from amlstack.diagnose.events import Event, Origin
from amlstack.diagnose.judgement.consequences import WAITED
from amlstack.diagnose.signatures import EventRole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlstack.diagnose.judgement.evidence import Evidence


MEETING = "rendezvous-timeout"
ENDS = frozenset({"job-timeout", "job-cancelled", "terminated-from-outside"})
"""Ends from outside: often of a run in which something hung."""
OUTSIDE = ENDS | {"node-preempted", "node-failed", "hangup"}
"""What nobody in the run did: of signs that count alike these come last."""


def suspects(evidence: Evidence) -> tuple[tuple[int, ...], Event] | None:
    """Ranks named by a message, or the only ones that do not complain, or behind; and an event that shows it."""
    waiting = [event for event in evidence.events if event.role is EventRole.VICTIM and event.code in WAITED]
    if not waiting:
        return None
    named = Counter(rank for event in waiting for rank in event.facts.get("missing", ()))
    if named:
        most = max(named.values())
        ranks = tuple(sorted(rank for rank, times in named.items() if times == most))
        return ranks, next(event for event in waiting if event.facts.get("missing"))
    complaining = _complaining(evidence)
    silent = tuple(sorted(known(evidence) - complaining))
    # In an excerpt a silent rank may only have been cut away. Silence counts in the logs of a whole job.
    table = any(event.origin is Origin.TABLE for event in evidence.events)
    whole = evidence.world is not None or len(evidence.owners) > 1 or table
    if whole and len(complaining) > len(silent) > 0:
        return silent, waiting[0]
    behind = _behind(waiting)
    return (behind, waiting[0]) if behind else None


def stalled(evidence: Evidence) -> tuple[int, ...]:
    """The few ranks that came less far than the others by the counters in their logs.

    Weak, since lines are not collectives. Nothing when all came as far, when most are behind, or when the counters
    cannot be compared. A rank without any counter came least far.
    """
    reached, known = evidence.reached, evidence.owners
    if len(reached) < 2:
        return ()
    axis = Counter(axis for axis, _ in reached.values()).most_common(1)[0][0]
    at = {rank: number for rank, (kind, number) in reached.items() if kind == axis}
    silent = known - set(reached)
    if silent:  # not so when one rank of each node counts for all
        return tuple(sorted(silent)) if len(silent) * 2 < len(known | set(reached)) else ()
    return _least(at) if len(set(at.values())) > 1 else ()


def absent_from_rendezvous(evidence: Evidence) -> tuple[tuple[int, ...], str | None]:
    """When the ranks did not all meet: those whose log does not mention it, and the node that they share.

    Logs that launchers wrote, one per node, name the node only.
    """
    complaining = _complaining(evidence) | {event.rank for event in evidence.events if event.code == MEETING}
    if evidence.launchers and complaining <= {None}:
        few = 0 < len(evidence.owners) <= len(evidence.launchers)
        return (), (str(min(evidence.owners)) if few and len(evidence.owners) == 1 else None)
    ranks = known(evidence)
    absent = tuple(sorted(ranks - evidence.ready))
    if evidence.ready and evidence.world and 0 < len(absent) * 2 <= len(ranks):
        nodes = {evidence.places.get(rank) for rank in absent}
        return absent, (nodes.pop() if len(nodes) == 1 else None)
    if len(evidence.owners) < 2:
        return (), None
    silent = tuple(sorted(rank for rank in ranks if rank not in complaining))
    if not 0 < len(silent) * 2 <= len(ranks):
        return (), None
    nodes = {evidence.places.get(rank) for rank in silent}
    return silent, (nodes.pop() if len(nodes) == 1 else None)


def known(evidence: Evidence) -> frozenset[int]:
    """Ranks of the job: those that the logs mention, those below the highest, and as many as the world size."""
    highest = max(evidence.ranks, default=-1) + 1
    return evidence.ranks | frozenset(range(min(max(highest, evidence.world or 0), 1 << 16)))


def _complaining(evidence: Evidence) -> set[int | None]:
    return {
        event.rank
        for event in evidence.events
        if event.role is EventRole.VICTIM and event.rank is not None and event.signature.kind != "stop"
    }


def _behind(waiting: Sequence[Event]) -> tuple[int, ...]:
    """The few ranks whose last collective of one group came before the others' of the same.

    Numbers of different groups say nothing of each other. A rank that did not join has enqueued exactly what the others
    have completed with it: less is another group's count, more means that it did join, unless it is still in a
    collective that all others have left.
    """
    groups: dict[str, dict[int, tuple[int, int]]] = {}
    for event in waiting:
        enqueued, completed = event.facts.get("enqueued"), event.facts.get("completed")
        if event.rank is None or not isinstance(enqueued, int) or not isinstance(completed, int):
            continue
        ranks = groups.setdefault(event.facts.get("group", ""), {})
        ranks[event.rank] = max((enqueued, completed), ranks.get(event.rank, (-1, -1)))
    found = {few for ranks in groups.values() if (few := _least_enqueued(ranks))}
    return found.pop() if len(found) == 1 else ()


def _least_enqueued(ranks: Mapping[int, tuple[int, int]]) -> tuple[int, ...]:
    if len({enqueued for enqueued, _ in ranks.values()}) < 2:
        return ()
    few = _least({rank: enqueued for rank, (enqueued, _) in ranks.items()})
    others = [each for rank, each in ranks.items() if rank not in few]
    if not few or not others:
        return ()
    most, done = max(enqueued for enqueued, _ in others), max(completed for _, completed in others)
    reached = ranks[few[0]][0]
    stuck = all(ranks[rank][1] < min(completed for _, completed in others) for rank in few)
    # It never enqueued what the others wait for, or is still in one that all others have left.
    return few if reached == done or (stuck and most - reached <= most - done) else ()


def _least(at: Mapping[int, float]) -> tuple[int, ...]:
    """The ranks with the least number; none when they are most of all."""
    least = min(at.values())
    few = tuple(sorted(rank for rank, number in at.items() if number == least))
    return few if len(few) * 2 <= len(at) else ()
