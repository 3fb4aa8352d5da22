"""Dumps of flight recorders, put together: which ranks wait, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.diagnose.events import Event, Origin
from amlstack.diagnose.signatures import by_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlstack.diagnose.events import Log
    from amlstack.diagnose.reading.records.flight_recorder import Group

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
    missing = _roots(behind, {rank: flight.groups for rank, (_, flight) in flights.items()})
    if not missing:
        return []
    return [
        _event(flights[rank][0], rank, group, missing)
        for rank in sorted(flights)
        if rank not in missing and (group := _waited(flights[rank][1].groups, behind)) is not None
    ]


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


def _roots(behind: Mapping[str, tuple[int, ...]], groups: Mapping[int, Mapping[str, Group]]) -> tuple[int, ...]:
    """Of those that others wait for the ones that wait for nobody themselves; all where each waits for another."""
    missing = {rank for ranks in behind.values() for rank in ranks}
    waiting = {
        rank
        for rank in missing
        for name, ranks in behind.items()
        if rank not in ranks and name in groups.get(rank, {}) and groups[rank][name].pending is not None
    }
    return tuple(sorted(missing - waiting or missing))


def _waited(groups: Mapping[str, Group], behind: Mapping[str, tuple[int, ...]]) -> Group | None:
    return next((groups[name] for name in behind if name in groups and groups[name].pending is not None), None)


def _event(log: Log, rank: int, group: Group, missing: tuple[int, ...]) -> Event:
    signature = by_code(CODE)
    text = f"rank {rank} waits in {group.operation} number {group.pending} of the group {group.description}"
    facts = {"missing": missing, "group": group.name, "seq": group.pending}
    return Event(signature, log.name, 1, text, signature.role, Origin.RECORD, rank=rank, node=log.node, facts=facts)
