"""Runs side by side: what differs comes first, and speed is that between the first and the last step."""

from __future__ import annotations

from typing import Any

from amlstack.cli.workspace.status import _speed, comparison_lines
from tests.support.rows import for_each

RUN: dict[str, Any] = {
    "name": "fit-1", "status": "Completed", "compute": "gpu", "nodes": 2, "ranks": 16, "seconds": 7300.0, "usd": 110.0,
    "steps_per_second": 2.5, "inputs": {"lr": "0.1"}, "params": {}, "metrics": {"loss": 0.123456789},
}  # fmt: skip


def test_what_differs_stands_in_columns_and_the_rest_in_a_line() -> None:
    other = {**RUN, "name": "fit-2", "usd": None, "inputs": {"lr": "0.2", "warmup": "5"}, "metrics": {}}
    assert list(comparison_lines([RUN, other])) == [
        "              fit-1       fit-2",
        "cost          110.00 USD",
        "input lr      0.1         0.2",
        "input warmup              5",
        "metric loss   0.123457",
        "the same: status Completed, ran 2h, compute gpu, nodes 2, ranks 16, steps/s 2.5",
    ]


@for_each(
    "history, speed",
    [
        ([], None),
        ([(1000, 5)], None),
        ([(1000, 5), (1000, 9)], None),
        ([(3000, 9), (1000, 5), (2000, 7)], 2.0),
        ([(1000, 9), (2000, 1)], None),
    ],
)
def test_steps_per_second_are_those_between_the_first_and_the_last(
    history: list[tuple[int, int]], speed: float | None
) -> None:
    assert _speed(history) == speed
