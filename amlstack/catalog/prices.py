"""List prices of Linux nodes, dated and with their source; those of a team's overlay go before them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from amlstack.catalog import overlay
from amlstack.catalog.files import day, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

DAYS_OF_A_MONTH = 30.4

_SHOWN = {
    "retail-prices-2026": "Azure's price list",
    "skypilot-catalog": "Azure's price list in SkyPilot's copy, day estimated",
}
"""Sources of the data file, in the words that stand behind a figure."""


@dataclass(frozen=True, slots=True)
class Price:
    """What one node costs: US dollars per hour in a region, as of a day and a source.

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

    def of(self, *, low_priority: bool) -> float:
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


def of(size: str, series: str, vcpus: int | None) -> tuple[Price, ...]:
    """The prices of a size, best first: the team's own, then the list's in the order of the data file.

    Args:
        size: Azure's name.
        series: Its series, for prices that are given per vCPU.
        vcpus: Its vCPUs; None where unknown.
    """
    given = overlay.current()
    own = [_priced(row, vcpus) for row in given.prices if row["size"].lower() == size.lower()]
    listed = [_priced(row, vcpus) for row in (*_by_size().get(size, ()), *_by_series(vcpus).get(series, ()))]
    discount = given.discount(size, series)
    return (*own, *(_discounted(price, discount) for price in listed))


def _discounted(price: Price, share: float) -> Price:
    if not share:
        return price
    low, spot = (None if usd is None else round(usd * (1 - share), 4) for usd in (price.low_priority, price.spot))
    source = f"{price.source} less {share:.4g} of it"
    return replace(price, usd=round(price.usd * (1 - share), 4), source=source, low_priority=low, spot=spot)


def _priced(row: Mapping[str, Any], vcpus: int | None) -> Price:
    usd = row["usd"] if "usd" in row else round(row["usd_per_vcpu"] * (vcpus or 0), 3)
    checked = row["checked"] if not isinstance(row["checked"], str) else day(row["checked"])
    source = _SHOWN.get(row["source"], row["source"])
    return Price(usd, row["region"], checked, source, row.get("low_priority"), row.get("spot"))


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    return tuple(load("prices"))


@cache
def _by_size() -> dict[str, tuple[dict[str, Any], ...]]:
    return dict(_grouped("size"))


def _by_series(vcpus: int | None) -> dict[str, tuple[dict[str, Any], ...]]:
    return _series_rows() if vcpus else {}


@cache
def _series_rows() -> dict[str, tuple[dict[str, Any], ...]]:
    return dict(_grouped("series"))


def _grouped(key: str) -> Iterator[tuple[str, tuple[dict[str, Any], ...]]]:
    names = dict.fromkeys(row[key] for row in _rows() if key in row)
    for name in names:
        yield name, tuple(row for row in _rows() if row.get(key) == name)
