"""``amlstack sizes --refresh``: numbers and prices follow Azure, hand-checked facts stay, contradictions are shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.catalog import files, sizes
from amlstack.cli import refresh
from amlstack.cli.main import main
from tests.support.catalog.sku_server import Azure, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def sku(name: str, **capabilities: object) -> dict[str, Any]:
    return {
        "resourceType": "virtualMachines",
        "name": name,
        "family": "standardNDFamily",
        "locations": ["westeurope"],
        "capabilities": [{"name": key, "value": str(value)} for key, value in capabilities.items()],
        "restrictions": [],
    }


def listed(
    name: str, price: float, *, currency: str = "USD", kinds: tuple[str, ...] = ("AmlCompute",)
) -> dict[str, Any]:
    values = [
        {"retailPrice": price, "osType": "Linux", "vmTier": "Standard"},
        {"retailPrice": price / 5, "osType": "Linux", "vmTier": "LowPriority"},
        {"retailPrice": price * 2, "osType": "Windows", "vmTier": "Standard"},
    ]
    prices = {"billingCurrency": currency, "unitOfMeasure": "OneHour", "values": values}
    return {"name": name, "estimatedVMPrices": prices, "supportedComputeTypes": list(kinds)}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of the data files; that of the sizes, which the verb takes for the catalogue's."""
    for name in ("sizes", "prices"):
        (tmp_path / f"{name}.json").write_text(files.path(name).read_text())
    real = files.path  # what no copy was made of is read where it is, if no test before has read it
    monkeypatch.setattr(files, "path", lambda name: own if (own := tmp_path / f"{name}.json").exists() else real(name))
    return tmp_path / "sizes.json"


@pytest.fixture
def azure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Azure]:
    known = Azure(
        skus=[
            sku("Standard_ND96isr_H100_v5", vCPUs=96, MemoryGB="1901", GPUs=8, RdmaEnabled=True),
            {"resourceType": "disks", "name": "Premium_LRS"},
            sku("Standard_NC24r", vCPUs=24, MemoryGB=224, GPUs=4, RdmaEnabled=True),
            sku("Standard_ND40rs_v2", vCPUs=40, GPUs=8, RdmaEnabled=False),
            sku("Standard_ND512isr_X_v9", vCPUs=512, GPUs=8, RdmaEnabled=True),
            sku("Standard_D2_v9", vCPUs=2, MemoryGB=8),
        ],
        listed=[
            listed("Standard_ND96isr_H100_v5", 98.32),
            listed("Standard_ND40rs_v2", 22.0, currency="EUR"),
            listed("Standard_DS3_v2", 0.27, kinds=("ComputeInstance",)),
        ],
    )
    with served(known, tmp_path) as environ:
        for key, value in environ.items():
            monkeypatch.setenv(key, value)
        monkeypatch.setenv("AMLSTACK_TODAY", "2026-08-01")
        monkeypatch.delenv("AZURE_SUBSCRIPTION_ID", raising=False)
        yield known


def rows(path: Path) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(path.read_text())}


ASK = ["sizes", "--refresh", "--subscription", "s", "--location", "westeurope"]


def test_numbers_and_prices_are_written_and_nothing_that_was_checked_by_hand(
    azure: Azure, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows(data)

    assert main([*ASK, "--write"]) == 0

    after = rows(data)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"Standard_ND96isr_H100_v5", "Standard_NC24r", "Standard_ND40rs_v2", "Standard_DS3_v2"}
    h100 = after["Standard_ND96isr_H100_v5"]
    assert h100["memory_gib"] == 1901
    prices = json.loads((data.parent / "prices.json").read_text())
    (price,) = (row for row in prices if row.get("size") == h100["name"] and row.get("region") == "westeurope")
    assert price == {
        "size": "Standard_ND96isr_H100_v5",
        "region": "westeurope",
        "usd": 98.32,
        "low_priority": 19.664,
        "spot": None,
        "source": "Azure ML vmSizes",
        "checked": "2026-08-01",
        "note": "",
    }
    assert not [row for row in prices if row.get("size") == "Standard_ND40rs_v2" and row.get("region") == "westeurope"]
    assert after["Standard_DS3_v2"]["azureml_supported"] is False
    by_hand = ("rdma", "sriov", "infiniband", "gbps_per_node", "retired", "source", "checked", "note", "series")
    assert all(after[name][key] == before[name][key] for name in before for key in by_hand)
    assert list(after) == list(before)
    out = capsys.readouterr().out
    assert "note: Standard_ND40rs_v2 has not RDMA for Azure and has for the catalogue" in out
    assert "note: Standard_ND512isr_X_v9 is new: Azure has it (8 GPUs, RDMA)" in out
    assert "Standard_D2_v9" not in out


def test_every_page_is_asked_for(azure: Azure, data: Path) -> None:
    assert main(ASK) == 0

    pages = [asked for asked in azure.asked if "/Microsoft.Compute/skus" in asked]
    assert len(pages) == 3
    assert pages[0].endswith("?location eq 'westeurope'")


def test_without_write_the_change_is_shown_as_a_diff_and_the_file_stays(
    azure: Azure, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = data.read_text()

    assert main(ASK) == 0

    out = capsys.readouterr().out
    assert data.read_text() == before
    assert "--- a/amlstack/catalog/data/sizes.json" in out
    assert "--- a/amlstack/catalog/data/prices.json" in out
    # Four sizes; two prices at the end of the list, whose former last line gets a comma.
    assert (out.count("\n-{"), out.count("\n+{")) == (4 + 1, 4 + 1 + 2)
    assert "--write does" in out


def test_what_was_written_reads_as_a_catalogue_and_a_second_refresh_changes_nothing(
    azure: Azure, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ASK, "--write"]) == 0
    once = data.read_text()
    capsys.readouterr()

    assert main([*ASK, "--write"]) == 0

    assert data.read_text() == once
    assert "says what Azure says in westeurope" in capsys.readouterr().out
    read = {size.name: size for size in (sizes._size(dict(row)) for row in json.loads(once))}
    assert read["Standard_ND96isr_H100_v5"].memory_gib == 1901


def test_the_data_file_has_the_form_that_a_refresh_writes() -> None:
    text = files.path("sizes").read_text()

    assert refresh.text_of(json.loads(text)) == text


def test_a_refusal_of_azure_is_shown_in_its_own_words(
    azure: Azure, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    azure.refuses = True

    assert main(ASK) == 1
    assert "AuthorizationFailed" in capsys.readouterr().err


def test_without_a_subscription_nothing_is_asked(azure: Azure, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "--refresh"]) == 2
    assert "name a subscription" in capsys.readouterr().err
    assert azure.asked == []
