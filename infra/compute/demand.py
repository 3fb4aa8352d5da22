"""What the clusters of a stack may use, and what those that a workspace has may use now."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from infra.settings import Settings


@dataclass(frozen=True, slots=True)
class Demand:
    """What one cluster may use.

    Attributes:
        index: Of the cluster in the settings.
        name: Of the cluster.
        location: Region of its nodes.
        size: Name of the size.
        low_priority: Whether its nodes are.
        least: Nodes that are asked for at once.
        most: Nodes at most.
    """

    index: int
    name: str
    location: str
    size: str
    low_priority: bool
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Existing:
    """The clusters that the workspace has, by name in lower case.

    Attributes:
        clusters: As ``amlstack:capacity:ofWorkspace`` answers them.
    """

    clusters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Existing:
        """From the answer."""
        return cls({str(row["name"]).lower(): row for row in rows})

    def has(self, demand: Demand) -> bool:
        """Whether a cluster is there already, with this size in this region."""
        row = self.clusters.get(demand.name.lower(), {})
        same = str(row.get("size", "")).lower() == demand.size.lower() and row.get("location") == demand.location
        return same and (row.get("priority") == "LowPriority") == demand.low_priority

    def most(self, demand: Demand) -> int:
        """The nodes that such a cluster may have now."""
        return int(self.clusters[demand.name.lower()]["max"]) if self.has(demand) else 0


def demands(settings: Settings) -> tuple[Demand, ...]:
    """What the clusters of a stack may use."""
    return tuple(
        Demand(
            index,
            cluster.name,
            cluster.location or settings.location,
            cluster.size,
            cluster.priority == "low_priority",
            cluster.nodes.min,
            cluster.nodes.max,
        )
        for index, cluster in enumerate(settings.clusters)
    )


def regions(wanted: Iterable[Demand]) -> dict[str, set[str]]:
    """What to ask: regions, and the sizes that are declared there."""
    found: dict[str, set[str]] = defaultdict(set)
    for demand in wanted:
        found[demand.location].add(demand.size)
    return dict(found)
