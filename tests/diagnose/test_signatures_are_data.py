from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.diagnose.reading import lines
from amlstack.diagnose.reading.lines import DIGITS, notable
from amlstack.diagnose.reading.scanner import scan
from amlstack.diagnose.signatures import SURE, EventRole, table
from tests.support.diagnose.kept_logs import HARMLESS, LINES
from tests.support.rows import for_each

if TYPE_CHECKING:
    import pytest

CASES = [(code, line) for code, found in LINES.items() for line in found]
# Found by their words, then turned into what the signal or exit code means.
SETTLED = {"mpi-process-signalled", "spawned-process-signalled", "killed", "exit-137"}


@for_each("code, line", CASES)
def test_a_line_gives_its_code_alone(code: str, line: str) -> None:
    assert [event.code for event in scan("log", [line.encode() + b"\n"]).events] == [code]


@for_each("code, line", CASES)
def test_line_is_found_among_a_block_of_healthy_lines(code: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 1 << 8)  # of a mebibyte, most of the time would go into healthy lines
    healthy = b"step 1 loss 2.0\n" * 10  # twice that is more than a block
    log = scan("log", [healthy, b"[rank3]: " + line.encode() + b"\n", healthy])
    assert [(event.code, event.line) for event in log.events] == [(code, 11)]
    assert log.lines == 21


def test_line_is_found_after_a_whole_block_of_healthy_lines() -> None:
    code, line = CASES[0]
    healthy = b"step 1 loss 2.0\n" * 35_000
    assert len(healthy) < lines.BLOCK < 2 * len(healthy)
    log = scan("log", [healthy, b"[rank3]: " + line.encode() + b"\n", healthy])
    assert [(event.code, event.line) for event in log.events] == [(code, 35_001)]
    assert log.lines == 70_001


@for_each("line", HARMLESS)
def test_lines_of_healthy_runs_are_no_causes(line: str) -> None:
    assert [event for event in scan("log", [line.encode() + b"\n"]).events if event.role is not EventRole.CONTEXT] == []


def test_every_signature_that_looks_for_words_is_shown_by_a_line() -> None:
    noise = {"harmless", "driver-of-other-adapters"}
    assert {each.code for each in table() if each.any} - set(LINES) == SETTLED | noise
    assert set(LINES) <= {each.code for each in table()}


def test_every_signature_has_meaning_source_and_advice() -> None:
    for each in table():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", each.code)
        assert each.means
        assert each.source
        assert each.advice or each.kind == "signal", each.code
        assert each.sure in SURE
        assert (each.weight > 0) is (each.role in (EventRole.CULPRIT, EventRole.CONTEXT)), each.code
    assert len({each.code for each in table()}) == len(table())


def test_words_are_written_as_they_are_looked_for() -> None:
    for each in table():
        for word in each.any:
            assert word == word.lower()
            assert word.encode().translate(None, DIGITS).strip(), word
            assert notable(word.encode().translate(None, DIGITS)), word
