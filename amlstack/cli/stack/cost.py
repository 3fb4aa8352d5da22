"""The cost per hour of a stack's clusters, idle and at most. An unknown price gives no number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.catalog import clock, regions, sizes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amlstack.catalog.sizes import Price
    from infra.settings import Settings

OTHERS = (
    "storage, registry, key vault, logs and networks are paid for besides, by use or by day: the catalogue has no "
    "prices of them (docs/azure.md)"
)


@dataclass(frozen=True, slots=True)
class ClusterCost:
    """One cluster.

    Attributes:
        name: Its name.
        size: Its VM size.
        least, most: Nodes.
        price: Of one node; None when the catalogue has none.
        low_priority: Whether its nodes are of low priority.
    """

    name: str
    size: str
    least: int
    most: int
    price: Price | None
    low_priority: bool

    @property
    def each(self) -> float | None:
        """US dollars per hour of one node of its priority, as far as that is known; None without a price."""
        return None if self.price is None else self.price.hourly(low_priority=self.low_priority)

    @property
    def idle(self) -> float | None:
        """US dollars per hour without work; None when that is not known."""
        if not self.least:
            return 0.0
        return None if self.each is None else self.least * self.each

    @property
    def busy(self) -> float | None:
        """US dollars per hour with all nodes; None when that is not known."""
        if not self.most:
            return 0.0
        return None if self.each is None else self.most * self.each


def costs_of(settings: Settings) -> tuple[ClusterCost, ...]:
    """The clusters of a stack."""
    found = []
    for cluster in settings.clusters:
        size = sizes.get(cluster.size)
        price = size.price_in(regions.code(cluster.location or settings.location)) if size else None
        low = cluster.priority == "low_priority"
        found.append(ClusterCost(cluster.name, cluster.size, cluster.nodes.min, cluster.nodes.max, price, low))
    return tuple(found)


def lines(costs: Sequence[ClusterCost]) -> Iterator[str]:
    """A line for what is paid while nothing runs, one for the most, and one for what the figures leave out."""
    if costs:
        yield f"while idle: {_together(costs, 'idle')}"
        yield f"at most: {_together(costs, 'busy')}"
        yield from _basis(costs)
    yield OTHERS


def as_dict(costs: Sequence[ClusterCost]) -> dict[str, Any]:
    """Plain data for ``--json``: None is unknown."""
    return {
        "idle_usd_per_hour": _sum(costs, "idle"),
        "most_usd_per_hour": _sum(costs, "busy"),
        "clusters": [
            {
                "name": one.name,
                "size": one.size,
                "nodes": {"min": one.least, "max": one.most},
                "usd_per_node_hour": one.each,
                "price_of": None if one.price is None else one.price.checked.isoformat(),
                "idle_usd_per_hour": one.idle,
                "most_usd_per_hour": one.busy,
            }
            for one in costs
        ],
    }


def _together(costs: Sequence[ClusterCost], which: str) -> str:
    """``12.50 USD per hour for nodes``, or the nodes whose price is not known."""
    known = sum(value for one in costs if (value := getattr(one, which)) is not None)
    unknown = [one for one in costs if getattr(one, which) is None]
    if not unknown:
        return f"{known:,.2f} USD per hour for nodes"
    of_each = ", ".join(f"{_nodes(one.least if which == 'idle' else one.most)} of {one.size}" for one in unknown)
    beside = f"{known:,.2f} USD per hour for nodes, and " if known else ""
    return f"{beside}unknown for {of_each}: no price in the catalogue (`amlstack sizes --refresh` asks Azure)"


def _basis(costs: Sequence[ClusterCost]) -> Iterator[str]:
    today = clock.today()
    yield from sorted({f"prices of {one.price.basis(today)}" for one in costs if one.price is not None and one.most})
    if any(one.low_priority and one.price is not None and one.price.low_priority is None for one in costs):
        yield "low-priority nodes cost less than these prices of dedicated ones"


def _sum(costs: Sequence[ClusterCost], which: str) -> float | None:
    values = [getattr(one, which) for one in costs]
    return None if any(value is None for value in values) else float(sum(values))


def _nodes(number: int) -> str:
    return f"{number} node{'' if number == 1 else 's'}"
