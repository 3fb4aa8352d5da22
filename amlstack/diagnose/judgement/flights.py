"""Dumps of flight recorders, put together: which ranks wait, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.diagnose.events import Event, Origin
from amlstack.diagnose.signatures import by_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlstack.diagnose.events import Log
    from amlstack.diagnose.reading.records.flight_recorder import Exchange, Flight, Group

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
