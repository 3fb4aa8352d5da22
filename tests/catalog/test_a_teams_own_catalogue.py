"""A team's own catalogue file: sizes, prices, discounts and regions, and what is wrong with it."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.catalog import overlay, regions, sizes
from amlstack.catalog.prices import Price
from amlstack.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

H100 = "Standard_ND96isr_H100_v5"


@pytest.fixture(autouse=True)
def looks_for_the_file_anew() -> Iterator[None]:
    """A process looks for the file once; each test here has another."""
    overlay.path.cache_clear()
    yield
    overlay.path.cache_clear()


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Writes the file and names it."""

    def write(text: str) -> Path:
        file = tmp_path / "ours.yaml"
        file.write_text(text)
        monkeypatch.setenv(overlay.VARIABLE, str(file))
        overlay.path.cache_clear()
        return file

    return write


def size(name: str) -> sizes.Size:
    found = sizes.get(name)
    assert found is not None, name
    return found


def test_a_price_of_the_team_goes_before_the_list_s(given: Callable[[str], Path]) -> None:
    given(f"prices: [{{size: {H100}, region: westeurope, usd: 71.5, low_priority: 20, checked: 2026-11-01}}]")

    price = size(H100).price_per_hour

    assert price == Price(71.5, "westeurope", date(2026, 11, 1), "the team's catalogue", 20, None)
    assert [each.region for each in size(H100).prices][1] == "eastus"


@pytest.mark.parametrize(
    ("discounts", "usd"),
    [
        (f"{H100}: 0.5", 49.16),
        ("ND_H100_v5: 0.25", 73.74),
        ('"*": 0.1', 88.488),
        (f'"*": 0.1, ND_H100_v5: 0.25, {H100.lower()}: 0.5', 49.16),
        ("HBv3: 0.5", 98.32),
    ],
)
def test_a_discount_is_taken_off_the_list_by_the_closest_name(
    given: Callable[[str], Path], discounts: str, usd: float
) -> None:
    given(f"discounts: {{{discounts}}}")

    price = size(H100).price_per_hour

    assert price is not None
    assert price.usd == usd
    assert ("less" in price.source) == (usd != 98.32)


def test_a_discount_leaves_the_team_s_own_prices_alone(given: Callable[[str], Path]) -> None:
    given(f"discounts: {{'*': 0.5}}\nprices: [{{size: {H100}, region: uksouth, usd: 50, checked: 2026-11-01}}]")

    price = size(H100).price_in("uksouth")
    assert price is not None
    assert price.usd == 50


def test_a_size_like_another_takes_from_it_what_it_does_not_say(given: Callable[[str], Path]) -> None:
    given(f"sizes: [{{name: Standard_Ours, like: {H100}, memory_gib: 1000}}]")

    ours = size("standard_ours")

    assert (ours.name, ours.memory_gib, ours.gpus, ours.fabric.usable) == ("Standard_Ours", 1000, 8, True)
    assert ours.source == ("team",)
    assert "Standard_Ours" in {each.name for each in sizes.all_sizes()}


def test_a_size_that_is_like_no_other_is_a_cpu_size_on_ethernet(given: Callable[[str], Path]) -> None:
    given("sizes: [{name: Standard_Z8s_v1, vcpus: 8, memory_gib: 64, checked: 2026-11-01}]")

    ours = size("Standard_Z8s_v1")

    assert (ours.vcpus, ours.gpus, ours.fabric.rdma, ours.stage(date(2027, 1, 1))) == (8, 0, False, None)


def test_a_region_that_is_listed_is_no_mistake_however_it_is_spelt(given: Callable[[str], Path]) -> None:
    assert regions.finding("westeuropa", "location") is not None
    given("regions: [West Europa]")

    assert regions.finding("westeuropa", "location") is None


def test_an_empty_file_adds_nothing(given: Callable[[str], Path]) -> None:
    given("# nothing yet\n")

    assert size(H100).price_per_hour is not None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            "price: []",
            1,
            "Unknown key `price`. The keys here are `sizes`, `prices`, `discounts`, `regions`. Did you mean `prices`?",
        ),
        (
            "- 1",
            1,
            "The file must be an object with keys, got `[…]`. Its keys are `sizes`, `prices`, `discounts`, `regions`.",
        ),
        ("prices: 3", 1, "`prices` must be a list, got `3`."),
        ("prices: [3]", 1, "`prices[0]` must be an object with keys, got `3`."),
        (
            "prices:\n  - {size: A, region: r, checked: 2026-01-01}",
            2,
            "`usd` is missing. A price is US dollars for a dedicated node and an hour.",
        ),
        (
            "prices:\n  - {size: A, usd: ten, region: r, checked: 2026-01-01}",
            2,
            "`usd` must be a number, got `ten`",
        ),
        ("prices:\n  - {size: A, usd: 1, region: r, checked: May}", 2, "`checked` must be a day such as 2026-11-01"),
        ("prices:\n  - {size: A, usd: .nan, region: r, checked: 2026-01-01}", 2, "`usd` must be"),
        ("sizes:\n  - {like: B}", 2, "`name` is missing."),
        ("sizes:\n  - {name: A}", 2, "A size without `like` must have `vcpus`, `memory_gib`, `checked`."),
        ("sizes:\n  - {name: A, like: Standard_ND96isr_H100}", 2, f"Did you mean `{H100}`"),
        ("sizes:\n  - {name: A, vcpu: 3}", 2, "Did you mean `vcpus`?"),
        ("discounts: [1]", 1, "`discounts` must be a mapping of names to values, got `[…]`."),
        ("discounts:\n  '*': 15", 2, "`*` must be a share of the list price such as 0.15, got `15`."),
        ("discounts:\n  ND_H10_v5: 0.1", 2, "Did you mean `ND_H100_v5`"),
        ("regions: westeurope2", 1, "`regions` must be a list, got `westeurope2`."),
        ("regions:\n  - 3", 2, "`regions[0]` must be a string, got `3`. Quote it."),
        ("prices: [", None, "[yaml-syntax]"),
    ],
)
def test_what_is_wrong_is_a_finding_at_its_line(
    given: Callable[[str], Path], capsys: pytest.CaptureFixture[str], text: str, line: int | None, words: str
) -> None:
    file = given(text)

    assert main(["sizes"]) == 2

    err = capsys.readouterr().err
    assert words in err
    assert line is None or f"{file}:{line}:" in err
    assert "Traceback" not in err


def test_a_file_that_is_named_and_not_there_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(overlay.VARIABLE, str(tmp_path / "none.yaml"))

    assert main(["sizes"]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_file_in_the_project_s_folder_is_read_without_being_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(overlay.VARIABLE, raising=False)
    monkeypatch.setattr("amlstack.base.paths.PROJECT", tmp_path)
    assert overlay.current() == overlay.Overlay()

    (tmp_path / overlay.NAME).write_text("regions: [atlantis]")
    overlay.path.cache_clear()

    assert overlay.current().regions == frozenset({"atlantis"})


@pytest.mark.parametrize("value", [True, -1, "1", None, 1e12])
def test_no_value_that_is_no_price_becomes_one(given: Callable[[str], Path], value: Any) -> None:
    given(
        f"prices: [{{size: {H100}, region: r, checked: 2026-11-01, usd: {'null' if value is None else repr(value)}}}]"
    )

    with pytest.raises(overlay.OverlayError):
        size(H100)
