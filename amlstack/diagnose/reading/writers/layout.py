"""What the lines of a log show about its job: who wrote it, which ranks there are, how many on a node."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amlstack.diagnose.reading.writers.prefixes import Line

MOST_RANKS = 4000

_LAUNCHER = re.compile(
    r"torch\.distributed\.(?:elastic|launcher|run)|torch/distributed/elastic|ChildFailedError|torchelastic"
    r"|\[launch\.py:|deepspeed\.launcher|accelerate\.commands\.launch|elastic_operator"
)
_WORLD = re.compile(r"\b(?:nranks|world[_ ]size)\b\D{1,4}(\d{1,6})\b", re.IGNORECASE)
_PER_NODE = re.compile(r"\bnproc_per_node\s*[:=]\s*(\d{1,4})\b")
_READY = re.compile(
    r"distributed init \(rank (?P<rank>\d{1,6})|GLOBAL_RANK: (?P<rank2>\d{1,6}), MEMBER: \d+/(?P<world>\d{1,6})"
    r"|initialized host \S+ as rank (?P<rank3>\d{1,6})|to store for rank: (?P<rank4>\d{1,6})"
    r"|(?:init(?:ializ\w+)?|join\w*|ready)\b.{0,40}\brank[ =:]{1,2}(?P<rank5>\d{1,6})"
    r"(?: of |/|.{0,12}world[_ ]size\D{1,3})(?P<world2>\d{1,6})",
    re.IGNORECASE,
)
"""Each launcher's and framework's way to say that a rank is about to meet the others."""
_V1_RANK = re.compile(r"This is an MPI job\. Rank:(\d+)")


@dataclass(slots=True)
class Layout:
    """What is known of a log's job so far.

    Attributes:
        rank: The log's rank, when it is one rank's own log.
        launcher: A launcher wrote it.
        ranks: Ranks that its lines mention.
        world: Number of ranks.
        per_node: Processes per node.
        ready: Ranks that were about to meet the others.
    """

    rank: int | None = None
    launcher: bool = False
    ranks: set[int] = field(default_factory=set)
    world: int | None = None
    per_node: int | None = None
    ready: set[int] = field(default_factory=set)

    def feed(self, line: Line) -> None:
        """Takes one line."""
        if line.rank is not None and len(self.ranks) < MOST_RANKS:
            self.ranks.add(line.rank)
        text = line.text
        if not self.launcher and _LAUNCHER.search(text):
            self.launcher = True
        if self.world is None and (found := _WORLD.search(text)):
            self.world = int(found[1])
        if self.per_node is None and (found := _PER_NODE.search(text)):
            self.per_node = int(found[1])
        if len(self.ready) < MOST_RANKS and (found := _READY.search(text)):
            named = found.groupdict()
            self.ready.add(next(int(value) for name, value in named.items() if name.startswith("rank") and value))
            if world := named["world"] or named["world2"]:
                self.world = max(int(world), self.world or 0)
        if self.rank is None and (found := _V1_RANK.search(text)):
            self.rank = int(found[1])
