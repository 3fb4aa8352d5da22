"""All that the logs of one run show: ranks and nodes filled in, consequences separated from causes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from amlstack.diagnose.diagnosis import Victim
from amlstack.diagnose.events import Event, Log, Origin
from amlstack.diagnose.judgement import flights
from amlstack.diagnose.judgement.consequences import demoted
from amlstack.diagnose.judgement.end_gate import gated
from amlstack.diagnose.signatures import EventRole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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
        lengths: Lines of each log.
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
    lengths: Mapping[str, int] = field(default_factory=dict)
    launchers: frozenset[str] = frozenset()
    ready: frozenset[int] = frozenset()
    hosts: frozenset[str] = frozenset()


def gather(logs: Sequence[Log]) -> Evidence:
    """Puts all logs together: ranks are filled in where a file, a table or a count names them."""
    ordered = _last_attempt(sorted(logs, key=lambda log: log.name))
    failed = _failed_ranks(ordered)
    events = [_placed(event, log, failed) for log in ordered for event in log.events]
    events += flights.waits(ordered)
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
    return Evidence(
        events=tuple(demoted(gated(_with_nodes(events), {log.name: log for log in ordered}))),
        ranks=frozenset(ranks),
        world=max(worlds, default=None),
        owners=frozenset(log.rank for log in ordered if log.rank is not None),
        reached=reached,
        places=places,
        lengths={log.name: log.lines for log in ordered},
        launchers=frozenset(log.node for log in ordered if log.launcher and log.node is not None),
        hosts=frozenset(event.node for event in events if event.node is not None),
        ready=frozenset(rank for log in ordered for rank in log.ready),
    )


def _last_attempt(logs: list[Log]) -> list[Log]:
    """The logs of the last attempt, and those that belong to none: what ended an earlier one did not end the run."""
    last = max((log.attempt for log in logs if log.attempt is not None), default=None)
    return [log for log in logs if log.attempt in (None, last)]


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
    shown = [each for each in log.events if each.role in (EventRole.CULPRIT, EventRole.VICTIM)]
    raised = [each for each in shown if each.origin is Origin.TRACEBACK and each.code != "traceback-cut-short"]
    one = len(raised) == 1 or (not raised and len({each.code for each in shown}) == 1)
    return named if one and len({(event.rank, event.local) for event in named}) == 1 else []


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
        if event.role is EventRole.CULPRIT and alone and len(rows) == 1:
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
