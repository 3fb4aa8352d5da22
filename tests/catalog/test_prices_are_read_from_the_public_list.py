"""``amlstack sizes --refresh --prices``: Azure's public price list, read without a sign-in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from amlstack.catalog import files
from amlstack.cli import refresh
from amlstack.cli.main import main
from tests.support.loopback import Loopback, reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

H100 = "Standard_ND96isr_H100_v5"


def item(
    meter: str, price: float, product: str = "Virtual Machines NDsr H100 v5 Series", **more: Any
) -> dict[str, Any]:
    return {
        "armSkuName": H100, "armRegionName": "westeurope", "meterName": meter, "productName": product,
        "retailPrice": price, "unitOfMeasure": "1 Hour", "currencyCode": "USD", "type": "Consumption", **more,
    }  # fmt: skip


ITEMS = [
    item("ND96isrH100v5", 110.0),
    item("ND96isrH100v5", 114.4, "Virtual Machines NDsr H100 v5 Series Windows"),
    item("ND96isrH100v5 Spot", 20.5),
    item("ND96isrH100v5 Spot", 24.5),
    item("ND96isrH100v5 Low Priority", 22.0),
    item("ND96isrH100v5", 1.0, unitOfMeasure="1 GB"),
    item("ND96isrH100v5", 500.0, currencyCode="EUR"),
    item("HC44rs Spot", 0.4, armSkuName="Standard_HC44rs"),
]


class Listing:
    """The rows of the list, and the questions put to it; an answer is cut into pages."""

    def __init__(self) -> None:
        self.items: Any = ITEMS
        self.asked: list[str] = []
        self.status = 200
        self.url = ""

    def __call__(self, http: BaseHTTPRequestHandler, _: bytes) -> None:
        assert "Authorization" not in http.headers
        query = parse_qs(urlsplit(http.path).query)
        if self.status != 200 or not isinstance(self.items, list):
            reply(http, self.status, self.items)
            return
        start = int(query.get("$skip", ["0"])[0])
        if not start:
            self.asked.append(query["$filter"][0])
            names = query["$filter"][0]
        else:
            names = self.asked[-1]
        page = [one for one in self.items if f"'{one['armSkuName']}'" in names]
        following = f"{self.url}/prices?$skip={start + 3}" if start + 3 < len(page) else None
        reply(http, 200, {"Items": page[start : start + 3], "NextPageLink": following})


@pytest.fixture
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listing]:
    listing = Listing()
    server = Loopback(tmp_path, listing)
    listing.url = server.url
    for key, value in server.environ().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv(refresh.VARIABLE, f"{server.url}/prices")
    monkeypatch.setenv("AMLSTACK_TODAY", "2026-12-01")
    (tmp_path / "prices.json").write_text(files.path("prices").read_text())
    real = files.path  # what no copy was made of is read where it is, if no test before has read it
    monkeypatch.setattr(files, "path", lambda name: own if (own := tmp_path / f"{name}.json").exists() else real(name))
    try:
        yield listing
    finally:
        server.close()


ASK = ["sizes", "--refresh", "--prices", "--region", "westeurope"]


def test_dedicated_low_priority_and_spot_prices_of_linux_are_written_apart(listing: Listing, tmp_path: Path) -> None:
    before = json.loads((tmp_path / "prices.json").read_text())

    assert main([*ASK, "--write"]) == 0

    after = json.loads((tmp_path / "prices.json").read_text())
    assert after[: len(before)] == before
    assert after[len(before) :] == [
        {
            "size": H100, "region": "westeurope", "usd": 110.0, "low_priority": 22.0, "spot": 24.5,
            "source": "Azure Retail Prices API", "checked": "2026-12-01", "note": "",
        }
    ]  # fmt: skip
    assert all("armRegionName eq 'westeurope'" in asked for asked in listing.asked)
    assert len(listing.asked) > 1


def test_a_price_that_did_not_change_gets_the_new_day(
    listing: Listing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*ASK, "--write"]) == 0
    monkeypatch.setenv("AMLSTACK_TODAY", "2027-01-01")

    assert main([*ASK, "--write"]) == 0

    assert json.loads((tmp_path / "prices.json").read_text())[-1]["checked"] == "2027-01-01"


def test_without_write_the_change_is_shown_alone(
    listing: Listing, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (tmp_path / "prices.json").read_text()

    assert main(ASK) == 0

    out = capsys.readouterr().out
    assert (tmp_path / "prices.json").read_text() == before
    assert '+{"size": "Standard_ND96isr_H100_v5", "region": "westeurope", "usd": 110.0' in out
    assert "The price list has 1 of" in out
    assert "--write does" in out


@pytest.mark.parametrize(
    ("status", "items", "words"),
    [(503, {"error": "busy"}, "503"), (200, {"value": []}, "answered without `Items`"), (200, "no", "without `Items`")],
)
def test_a_list_that_does_not_answer_ends_with_a_message(
    listing: Listing, capsys: pytest.CaptureFixture[str], status: int, items: Any, words: str
) -> None:
    listing.status, listing.items = status, items

    assert main(ASK) == 1
    assert words in capsys.readouterr().err


def test_a_misspelt_region_is_not_asked_for(listing: Listing, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "--refresh", "--prices", "--region", "westeuropa"]) == 1
    assert "Did you mean `westeurope`?" in capsys.readouterr().err
    assert listing.asked == []
