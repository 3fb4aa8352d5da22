"""Dumps of torch's flight recorder: the progress of one rank in each process group."""

from __future__ import annotations

import io
import json
import pickle
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST_DUMP = 64 << 20
"""Bytes of a dump: 2,000 entries with their stacks have a few mebibytes."""
MOST_RANKS = 1 << 16
_EXCHANGE = re.compile(r"\b(?P<what>send|recv) (?P<own>\d{1,6})(?:->|<-)(?P<peer>\d{1,6})$")
_RANK = re.compile(r"(\d{1,6})(?:\.(?:json|pickle|pkl))?$")


@dataclass(frozen=True, slots=True)
class Group:
    """The operations of one rank in one process group.

    Attributes:
        name, description: The group's.
        members: Its ranks; empty when the dump does not say.
        last: The number of its last collective that was enqueued here.
        pending: The number of the first that was enqueued and did not end; None when all ended.
        operation: That one's, else the last one's.
    """

    name: str
    description: str
    members: tuple[int, ...]
    last: int
    pending: int | None
    operation: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """Point-to-points of one rank with another that did not end.

    Attributes:
        peer: The other rank.
        sends: They go to it, rather than come from it.
        group: The process group's description.
        count: How many there are.
    """

    peer: int
    sends: bool
    group: str
    count: int


@dataclass(frozen=True, slots=True)
class Flight:
    """One rank's dump.

    Attributes:
        rank: By the file's name.
        groups: By name.
        exchanges: Point-to-points that did not end.
    """

    rank: int
    groups: Mapping[str, Group] = field(default_factory=dict)
    exchanges: tuple[Exchange, ...] = ()


class _Plain(pickle.Unpickler):
    """Reads dicts, lists, numbers and strings, and nothing that would be imported or called."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Refuses.

        Raises:
            pickle.UnpicklingError: Always.
        """
        raise pickle.UnpicklingError(f"{module_name}.{global_name} has no place in a flight recorder's dump")

    def persistent_load(self, pid: Any) -> Any:
        """Refuses.

        Raises:
            pickle.UnpicklingError: Always.
        """
        raise pickle.UnpicklingError(f"a reference {str(pid)[:40]!r} has no place in a flight recorder's dump")


def looks_like_one(head: bytes) -> bool:
    """True where the first bytes of a file can be those of a pickled dump."""
    return len(head) > 2 and head[0] == 0x80 and head[1] <= 5 and (b"pg_config" in head or b"entries" in head)


def parse(name: str, content: bytes) -> Flight | None:
    """The dump of one rank; None when it is none, or the file's name does not end in a rank.

    Args:
        name: The file's.
        content: A pickle or JSON.
    """
    found = _RANK.search(name)
    if found is None or len(content) > LARGEST_DUMP:
        return None
    try:
        data = json.loads(content) if content[:1] == b"{" else _Plain(io.BytesIO(content)).load()
    except (
        ValueError,
        EOFError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        RecursionError,
        pickle.UnpicklingError,
    ):
        return None
    return read_dump(int(found[1]), data)


def read_dump(rank: int, data: Any) -> Flight | None:
    """The same of a dump that was read already."""
    if not isinstance(data, dict) or not isinstance(data.get("entries"), list) or "pg_config" not in data:
        return None
    entries: dict[str, list[dict[str, Any]]] = {}
    for entry in data["entries"]:
        if isinstance(entry, dict) and not entry.get("is_p2p") and isinstance(entry.get("collective_seq_id"), int):
            entries.setdefault(_name(entry), []).append(entry)
    configured = data["pg_config"] if isinstance(data["pg_config"], dict) else {}
    groups = {name: _group(name, each, configured.get(name)) for name, each in entries.items()}
    for name, config in configured.items():
        groups.setdefault(str(name), _group(str(name), [], config))
    return Flight(rank, groups, _exchanges(rank, data["entries"], groups))


def _exchanges(rank: int, entries: list[Any], groups: Mapping[str, Group]) -> tuple[Exchange, ...]:
    """Those that did not end. Of several that were issued as one, that one alone knows whether they did."""
    entries = [entry for entry in entries if isinstance(entry, dict) and entry.get("is_p2p")]
    together = {
        (_name(entry), entry.get("p2p_seq_id")): _pending(entry)
        for entry in entries
        if str(entry.get("profiling_name", "")).endswith("coalesced")
    }
    found: Counter[tuple[int, bool, str]] = Counter()
    for entry in entries:
        name = _name(entry)
        named = _EXCHANGE.search(str(entry.get("profiling_name", "")))
        if named is None or not together.get((name, entry.get("p2p_seq_id")), _pending(entry)):
            continue
        members = groups[name].members if name in groups else ()
        own, peer = int(named["own"]), int(named["peer"])
        if own < len(members) and members[own] == rank and peer < len(members):
            found[members[peer], named["what"] == "send", groups[name].description] += 1
    return tuple(Exchange(*key, count) for key, count in found.items())


def _group(name: str, entries: list[dict[str, Any]], config: Any) -> Group:
    config = config if isinstance(config, dict) else {}
    pending = [each for each in entries if _pending(each)]
    pending.sort(key=lambda each: int(each["collective_seq_id"]))
    last = max((int(each["collective_seq_id"]) for each in entries), default=0)
    shown = pending[0] if pending else (entries[-1] if entries else {})
    return Group(
        name=name,
        description=str(config.get("desc") or name),
        members=_members(config.get("ranks")),
        last=last,
        pending=int(pending[0]["collective_seq_id"]) if pending else None,
        operation=str(shown.get("profiling_name", "")),
    )


def _pending(entry: Mapping[str, Any]) -> bool:
    return not entry.get("retired") and entry.get("state") != "completed"


def _name(entry: Mapping[str, Any]) -> str:
    group = entry.get("process_group")
    if isinstance(group, (list, tuple)) and group:
        return str(group[0])
    return str(group if group is not None else entry.get("pg_id", ""))


def _members(ranks: Any) -> tuple[int, ...]:
    """``"[0, 1]"`` or a list."""
    numbers = re.findall(r"\d{1,6}", ranks) if isinstance(ranks, str) else ranks
    if not isinstance(numbers, list):
        return ()
    return tuple(int(each) for each in numbers[:MOST_RANKS] if str(each).isdigit())
