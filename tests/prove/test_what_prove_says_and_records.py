"""The words of `amlstack prove` before it makes anything, and what its recording keeps out."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from amlstack.catalog import sizes
from amlstack.cli.main import main
from amlstack.prove import comparison, page
from amlstack.prove.proof import Proof
from amlstack.prove.recorder import masked
from amlstack.prove.walk import STEPS, chosen
from tests.support.rows import for_each

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
ON = dt.date(2026, 11, 25)
SECRET = "abcdefghijklmnopqrstuvwxyz0123456789"
ASKED = {"step": "open", "method": "GET", "path": "/a", "status": 200, "headers": {}, "request": None}


@pytest.mark.parametrize("region", ["westeurope", "eastus", "swedencentral", "nowhere"])
def test_a_walk_costs_less_than_five_dollars(region: str) -> None:
    size = page.cheapest(region, ON)
    assert size is not None
    assert not size.gpus
    assert size.fabric.infiniband is None
    assert page.estimate(size, region) < page.MOST


def test_all_is_said_before_it_is_made() -> None:
    size = page.cheapest("westeurope", ON)
    assert size is not None
    proof = Proof("p1234567", Path("folder"), SUBSCRIPTION, "westeurope", size.name, "https://management.azure.com")
    said = "\n".join(page.announcement(proof, size, ()))
    for word in (*proof.groups, *STEPS, size.name, "USD", "--cleanup"):
        assert word in said


def test_the_page_repeats_the_open_questions_that_its_steps_answer() -> None:
    proof = Proof("p1234567", Path("folder"), SUBSCRIPTION, "westeurope", "size", "https://management.azure.com")
    proof.steps = {
        "edit": {"status": "ok", "seconds": 1, "seen": ""},
        "closed": {"status": "failed", "seconds": 1, "seen": ""},
    }
    told = page.page(proof, 1, [], 1, []).partition("## Open questions")[2]
    assert "- Does Azure count existing nodes as in use" in told
    assert "isolation" not in told, "its step failed"
    assert "<a id" not in told


def test_nothing_is_made_without_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--subscription", SUBSCRIPTION, "--location", "westeurope"]) == 2
    assert "nothing was made" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--only", "nothing"], [], ["--location", "westeurope"]])
def test_wrong_use_is_told(words: list[str]) -> None:
    assert main(["prove", *words]) == 2


def test_an_expensive_size_is_asked_for_by_name_alone() -> None:
    size = sizes.get("Standard_ND96asr_v4")
    assert size is not None
    assert page.estimate(size, "westeurope") > page.MOST


def test_a_step_brings_what_it_needs() -> None:
    assert chosen(("mpi",)) == ("state", "open", "cluster", "environment", "mpi")
    assert chosen(()) == tuple(STEPS)
    assert all(set(step.after) <= set(STEPS) for step in STEPS.values())


@for_each(
    "text",
    [
        json.dumps({"sasToken": f"?sv=1&sig={SECRET}"}),
        f"https://a.blob.core.windows.net/c?se=2026&sig={SECRET}",
        json.dumps({"primaryKey": SECRET}),
        json.dumps({"access_token": SECRET}),
        f"AccountKey={SECRET}{SECRET};",
    ],
)
def test_no_credential_is_recorded(text: str) -> None:
    assert SECRET not in masked(text, SUBSCRIPTION)


def test_the_subscription_is_not_recorded() -> None:
    assert SUBSCRIPTION not in masked(f"/subscriptions/{SUBSCRIPTION.upper()}/a".lower(), SUBSCRIPTION.upper())


def facts(*bodies: object) -> dict[str, dict[str, tuple[str, str]]]:
    return comparison.facts([{**ASKED, "body": body} for body in bodies], "p1234567")


def test_ids_and_times_do_not_differ() -> None:
    one = {"id": SUBSCRIPTION, "at": "2026-11-25T01:02:03.25Z", "name": "rg-p1234567"}
    other = {"id": "99999999-2222-3333-4444-555555555555", "at": "2025-01-01T00:00:00.5Z", "name": "rg-p1234567"}
    assert comparison.compare(facts(one), facts(other)) == (4, [])


@for_each(
    "one, other, aspect",
    [
        ({"a": 1}, {"a": 2}, "a"),
        ({"a": None}, {}, "a"),
        ({"value": [{"n": 1}, {"n": 2}]}, {"value": [{"n": 2}, {"n": 1}]}, "value[0].n"),
        ({"at": "2026-11-25T01:02:03Z"}, {"at": "2026-11-25T01:02:03.25+00:00"}, "at"),
        ({"status": "Failed"}, {"status": "Succeeded"}, "states"),
    ],
)
def test_a_fact_that_differs_is_found(one: object, other: object, aspect: str) -> None:
    _, found = comparison.compare(facts(one), facts(other))
    assert aspect in {each.aspect for each in found}


def test_states_in_another_order_differ() -> None:
    one, other = (facts(*({"status": each} for each in some)) for some in (("A", "B", "C"), ("B", "A", "C")))
    assert "states" in {each.aspect for each in comparison.compare(one, other)[1]}


def test_two_resources_with_ids_for_names_stay_two() -> None:
    rows = [{**ASKED, "path": f"/v/{n * 8}-2222-3333-4444-555555555555", "body": {"n": n}} for n in "12"]
    same = comparison.both(rows, rows[::-1])
    one, other = (comparison.facts(some, "p1234567", same) for some in (rows, rows[::-1]))
    assert comparison.compare(one, other) == (4, [])
    assert comparison.compare(facts({"n": "1"}), facts({"n": "2"}))[1]


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "exchanges.jsonl"
    file.write_text(json.dumps({**ASKED, "body": None}) + '\n{"step": "op', "utf-8")
    assert len(comparison.read(file)) == 1
