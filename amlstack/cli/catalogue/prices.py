"""Prices and sizes of a subscription, asked of Azure and written as a team's overlay."""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from amlstack.provider.arm import ArmClient

SKUS_API: Final = "2021-07-01"
NUMBERS: Final = {"vCPUs": "vcpus", "MemoryGB": "memory_gib", "GPUs": "gpus"}
"""Capability of a SKU → key of a row."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The outcome of a refresh.

    Attributes:
        rows: The catalogue's rows, brought up to date, in their order.
        prices: Rows of prices that Azure ML states for them.
        notes: What somebody has to look at: contradictions, new sizes, restrictions.
    """

    rows: tuple[dict[str, Any], ...]
    prices: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]


def ask(arm: ArmClient, subscription: str, location: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The virtual machine SKUs of a region, and Azure ML's own list of sizes there.

    Raises:
        ArmError: Azure could not be asked, or refused.
    """
    base = f"/subscriptions/{subscription}/providers"
    query = {"$filter": f"location eq '{location}'"}
    skus = [
        sku
        for sku in _paged(arm, f"{base}/Microsoft.Compute/skus", SKUS_API, query)
        if sku.get("resourceType") == "virtualMachines"
    ]
    listed = _paged(arm, f"{base}/Microsoft.MachineLearningServices/locations/{location}/vmSizes", None, {})
    return skus, list(listed)


def fold(
    rows: Sequence[Mapping[str, Any]],
    skus: Sequence[Mapping[str, Any]],
    listed: Sequence[Mapping[str, Any]],
    *,
    location: str,
    on: date,
) -> Refreshed:
    """Bring rows up to date with Azure's data.

    Args:
        rows: Rows of ``sizes.json``.
        skus: Compute's SKUs of the region.
        listed: Azure ML's sizes of the region.
        location: The region.
        on: The day on which it was asked, for the prices.
    """
    by_name = {sku["name"].lower(): sku for sku in skus}
    ml = {size["name"].lower(): size for size in listed}
    notes: list[str] = []
    found: list[dict[str, Any]] = []
    stated: list[dict[str, Any]] = []
    for row in rows:
        name = row["name"].lower()
        new = dict(row)
        if sku := by_name.get(name):
            notes += _capabilities(new, sku)
        if size := ml.get(name):
            _supported(new, size)
            stated += _price(row["name"], size, location, on)
        found.append(new)
    known = {row["name"].lower() for row in rows}
    notes += sorted(
        f"{sku['name']} is new: Azure has it ({_short(sku)}), the catalogue does not. Look its fabric up, add a line"
        for name, sku in by_name.items()
        if name not in known and (_number(sku, "GPUs") or _yes(sku, "RdmaEnabled"))
    )
    return Refreshed(tuple(found), tuple(stated), tuple(notes))


def text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as the data file has them: one line each."""
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"


def diff(before: str, after: str, data: str = "sizes") -> str:
    """The changes of a data file, as a unified diff; empty where there are none."""
    name = f"amlstack/catalog/data/{data}.json"
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", n=0, lineterm="")
    return "\n".join(lines)


def _capabilities(row: dict[str, Any], sku: Mapping[str, Any]) -> Iterator[str]:
    """Take the numbers over; report where Azure and a hand-checked fact disagree."""
    for capability, key in NUMBERS.items():
        value = _number(sku, capability)
        if value is not None and value != row[key]:
            row[key] = value
    if sku.get("family"):
        row["family"] = sku["family"]
    if _given(sku, "RdmaEnabled") is not None and _yes(sku, "RdmaEnabled") is not row["rdma"]:
        theirs, ours = ("has", "has not") if _yes(sku, "RdmaEnabled") else ("has not", "has")
        yield f"{row['name']} {theirs} RDMA for Azure and {ours} for the catalogue: nothing was changed, look it up"
    for restriction in sku.get("restrictions") or ():
        if restriction.get("type") == "Location":
            yield f"{row['name']} is restricted there: {restriction.get('reasonCode', 'no reason given')}"


def _supported(row: dict[str, Any], size: Mapping[str, Any]) -> None:
    kinds = size.get("supportedComputeTypes")
    if kinds is not None:
        row["azureml_supported"] = "amlcompute" in {kind.lower() for kind in kinds}


def _price(name: str, size: Mapping[str, Any], location: str, on: date) -> Iterator[dict[str, Any]]:
    """The prices of a Linux node; other currencies and units are left alone."""
    prices = size.get("estimatedVMPrices") or {}
    if prices.get("billingCurrency") != "USD" or prices.get("unitOfMeasure") != "OneHour":
        return
    tiers = {
        one.get("vmTier"): round(float(one["retailPrice"]), 4)
        for one in prices.get("values") or ()
        if one.get("osType") == "Linux"
    }
    if "Standard" in tiers:
        yield price_row(name, location, tiers, on, "Azure ML vmSizes")


def price_row(size: str, region: str, tiers: Mapping[str, float], on: date, source: str) -> dict[str, Any]:
    """One row of ``data/prices.json``; `tiers` has ``Standard`` and perhaps ``LowPriority`` and ``Spot``."""
    return {
        "size": size,
        "region": region,
        "usd": tiers["Standard"],
        "low_priority": tiers.get("LowPriority"),
        "spot": tiers.get("Spot"),
        "source": source,
        "checked": on.isoformat(),
        "note": "",
    }


def fold_prices(rows: Sequence[Mapping[str, Any]], read: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The rows of prices with those that were read in the place of older ones of the same size and region.

    A price that did not change gets the new day too: it was read again. What was read of sizes that had no price of
    their own stands at the end. Rows of many regions stay as they are: of one region the newest price counts.
    """
    new = {(row["size"], row["region"]): dict(row) for row in read}
    kept = []
    for row in rows:
        key = (row.get("size"), row.get("region"))
        kept.append(new.pop(key) if key in new else dict(row))
    return (*kept, *new.values())


def _given(sku: Mapping[str, Any], capability: str) -> str | None:
    return next((one["value"] for one in sku.get("capabilities") or () if one["name"] == capability), None)


def _number(sku: Mapping[str, Any], capability: str) -> int | float | None:
    given = _given(sku, capability)
    if given is None:
        return None
    value = float(given)
    return int(value) if value.is_integer() else value


def _yes(sku: Mapping[str, Any], capability: str) -> bool:
    return (_given(sku, capability) or "").lower() == "true"


def _short(sku: Mapping[str, Any]) -> str:
    return f"{_number(sku, 'GPUs') or 0} GPUs, {'RDMA' if _yes(sku, 'RdmaEnabled') else 'no RDMA'}"


def _paged(arm: ArmClient, path: str, api_version: str | None, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    from amlstack.provider.arm import API_VERSION

    answer = arm.get(path, api_version or API_VERSION, query=query).body
    while True:
        yield from answer.get("value") or ()
        link = answer.get("nextLink")
        if not link:
            return
        answer = arm.request("GET", link, None).body


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
