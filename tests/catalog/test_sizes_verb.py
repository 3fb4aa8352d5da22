"""``amlstack sizes``: table, filters, JSON, one size explained."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.catalog import sizes
from amlstack.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_TODAY", "2026-08-01")


@pytest.fixture
def rows(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict[str, Any]]]:
    def ask(*words: str) -> list[dict[str, Any]]:
        assert main(["sizes", *words, "--json"]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return found

    return ask


def test_json_lists_every_size_with_what_training_depends_on(rows: Callable[..., list[dict[str, Any]]]) -> None:
    found = {row["name"]: row for row in rows()}

    assert set(found) == {size.name for size in sizes.all_sizes()}
    wanted = {"name", "gpus", "rdma", "sriov", "infiniband", "retired", "alive"}
    assert {key: value for key, value in found["Standard_NC24rs_v3"].items() if key in wanted} == {
        "name": "Standard_NC24rs_v3",
        "gpus": 4,
        "rdma": True,
        "sriov": True,
        "infiniband": "FDR",
        "retired": "2025-09-30",
        "alive": False,
    }


@pytest.mark.parametrize(
    ("words", "keeps"),
    [
        (["--gpus", "8"], lambda size: size.gpus == 8),
        (["--gpus", "0"], lambda size: size.gpus == 0),
        (["--gpu", "h100"], lambda size: size.gpu_model == "H100"),
        (["--infiniband"], lambda size: size.fabric.usable),
        (["--no-infiniband"], lambda size: not size.fabric.usable),
        (["--alive"], lambda size: size.retired is None or size.retired.isoformat() > "2026-08-01"),
        (["--retired"], lambda size: size.retired is not None and size.retired.isoformat() <= "2026-08-01"),
        (["--family", "nd_h"], lambda size: "nd_h" in size.series.lower()),
        (["--gpus", "8", "--infiniband", "--alive"], lambda size: size.gpus == 8 and size.fabric.usable
         and (size.retired is None or size.retired.isoformat() > "2026-08-01")),
    ],
)  # fmt: skip
def test_filters(
    rows: Callable[..., list[dict[str, Any]]], words: list[str], keeps: Callable[[sizes.Size], bool]
) -> None:
    on = date(2026, 8, 1)
    kept = [size for size in sizes.all_sizes() if keeps(size)]
    living = [size.name for size in kept if not size.retired_on(on)]
    retired = [size.name for size in kept if size.retired_on(on)]

    assert [row["name"] for row in rows(*words)] == [*living, *retired]
    assert 0 < len(kept) < len(sizes.all_sizes())


def test_the_table_has_one_whole_line_per_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "--gpu", "H200"]) == 0
    lines = capsys.readouterr().out.splitlines()

    (line,) = [line for line in lines if line.startswith("Standard_ND96isr_H200_v5 ")]
    assert " ".join(line.split()) == (
        "Standard_ND96isr_H200_v5 8 x H200 141 GiB 96 1850 NDR 3200 yes current or extended 84.80 eastus2, 2026-06"
    )


def test_the_table_marks_what_ends_and_what_new_subscriptions_do_not_get(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "--family", "DSv2"]) == 0
    out = capsys.readouterr().out

    (line,) = [line for line in out.splitlines() if line.startswith("Standard_DS3_v2 ")]
    assert "end of life 2028-05-01, closed to new subscriptions" in line


def test_a_price_is_that_of_the_region_asked_for(
    rows: Callable[..., list[dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    (here,) = (row for row in rows("--region", "UK South") if row["name"] == "Standard_ND96isr_H100_v5")
    (nowhere,) = (row for row in rows("--region", "uksouth") if row["name"] == "Standard_ND40rs_v2")

    assert (here["price_per_hour"]["usd"], here["price_per_hour"]["low_priority"]) == (122.9, 24.58)
    assert nowhere["price_per_hour"] is None
    assert main(["sizes", "Standard_ND96isr_H100_v5", "--region", "uksouth"]) == 0
    assert "122.90 USD per hour, 24.58 low priority, 22.71 spot (uksouth, 2026-08" in capsys.readouterr().out


def test_a_misspelt_region_ends_with_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "--region", "westeuropa"]) == 1
    assert "Did you mean `westeurope`?" in capsys.readouterr().err


def test_a_filter_that_nothing_passes_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "--gpu", "H200", "--gpus", "3"]) == 0
    assert "No size is like that" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--gpu", "H2O"], "No size of the catalogue has `H2O` GPUs"),
        (["--gpu", "H1000"], "Did you mean `H100`"),
        (["--gpu", "xyzzy"], "There are `K80`, "),
        (["--family", "ND_H100_v6"], "Did you mean `ND_H100_v5`"),
        (["H100"], "`amlstack sizes --gpu H100` lists the sizes with H100"),
    ],
)
def test_a_name_that_nothing_has_ends_with_what_there_is(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sizes", *words]) == 1
    assert says in capsys.readouterr().err
    assert main(["sizes", *words, "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 1


def test_a_gpu_is_meant_by_its_name_or_by_its_beginning(rows: Callable[..., list[dict[str, Any]]]) -> None:
    assert {row["gpu_model"] for row in rows("--gpu", "a10")} == {"A10"}
    assert {row["gpu_model"] for row in rows("--gpu", "gb")} == {"GB200", "GB300"}
    assert {row["gpu_model"] for row in rows("--gpu", "RTX")} == {"RTX PRO 6000"}


def test_the_table_says_so_where_a_region_has_no_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "Standard_ND40rs_v2", "--region", "uksouth"]) == 0
    assert "not known in uksouth; 22.03 USD per hour in eastus, 2026-06" in capsys.readouterr().out
    assert main(["sizes", "--gpu", "V100", "--region", "uksouth"]) == 0
    assert "Without a price: the catalogue has none of uksouth." in capsys.readouterr().out
    assert main(["sizes", "--gpu", "V100"]) == 0
    assert "Without a price" not in capsys.readouterr().out


def test_a_region_that_nobody_knows_is_shown_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "Standard_D4s_v5", "--region", "moon"]) == 0
    shown = capsys.readouterr()
    assert "`moon` is no region" in shown.err
    assert "not known in moon" in shown.out


def test_what_a_fabric_has_on_request_and_should_reach_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "Standard_ND128isr_GB300_v6"]) == 0
    out = capsys.readouterr().out
    assert "On request      azure-tuned\n" in out
    assert "937 GB/s on 18 nodes of one rack over NVLink; 200 GB/s on 18 nodes over InfiniBand" in out
    assert main(["sizes", "Standard_D4s_v5"]) == 0
    assert "On request" not in capsys.readouterr().out


def test_one_size_is_explained_with_the_nearest_compliant_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "standard_nc24RS_v3"]) == 0
    out = capsys.readouterr().out

    assert "FDR InfiniBand, 56 Gb/s per node, SR-IOV" in out
    assert "was retired on 2025-09-30" in out
    assert "[size-retired]" in out
    assert "Nearest:        Standard_ND40rs_v2 (8 x V100 32 GiB" in out


def test_a_compliant_size_needs_no_alternative(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "Standard_ND96isr_H100_v5"]) == 0
    out = capsys.readouterr().out

    assert "no rule on sizes refuses it" in out
    assert "Nearest" not in out
    assert main(["sizes", "Standard_ND96isr_H100_v5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nearest_compliant"] is None


def test_an_unknown_name_ends_with_near_misses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sizes", "Standard_ND96isr_H100"]) == 1
    assert "Did you mean Standard_ND96isr_H100_v5" in capsys.readouterr().err
    assert main(["sizes", "Standard_ND96isr_H100", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["code"] == "size-unknown"


def test_a_day_that_is_none_is_wrong_use(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_TODAY", "tomorrow")

    assert main(["sizes"]) == 2
    assert "must be an ISO date" in capsys.readouterr().err
