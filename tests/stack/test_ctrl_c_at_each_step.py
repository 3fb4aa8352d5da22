"""A part of what `make interruptions` plays: Ctrl-C on a terminal, in an order of events that no clock decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.running import ended_with_us
from tests.support.stack.interruptions import STACK, STEPS, Interruptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Engine

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

PLAYED = (
    "the question",
    "azure-native makes the cluster",
    "the run is submitted",
    "`wait: completed`",
)
"""With a registration that is held, and one that waits for it; the rest of the table differs in the request alone."""


@pytest.fixture
def ground(engine: Engine, tmp_path: Path) -> Iterator[Interruptions]:
    made = Interruptions.made(tmp_path)
    with ended_with_us(made.clone.home):
        yield made
        made.clone.close()


def test_up_ends_after_what_is_in_flight_and_a_plain_re_run_goes_on(ground: Interruptions) -> None:
    for step in STEPS:
        if step.name in PLAYED:
            assert ground.play(step).wrong == [], step.name
            assert len(ground.runs()) == (step.name == PLAYED[-1]), step.name
    ground.gate.touch()
    again = ground.clone.run("up", "--stack", STACK, "--sandbox", "--yes")
    assert again.code == 0, again.text
    assert len(ground.runs()) == 1
