"""The last lines of ``amlstack up``: each error once, a next step only where there is one, changes in words."""

from __future__ import annotations

import pytest

from amlstack.cli.console import Progress
from amlstack.cli.stack import explain
from amlstack.cli.stack.plan import counted_operations
from amlstack.engine import Outcome
from tests.support.rows import for_each

CLOSING = "an unhandled error occurred: program exited with non-zero exit code: 1"
WRONG = "1 thing is wrong with this stack; nothing was changed."
JOB = "urn:pulumi:sandbox::amlstack::amlstack:infra:Jobs$amlstack:jobs:Job::train"
GATE = (
    "run train-1 ended Failed, and what depends on it waits until it has completed. "
    "It is not run again by itself: set `rerun` to another word to run it again"
)
THERE = "cannot create already existing resource '/subscriptions/s/resourceGroups/rg-team{}'"


@pytest.mark.parametrize(
    ("messages", "result"),
    [
        ([WRONG, CLOSING], [WRONG]),
        ([CLOSING], [CLOSING]),
        ([WRONG], [WRONG]),
        ([], ["the engine's own text"]),
    ],
    ids=["the program reported it", "the program ended in silence", "the provider reported it", "nothing reported it"],
)
def test_the_engine_s_closing_line_is_shown_only_without_a_better_reason(
    messages: list[str], result: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[str] = []
    monkeypatch.setattr(Progress, "fail", lambda _, text: failures.append(text))

    explain.failures(
        Progress(),
        Outcome(code=1, diagnostics=[("error", "", text) for text in messages], output="the engine's own text"),
    )

    assert failures == result


def test_all_that_is_protected_is_one_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[str] = []
    monkeypatch.setattr(Progress, "fail", lambda _, text: failures.append(text))
    urns = [f"urn:pulumi:prod::amlstack::azure-native:storage:StorageAccount::{name}" for name in ("storage", "vault")]
    text = "unable to replace resource {!r}\nas it is currently marked for protection. To unprotect the resource, …"

    explain.failures(
        Progress(),
        Outcome(1, diagnostics=[("error", urn, text.format(urn)) for urn in urns] + [("error", "", CLOSING)]),
    )

    (one,) = failures
    assert one.startswith("StorageAccount storage, StorageAccount vault: ")
    assert "another region" in one
    assert "amlstack:protect" in one


@for_each(
    "updated, outcome, step",
    [
        (False, Outcome(1, diagnostics=[("error", "", WRONG)]), "nothing was changed; once the cause is gone"),
        (True, Outcome(1, diagnostics=[("error", JOB, GATE)]), "until `rerun` of train is another word"),
        (True, Outcome(1, diagnostics=[("error", JOB, "not accepted: 503")]), "`make up` again goes on from here"),
        (True, Outcome(-9), "`make up` again goes on from here"),
        (
            True,
            Outcome(1, diagnostics=[("error", "", THERE.format(""))]),
            "Write `amlstack:resource_group: {existing: NAME}`",
        ),
        (
            True,
            Outcome(1, diagnostics=[("error", "", THERE.format("/providers/Microsoft.Storage/storageAccounts/st"))]),
            "docs/how-to/killed-creates.md",
        ),
    ],
)
def test_going_on_is_promised_only_where_up_would_go_on(*, updated: bool, outcome: Outcome, step: str) -> None:
    line = explain.next_step(outcome, "`make up`", updated=updated)

    assert step in line
    assert ("goes on from here" in line) is ("goes on from here" in step)


def test_changes_are_counted_in_words_and_a_replacement_once() -> None:
    ops = {"a": "delete-replaced", "b": "replace", "c": "create", "d": "same", "e": "update", "f": "create-replacement"}

    assert counted_operations(ops) == "1 created, 1 updated in place, 3 replaced"
    assert counted_operations({"d": "same"}) == ""
