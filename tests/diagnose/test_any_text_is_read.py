from __future__ import annotations

# ruff: noqa: E501
import tracemalloc
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amlstack.diagnose.diagnosis import report
from amlstack.diagnose.judgement.culprit import first_cause
from amlstack.diagnose.reading import lines, records
from amlstack.diagnose.reading.collector import LONGEST_TEXT
from amlstack.diagnose.reading.scanner import scan
from tests.support.diagnose.kept_logs import LINES
from tests.support.diagnose.log_texts import CLOSED, child_failed, row, traceback, watchdog
from tests.support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from amlstack.diagnose.diagnosis import Diagnosis

PIECES = st.one_of(
    st.sampled_from([line for known in LINES.values() for line in known]),
    st.sampled_from(
        [traceback(CLOSED), traceback("ValueError: x", prefix="[rank1]: "), watchdog(2), child_failed(row(1, -9), row(0, 1))]
    ),
    st.text(max_size=80),
    st.sampled_from(["Traceback (most recent call last):", "[1,3]<stderr>:", "Root Cause:", "[0]:", "\r", "\x00", "  rank : "]),
)  # fmt: skip


def is_sound(verdict: Diagnosis, counts: dict[str, int]) -> None:
    fields = verdict.as_dict()
    assert fields["confidence"] in ("low", "medium", "high")
    assert (fields["cause"] is not None) is fields["found"]
    assert fields["reason"]
    assert fields["advice"] or fields["cause"] is not None
    if fields["found"]:
        assert fields["rank"] is None or fields["rank"] not in fields["victims"]
        assert fields["text"]
    if fields["file"] is not None:
        assert 1 <= fields["line"] <= max(1, counts[fields["file"]])
        assert len(fields["text"]) <= LONGEST_TEXT


@settings(max_examples=examples(1), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(PIECES, max_size=8), min_size=1, max_size=4))
def test_any_logs_give_a_sound_verdict(files: list[list[str]]) -> None:
    logs = [
        scan(f"std_log_process_{rank:02d}.txt", ["\n".join(pieces).encode()], rank=rank) for rank, pieces in enumerate(files)
    ]  # fmt: skip
    verdict = first_cause(logs)
    is_sound(verdict, {log.name: log.lines for log in logs})
    assert report(verdict)


@settings(max_examples=examples(2), deadline=None)
@given(st.binary(max_size=2000), st.integers(1, 50))
def test_how_bytes_are_cut_changes_nothing(text: bytes, size: int) -> None:
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    assert scan("log", chunks) == scan("log", [text])
    assert scan("log", [text]).lines == text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


@settings(max_examples=examples(1), deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=20), lambda each: st.lists(each, max_size=5) | st.dictionaries(
    st.sampled_from(["message", "extraInfo", "py_callstack", "timestamp", "ranks", "status", "rank", "code", "error"]), each
), max_leaves=25))  # fmt: skip
def test_any_json_is_read(data: object) -> None:
    import json

    log = records.parse("error.json", json.dumps(data))
    if log is not None:
        is_sound(first_cause([log]), {log.name: log.lines})


def test_a_large_log_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 1 << 17)  # all is so much smaller than a log of blocks of a mebibyte
    # One epoch, made before memory is traced, and read again and again.
    epoch = b"".join(
        b"[2024-02-01 10:00:00] step %06d loss %d.%04d\n" % (step, step % 7, step % 9973) for step in range(2000)
    )
    size = 0

    def training() -> Iterator[bytes]:
        nonlocal size
        for number in range(30):
            size += len(epoch)
            yield epoch + b"x" * 40_000 * (number == 10)
        yield b"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"

    scan("first", [epoch, b"CUDA out of memory\n"])  # what is read and made once stays: signatures, patterns
    tracemalloc.start()
    try:
        log = scan("log", training())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(event.code, event.line) for event in log.events] == [("cuda-out-of-memory", 60_001)]
    assert size > 5 << 19
    assert peak < 2 << 20  # 1.5 MiB


def test_a_storm_of_errors_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 1 << 16)
    storm = (traceback(f"ValueError: {each}").encode() for each in range(600))
    scan("first", [traceback(f"ValueError: {each}").encode() for each in range(99)])  # as above
    tracemalloc.start()
    try:
        log = scan("log", storm)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(log.events) <= 20
    assert peak < 3 << 19
