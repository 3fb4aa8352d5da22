"""Processes of a log and their ranks: a line names its process, and another line the rank of that process."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.diagnose.events import Event

LONGEST = 1 << 18
"""Bytes of a log's begin in which processes are looked for: ranks tell theirs when they start."""
ONE_NODE = 16
"""GPUs that one node has at most."""
_COMMUNICATOR = re.compile(
    rb"[\w.-]+:(?P<pid>\d+):\d+ \[\d+\] NCCL INFO (?:\S+ )?comm 0x\w+ rank (?P<rank>\d+) n[Rr]anks (?P<size>\d+)"
)
# Each names a process and its rank on one line.
_PAIRS = tuple(
    re.compile(pattern)
    for pattern in (
        (
            rb"[\w.-]+:(?P<pid>\d+):\d+ \[\d+\] NCCL INFO (?:Channel|Ring) \d+(?:/\d+)? : (?P<rank>\d+)\[\w+\] -> "
            rb"\d+\[\w+\] (?!\[receive\])"
        ),
        rb"[\w.-]+:(?P<pid>\d+):\d+ \[\d+\] .{0,80}\[Proxy Service (?P<rank>\d+)\]",
        rb"\bpid=(?P<pid>\d+)[^)\n]{0,80}\)\S{0,8} \[rank(?P<rank>\d+)\]:",
        rb"\bpid=(?P<pid>\d+)\)? world_rank=(?P<rank>\d+)",
        rb"\bRank +(?P<rank>\d+) (?:Group +\d+ )?Pid +(?P<pid>\d+) on\b",
        rb"process rank (?P<rank>\d+) with PID (?P<pid>[1-9]\d*) on node",
    )
)
_NCCL = re.compile(rb"(?P<node>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<gpu>\d+)\] ")


@dataclass(slots=True)
class Processes:
    """What a log's begin and end say of processes.

    Attributes:
        ranks: Process → its rank, where it has one and shares it with no other process: groups smaller than the whole
            number their members anew.
        gpus: Process → its GPU, where it has one and shares it with no other.
        nodes: Nodes of these processes.
    """

    ranks: dict[str, int] = field(default_factory=dict)
    gpus: dict[str, int] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()


def seen(parts: Iterable[bytes]) -> Processes:
    """Reads pieces of a log."""
    text = b"\n".join(parts)
    groups = [(int(found["size"]), found["pid"].decode(), int(found["rank"])) for found in _COMMUNICATOR.finditer(text)]
    largest = max((size for size, _, _ in groups), default=0)
    ranks = _one_each((pid, rank) for size, pid, rank in groups if size == largest)
    for pattern in () if ranks else _PAIRS:
        ranks = _one_each((found["pid"].decode(), int(found["rank"])) for found in pattern.finditer(text))
        if ranks:
            break
    lines = list(_NCCL.finditer(text))
    return Processes(
        ranks,
        _one_each((found["pid"].decode(), int(found["gpu"])) for found in lines),
        frozenset(found["node"].decode() for found in lines),
    )


def ranked(events: list[Event], processes: Processes, world: int | None) -> list[Event]:
    """Events with the rank of the process that wrote them, where nothing nearer names one.

    The number of a GPU is a rank where one node has all ranks, each with a GPU of its own.

    Args:
        events: Of one log.
        processes: Of the same log.
        world: Ranks of the job, when known.
    """
    alone = len(processes.nodes) == 1 and 1 < (world or 0) <= ONE_NODE
    found = []
    for event in events:
        pid = str(event.facts.get("pid", ""))
        if event.rank is not None or not pid:
            found.append(event)
            continue
        rank = processes.ranks.get(pid)
        if rank is None and not processes.ranks and alone and processes.gpus.get(pid, ONE_NODE) < (world or 0):
            rank = processes.gpus[pid]
        found.append(replace(event, rank=rank))
    return found


def _one_each(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Process → number, without processes that have several and without numbers that several have."""
    numbers: dict[str, set[int]] = {}
    for pid, number in pairs:
        numbers.setdefault(pid, set()).add(number)
    owners: dict[int, set[str]] = {}
    for pid, several in numbers.items():
        for number in several:
            owners.setdefault(number, set()).add(pid)
    return {
        pid: number
        for pid, several in numbers.items()
        for number in several
        if len(several) == 1 and len(owners[number]) == 1
    }
