"""An error that is written a hundred thousand times costs little, and hides no other error."""

from __future__ import annotations

import pytest

from amlstack.diagnose.reading import lines, writers
from amlstack.diagnose.reading.scanner import scan
from tests.support.rows import for_each

MEMORY = "[rank{rank}]: RuntimeError: CUDA out of memory. Tried to allocate {number} MiB"


def storm(template: str, lines: int, rank: int = 3) -> bytes:
    texts = (template.format(rank=rank, number=number, second=number % 60) for number in range(lines))
    return "".join(f"{text}\n" for text in texts).encode()


@pytest.mark.parametrize(
    "template",
    [
        "RuntimeError: NCCL error: unhandled system error",
        MEMORY,
        "2026-01-31 10:00:{second:02d},123 " + MEMORY,
        (
            "[rank{rank}]:[E115 10:00:{second:02d}.12 ProcessGroupNCCL.cpp:607] Watchdog caught "
            "collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE) ran for 600000 ms"
        ),
    ],
)
def test_lines_of_a_storm_are_read_only_at_its_beginning(template: str) -> None:
    count = 20_000
    read = [text for _, text, _ in lines.interesting([storm(template, count)], lambda: False) if text]
    assert len(read) <= lines.STORM + lines.OF_A_WRITER
    log = scan("log", [storm(template, count)])
    assert log.lines == count
    assert log.events


def test_an_error_of_another_rank_is_read_after_a_storm() -> None:
    log = scan("log", [storm(MEMORY, 20_000, rank=3), storm(MEMORY, 1, rank=5), storm(MEMORY, 20_000, rank=3)])
    assert {event.rank for event in log.events} == {3, 5}
    (other,) = (event for event in log.events if event.rank == 5)
    assert other.line == 20_001


def test_another_error_is_read_after_a_storm() -> None:
    log = scan("log", [storm(MEMORY, 20_000), b"[rank3]: Bus error (core dumped)\n", storm(MEMORY, 20_000)])
    assert len({event.code for event in log.events}) == 2


@for_each("word", ["node", "vm-", "a1.", "worker-0-host", "[rank", "1"])
def test_a_line_of_one_endless_word_costs_no_more_than_its_length(word: str) -> None:
    # With a cost of its square, this would take hours and run into the time limit of tests.
    assert writers.strip((word + "1") * 300_000).rank is None
