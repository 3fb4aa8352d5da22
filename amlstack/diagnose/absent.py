"""Who did not come: the ranks that the others waited for, from what the others say and from how far each came."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from amlstack.diagnose import progress
from amlstack.diagnose.events import Event, Origin, Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amlstack.diagnose.case import Case

WAITED = frozenset({"nccl-watchdog-timeout", "gloo-timeout", "barrier-not-joined", "horovod-stalled"})
MEETING = "rendezvous-timeout"
ENDS = frozenset({"job-timeout", "job-cancelled", "terminated-from-outside"})
"""Ends from outside: often of a run in which something hung."""


def suspects(case: Case) -> tuple[tuple[int, ...], Event] | None:
    """Ranks named by a message, or the only ones that do not complain, or behind; and an event that shows it."""
    waiting = [event for event in case.events if event.role is Role.VICTIM and event.code in WAITED]
    if not waiting:
        return None
    named = Counter(rank for event in waiting for rank in event.facts.get("missing", ()))
    if named:
        most = max(named.values())
        ranks = tuple(sorted(rank for rank, times in named.items() if times == most))
        return ranks, next(event for event in waiting if event.facts.get("missing"))
    complaining = _complaining(case)
    silent = tuple(sorted(known(case) - complaining))
    # An excerpt shows some ranks; only a whole job's logs let a silent rank be told from one that was cut away.
    whole = case.world is not None or len(case.owners) > 1 or any(e.origin is Origin.TABLE for e in case.events)
    if whole and len(complaining) > len(silent) > 0:
        return silent, waiting[0]
    behind = _behind(waiting)
    return (behind, waiting[0]) if behind else None


def stalled(case: Case) -> tuple[int, ...]:
    """Ranks that came less far than the others by the counters in their logs; weak, since lines are not collectives."""
    return progress.behind(case.reached, case.owners)


def strangers(case: Case) -> tuple[tuple[int, ...], str | None]:
    """When the ranks did not all meet: those that say nothing of it, and the node that they share.

    Of logs that launchers wrote, one per node, only the node can be told.
    """
    complaining = _complaining(case) | {event.rank for event in case.events if event.code == MEETING}
    if case.launchers and complaining <= {None}:
        few = 0 < len(case.owners) <= len(case.launchers)
        return (), (str(min(case.owners)) if few and len(case.owners) == 1 else None)
    if len(case.owners) < 2:
        return (), None
    everybody = known(case)
    silent = tuple(sorted(rank for rank in everybody if rank not in complaining))
    if not 0 < len(silent) * 2 <= len(everybody):
        return (), None
    nodes = {case.places.get(rank) for rank in silent}
    return silent, (nodes.pop() if len(nodes) == 1 else None)


def known(case: Case) -> frozenset[int]:
    """Ranks that there are: those told of, those below the highest, and as many as the world is said to have."""
    highest = max(case.ranks, default=-1) + 1
    return case.ranks | frozenset(range(min(max(highest, case.world or 0), 1 << 16)))


def _complaining(case: Case) -> set[int | None]:
    return {
        event.rank
        for event in case.events
        if event.role is Role.VICTIM and event.rank is not None and event.signature.kind != "stop"
    }


def _behind(waiting: Sequence[Event]) -> tuple[int, ...]:
    """The few ranks whose last collective came before the others'."""
    for name in ("enqueued", "seq"):  # like with like: not every rank tells both
        at: dict[int, int] = {}
        for event in waiting:
            number = event.facts.get(name)
            if event.rank is not None and isinstance(number, int):
                at[event.rank] = max(number, at.get(event.rank, number)) if name == "enqueued" else min(
                    number, at.get(event.rank, number)
                )  # fmt: skip
        if len(set(at.values())) < 2:
            continue
        least = min(at.values())
        few = tuple(sorted(rank for rank, number in at.items() if number == least))
        return few if len(few) * 2 <= len(at) else ()
    return ()
