"""List prices of Linux nodes, dated and with their source; those of a team's overlay go before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.catalog import overlay
from amlstack.catalog.files import day, load

if TYPE_CHECKING:
    from datetime import date

DAYS_OF_A_MONTH = 30.4

HOME = "eastus"
"""The region whose price stands for a node of no known region: Azure's list has most sizes there, few for less."""

_SHOWN = {
    "retail-prices-2026": "Azure's price list",
    "karpenter-prices": "Azure's price list in Karpenter's copy",
    "skypilot-catalog": "Azure's price list in SkyPilot's copy, day estimated",
}
"""Sources of the data file, in the words that stand behind a figure."""


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one node: US dollars per hour in a region, as of a day and a source.

    Attributes:
        usd: A dedicated node, pay as you go, without reservation.
        region: Azure's name of the region.
        checked: The day, or the first day of the month, of which the price is.
        source: Where it was read, in words.
        low_priority: A low-priority node; None where it was not read. It moves less than the spot price.
        spot: A spot VM; None where it was not read. It changes from day to day.
    """

    usd: float
    region: str
    checked: date
    source: str
    low_priority: float | None = None
    spot: float | None = None

    def hourly(self, *, low_priority: bool) -> float:
        """The price of a node of that priority; the dedicated one, as a bound, where the other is not known."""
        return self.low_priority if low_priority and self.low_priority is not None else self.usd

    def months(self, on: date) -> int:
        """Its age in whole months on a day; 0 for one of the future."""
        return max(0, int((on - self.checked).days / DAYS_OF_A_MONTH))

    def basis(self, on: date) -> str:
        """Region, date, age and source, as they stand behind a figure."""
        months = self.months(on)
        age = "" if months < 1 else f", {months} month{'' if months == 1 else 's'} old"
        return f"{self.region}, {self.checked:%Y-%m}{age}, {self.source}"


class NodePrice(NamedTuple):
    """US dollars per hour of a node of a region and priority, and what the figure rests on."""

    usd: float
    basis: str


def prices_of(size: str, series: str, vcpus: int | None) -> tuple[Price, ...]:
    """The prices of a size, best first: the team's own, then the list's newest of each region, `HOME`'s, the lowest.

    Args:
        size: Azure's name.
        series: Its series, for prices that are given per vCPU.
        vcpus: Its vCPUs; None where unknown.
    """
    given = overlay.current()
    own = [price for row in given.prices if row["size"].lower() == size.lower() for price in _priced(row, vcpus)]
    newest: dict[str, Price] = {}
    for row in (*_by("size").get(size, ()), *(_by("series").get(series, ()) if vcpus else ())):
        for price in _priced(row, vcpus):
            before = newest.get(price.region)
            if before is None or before.checked < price.checked:
                newest[price.region] = price
    discount = given.discount(size, series)
    listed = sorted(newest.values(), key=lambda price: (price.region != HOME, price.usd))
    return (*own, *(_discounted(price, discount) for price in listed))


def _discounted(price: Price, share: float) -> Price:
    if not share:
        return price
    low, spot = (None if usd is None else round(usd * (1 - share), 4) for usd in (price.low_priority, price.spot))
    source = f"{price.source} less {share:.4g} of it"
    return replace(price, usd=round(price.usd * (1 - share), 4), source=source, low_priority=low, spot=spot)


def _priced(row: Mapping[str, Any], vcpus: int | None) -> Iterator[Price]:
    """The prices of a row: of one region, or of all those by which it is ordered."""
    checked = day(row["checked"])
    source = _SHOWN.get(row["source"], row["source"])
    if "usd" in row:
        yield Price(row["usd"], row["region"], checked, source, row.get("low_priority"), row.get("spot"))
    for region, usd in row.get("usd_by_region", _NONE).items():
        yield Price(usd, region, checked, source)
    for region, usd in row.get("usd_per_vcpu_by_region", _NONE).items():
        yield Price(round(usd * (vcpus or 0), 3), region, checked, source)


_NONE: Mapping[str, float] = {}


@cache
def _by(key: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of the data file by their size, or by their series."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in load("prices"):
        if key in row:
            found.setdefault(row[key], []).append(row)
    return found
