"""``AMLSTACK_TODAY`` that is no day is reported by whatever asks for it, in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from amlstack.cli.main import main

if TYPE_CHECKING:
    from tests.support.running import MakeStack

EXAMPLE = str(PROJECT / "examples" / "single_node" / "job.py")
SAYS = "AMLSTACK_TODAY is 'tomorrow'. It must be an ISO date. Write it like 2026-08-01, or unset it."


@pytest.mark.parametrize(
    "words",
    [
        ["check", EXAMPLE],
        ["show", EXAMPLE],
        ["rehearse", EXAMPLE],
        ["sizes"],
        ["policy", "export", "--out", "azure-policy", "--scope", "/subscriptions/s"],
    ],
    ids=lambda words: " ".join(words[:2]).split("/")[0],
)
def test_a_verb_says_what_it_saw_and_what_to_write(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMLSTACK_TODAY", "tomorrow")
    assert main(words) == 2
    assert capsys.readouterr().err == f"{SAYS}\n"


@pytest.mark.engine
def test_the_program_is_refused_in_the_same_words(stack: MakeStack) -> None:
    one = stack(PROJECT, env={"AMLSTACK_TODAY": "tomorrow"}).set("amlstack:workspace", "w")
    refused = one.preview().failed()
    assert SAYS in "\n".join(refused.errors)
