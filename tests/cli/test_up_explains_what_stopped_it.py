"""What ``amlstack up`` prints when the engine stopped: each error once, and nothing that says less than the others."""

from __future__ import annotations

import pytest

from amlstack.cli.progress import Progress
from amlstack.cli.stack import explain
from amlstack.engine import Outcome

CLOSING = "an unhandled error occurred: program exited with non-zero exit code: 1"
WRONG = "1 thing is wrong with this stack; nothing was changed."


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([WRONG, CLOSING], [WRONG]),
        ([CLOSING], [CLOSING]),
        ([WRONG], [WRONG]),
        ([], ["the engine's own text"]),
    ],
    ids=["the program told it", "the program ended in silence", "the provider told it", "nobody told it"],
)
def test_the_engine_s_closing_line_is_told_only_when_nobody_said_more(
    messages: list[str], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[str] = []
    monkeypatch.setattr(Progress, "fail", lambda _, text: failures.append(text))

    explain.failures(
        Progress(),
        Outcome(code=1, diagnostics=[("error", "", text) for text in messages], output="the engine's own text"),
    )

    assert failures == told
