"""The judgement behind the tables of `make faults` and `make interruptions`: what is wrong or slow is found."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engine_result import Result
from tests.support.provider.fault_table import RESOURCE, documented
from tests.support.provider.interruptions import BOUND
from tests.support.sandbox import injected_faults
from tests.support.stack import infrastructure_faults as faults
from tests.support.stack import interruption_table
from tests.support.stack.interruptions import STEPS, Interrupted

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "/subscriptions/s/resourceGroups/g"
VAULT = f"{GROUP}/providers/Microsoft.KeyVault/vaults/v"
GOOD: dict[str, Any] = {
    "held": {GROUP: "a", VAULT: "b"},
    "states": {GROUP: "Succeeded", VAULT: "Succeeded"},
    "recorded": ["urn:a", "urn:b"],
    "pending": 0,
}


class Seen(faults.Ground):
    """A ground where a test says what is seen."""

    now: dict[str, Any] = GOOD

    def seen(self) -> dict[str, Any]:
        return self.now


@pytest.mark.parametrize(
    ("now", "made", "wrong"),
    [
        ({}, 1, []),
        ({"held": {GROUP: "a"}}, 1, [(VAULT, "lost")]),
        ({"held": {**GOOD["held"], f"{VAULT}2": "b"}}, 1, [(f"{VAULT}2", "one too many")]),
        ({"held": {GROUP: "a", VAULT: "c"}}, 1, [(VAULT, "has another content")]),
        ({"states": {**GOOD["states"], VAULT: "Failed"}}, 1, [(VAULT, "is left as Failed")]),
        ({"recorded": ["urn:a"]}, 1, [(faults.COMMAND, "the state differs in ['urn:b']")]),
        ({"pending": 2}, 1, [(faults.COMMAND, "operations are left pending in the state")]),
        ({}, 2, [(faults.COMMAND, "2 runs where one was declared")]),
    ],
)
def test_whatever_differs_from_a_run_without_faults_is_named(
    now: dict[str, Any], made: int, wrong: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(faults, "runs", lambda _: dict.fromkeys(range(made)))
    ground = Seen(None, tmp_path, {"create": GOOD})
    ground.now = {**GOOD, **now}
    assert list(faults._differences(ground, "create", 0)) == wrong


def test_a_failure_that_could_have_been_repeated_or_has_no_words_is_named() -> None:
    silent = Result(("up",), 1, "Traceback (most recent call last)", ())
    assert len(faults._wrong_words(silent, times=1)) == 2
    assert len(faults._wrong_words(silent, times=None)) == 1


def test_kinds_have_the_names_of_azure_in_any_letter_case() -> None:
    assert faults.kind_of(VAULT.lower()) == faults.kind_of(VAULT) == "KeyVault/vaults"
    assert faults.kind_of(GROUP) == "Resources/resourceGroups"
    assert faults.kind_of(faults.COMMAND) == faults.COMMAND


def test_a_step_that_ends_after_the_bound_fails_with_its_seconds() -> None:
    ended = Interrupted(STEPS[0], 130, "", BOUND, [], [])
    assert interruption_table.row(ended) == []
    assert interruption_table.row(dataclasses.replace(ended, seconds=BOUND + 1)) == [
        f"{BOUND + 1:.2f} s to the end, and {BOUND:.0f} s are the bound"
    ]


def test_the_page_names_the_columns_that_are_printed() -> None:
    assert {tuple(row) for row in documented(RESOURCE).values()} == {injected_faults.ALL}
