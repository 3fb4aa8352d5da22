"""Azure's public price list (Retail Prices API), read for the sizes of the catalogue in one region. No sign-in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from amlstack.cli.catalogue.refresh import price_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date

VARIABLE: Final = "AMLSTACK_PRICE_LIST"
"""Names another address of the list, a mirror inside a company for instance."""

ADDRESS: Final = "https://prices.azure.com/api/retail/prices"
VERSION: Final = "2023-01-01-preview"
SOURCE: Final = "Azure Retail Prices API"

_AT_ONCE = 20
"""Sizes of one question: the filter travels in the address."""
_SECONDS = 60


class PriceListError(Exception):
    """The list could not be read; the message is for the user."""


def read(sizes: Sequence[str], region: str, on: date) -> tuple[dict[str, Any], ...]:
    """Rows of ``data/prices.json`` for those sizes that the list has in the region.

    Raises:
        PriceListError: The list could not be asked, or answered something else than a list of prices.
    """
    found = []
    for start in range(0, len(sizes), _AT_ONCE):
        asked = sizes[start : start + _AT_ONCE]
        items = list(_items(asked, region))
        for size in asked:
            tiers = _tiers(item for item in items if str(item.get("armSkuName", "")).lower() == size.lower())
            if "Standard" in tiers:
                found.append(price_row(size, region, tiers, on, SOURCE))
    return tuple(found)


def _tiers(items: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Tier → US dollars per hour of Linux; the highest where the list has several meters of one tier."""
    tiers: dict[str, float] = {}
    for item in items:
        kind = f"{item.get('meterName', '')} {item.get('skuName', '')}".lower()
        hourly = item.get("unitOfMeasure") == "1 Hour" and item.get("currencyCode") == "USD"
        if not hourly or "windows" in str(item.get("productName", "")).lower():
            continue
        tier = "Spot" if "spot" in kind else "LowPriority" if "low priority" in kind else "Standard"
        usd = round(float(item.get("retailPrice") or 0), 4)
        if usd > 0:
            tiers[tier] = max(usd, tiers.get(tier, 0))
    return tiers


def _items(sizes: Sequence[str], region: str) -> Iterator[dict[str, Any]]:
    names = " or ".join(f"armSkuName eq '{size}'" for size in sizes)
    what = f"serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and armRegionName eq '{region}'"
    query = {"api-version": VERSION, "currencyCode": "USD", "$filter": f"{what} and ({names})"}
    answer = _get(os.environ.get(VARIABLE) or ADDRESS, query)
    while True:
        yield from answer["Items"]
        following = answer.get("NextPageLink")
        if not following:
            return
        answer = _get(following, None)


def _get(url: str, query: Mapping[str, str] | None) -> dict[str, Any]:
    import requests

    try:
        response = requests.get(url, params=query, timeout=_SECONDS)
        response.raise_for_status()
        answer = response.json()
    except (requests.RequestException, ValueError) as error:
        message = f"The price list at {url} could not be read: {error}"
        raise PriceListError(message) from None
    if not isinstance(answer, dict) or not isinstance(answer.get("Items"), list):
        message = f"The price list at {url} answered without `Items`: it is another service, or it has changed"
        raise PriceListError(message)
    return answer
