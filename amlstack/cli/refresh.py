"""Renews the catalogue's data: sizes and prices asked of Azure, prices read from the public list."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import requests

from amlstack.base.api_versions import SKUS
from amlstack.base.files import write_whole
from amlstack.catalog import files, sizes
from amlstack.cli.console import end, say
from amlstack.provider.arm import API_VERSION, ArmClient, ArmError, SignIn, endpoint

if TYPE_CHECKING:
    from datetime import date

NUMBERS: Final = {"vCPUs": "vcpus", "MemoryGB": "memory_gib", "GPUs": "gpus"}
"""Capability of a SKU → key of a row."""
VARIABLE: Final = "AMLSTACK_PRICE_LIST"
"""Names another address of the list, a mirror inside a company for instance."""
ADDRESS: Final = "https://prices.azure.com/api/retail/prices"
VERSION: Final = "2023-01-01-preview"
_AT_ONCE = 20
"""Sizes of one question: the filter travels in the address."""
_SECONDS = 60


def refresh(subscription: str | None, location: str, on: date, *, write: bool) -> None:
    """Show what a region's data of Azure would change in the catalogue, and write it if it is to be written.

    Raises:
        typer.Exit: Azure could not be asked, or no subscription is named.
    """
    if not subscription:
        end(
            "--refresh asks Azure: name a subscription, --subscription ID or AZURE_SUBSCRIPTION_ID; "
            "--refresh --prices reads the public price list without one."
        )
    arm = ArmClient(endpoint(cloud=SignIn.read({}).cloud))
    base = f"/subscriptions/{subscription}/providers"
    query = {"$filter": f"location eq '{location}'"}
    try:
        skus = {
            sku["name"].lower(): sku
            for sku in _paged(arm, f"{base}/Microsoft.Compute/skus", SKUS, query)
            if sku.get("resourceType") == "virtualMachines"
        }
        path = f"{base}/Microsoft.MachineLearningServices/locations/{location}/vmSizes"
        listed = {size["name"].lower(): size for size in _paged(arm, path, API_VERSION, {})}
    except ArmError as error:
        end(f"Azure could not be asked for sizes. {error}", 1)
    rows, prices, notes = _rows("sizes"), list[dict[str, Any]](), list[str]()
    for row in rows:
        name = row["name"].lower()
        if sku := skus.get(name):
            notes += _capabilities(row, sku)
        if size := listed.get(name):
            if (kinds := size.get("supportedComputeTypes")) is not None:
                row["azureml_supported"] = "amlcompute" in {kind.lower() for kind in kinds}
            prices += _price(row["name"], size, location, on)
    known = {row["name"].lower() for row in rows}
    notes += sorted(
        f"{sku['name']} is new: Azure has it ({_short(sku)}), the catalogue does not. Look its fabric up, add a line"
        for name, sku in skus.items()
        if name not in known and (_number(sku, "GPUs") or _yes(sku, "RdmaEnabled"))
    )
    changed = _renew("sizes", rows, write=write)
    changed |= _renew_prices(prices, write=write)
    for note in notes:
        say(f"note: {note}.")
    _close(location, changed=changed, write=write)


def refresh_prices(location: str, on: date, *, write: bool) -> None:
    """Show what the public price list would change in the catalogue, and write it if it is to be written.

    Raises:
        typer.Exit: The list could not be asked, or answered something else than a list of prices.
    """
    names = [size.name for size in sizes.all_sizes() if not size.retired_on(on)]
    read = []
    for start in range(0, len(names), _AT_ONCE):
        asked = names[start : start + _AT_ONCE]
        items = list(_items(asked, location))
        for name in asked:
            tiers = _tiers(item for item in items if str(item.get("armSkuName", "")).lower() == name.lower())
            if "Standard" in tiers:
                read.append(_price_row(name, location, tiers, on, "Azure Retail Prices API"))
    changed = _renew_prices(read, write=write)
    say(f"The price list has {len(read)} of {len(names)} living sizes in {location}.")
    _close(location, changed=changed, write=write)


def _rows(data: str) -> Any:
    return json.loads(files.path(data).read_text(encoding="utf-8"))


def text_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as the data file has them: one line each."""
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"


def _renew(data: str, rows: Sequence[dict[str, Any]], *, write: bool) -> bool:
    """Show what changes in a data file, and write it if it is to be written; whether anything changes."""
    file, name = files.path(data), f"amlstack/catalog/data/{data}.json"
    before, after = file.read_text(encoding="utf-8"), text_of(rows)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", n=0, lineterm="")
    if change := "\n".join(lines):
        say(change)
        if write:
            write_whole(file, after)
            say(f"{file} is written: review it, then commit it.")
    return bool(change)


def _renew_prices(read: Sequence[dict[str, Any]], *, write: bool) -> bool:
    """Prices that were read replace older ones of the same size and region.

    A price that did not change gets the new day too: it was read again. What was read of sizes that had no price of
    their own stands at the end. Rows of many regions stay as they are: of one region the newest price counts.
    """
    new = {(row["size"], row["region"]): row for row in read}
    kept = [new.pop((row.get("size"), row.get("region")), row) for row in _rows("prices")]
    return _renew("prices", [*kept, *new.values()], write=write)


def _close(location: str, *, changed: bool, write: bool) -> None:
    if not changed:
        say(f"The catalogue says what Azure says in {location}.")
    elif not write:
        say("Nothing is written yet; --write does.")


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
        yield _price_row(name, location, tiers, on, "Azure ML vmSizes")


def _price_row(size: str, region: str, tiers: Mapping[str, float], on: date, source: str) -> dict[str, Any]:
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


def _paged(arm: ArmClient, path: str, api_version: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    answer = arm.get(path, api_version, query=query).body
    while True:
        yield from answer.get("value") or ()
        if not (link := answer.get("nextLink")):
            return
        answer = arm.request("GET", link, None).body


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
    answer = _answer(os.environ.get(VARIABLE) or ADDRESS, query)
    while True:
        yield from answer["Items"]
        if not (following := answer.get("NextPageLink")):
            return
        answer = _answer(following, None)


def _answer(url: str, query: Mapping[str, str] | None) -> dict[str, Any]:
    try:
        response = requests.get(url, params=query, timeout=_SECONDS)
        response.raise_for_status()
        answer = response.json()
    except (requests.RequestException, ValueError) as error:
        end(f"The price list at {url} could not be read: {error}.", 1)
    if not isinstance(answer, dict) or not isinstance(answer.get("Items"), list):
        end(f"The price list at {url} answered without `Items`: it is another service, or it has changed.", 1)
    return answer
