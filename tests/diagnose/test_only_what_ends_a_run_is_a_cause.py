"""A line that reads like an error is a cause only where something ended, and near that end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from amlstack.diagnose.reading.collector import MOST_OF_ONE
from amlstack.diagnose.reading.scanner import scan
from tests.support.diagnose.log_texts import CLOSED, child_failed, row, steps, traceback

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis

HARMLESS = [
    "run.sh: line 13: sudo: command not found",
    "slurmstepd: error: _is_a_lwp: open() /proc/89925/status failed: No such file or directory",
    "[node1:59487] pml_ucx.c:226 Error: UCP worker does not support MPI_THREAD_MULTIPLE",
    "node1:1493:1797 [0] misc/ibvwrap.cc:212 NCCL WARN Call to ibv_open_device failed",
    "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
    "loss is nan",
    "ssh: connect to host node2 port 22: Connection timed out",
    "BrokenPipeError: [Errno 32] Broken pipe",
]


def verdict_of(text: str, folder: Path, name: str = "out.log") -> Diagnosis:
    (folder / name).write_text(text)
    return diagnose([folder])


@pytest.mark.parametrize("line", HARMLESS)
def test_a_sign_that_the_run_outlived_is_a_note(line: str, tmp_path: Path) -> None:
    verdict = verdict_of(steps(50) + f"{line}\n" + steps(300, begin=50), tmp_path)
    assert (verdict.found, verdict.fatal, verdict.rank) == (False, False, None)
    assert [line[:40] in note.text for note in verdict.notes] == [True]


def test_a_caught_exception_is_no_cause(tmp_path: Path) -> None:
    verdict = verdict_of(steps(50) + traceback("ValueError: x", prefix="[rank3]: ") + steps(300, begin=50), tmp_path)
    assert (verdict.found, verdict.fatal) == (False, False)


@pytest.mark.parametrize("line", HARMLESS[:5])
def test_a_sign_far_from_the_end_is_not_what_ended_the_run(line: str, tmp_path: Path) -> None:
    end = child_failed(row(1, 1))
    verdict = verdict_of(steps(50) + f"{line}\n" + steps(300, begin=50) + end, tmp_path)
    assert (verdict.found, verdict.fatal) == (False, True)


@pytest.mark.parametrize("line", HARMLESS[2:5])
def test_a_sign_just_before_the_end_is_the_cause(line: str, tmp_path: Path) -> None:
    verdict = verdict_of(steps(350) + f"{line}\n" + traceback(CLOSED) + child_failed(row(1, 1)), tmp_path)
    assert verdict.found
    assert verdict.line == 351


def test_the_last_of_many_is_near_the_end(tmp_path: Path) -> None:
    """The first few of a code are kept and the last one: a run may outlive a hundred warnings and not the last."""
    often = "".join(steps(30, begin=30 * each) + "RuntimeError: CUDA out of memory.\n" for each in range(40))
    verdict = verdict_of(steps(50) + often + traceback(CLOSED), tmp_path)
    assert (verdict.cause, verdict.line) == ("cuda-out-of-memory", 50 + 40 * 31)
    assert len(scan("log", [often.encode()]).events) <= MOST_OF_ONE + 1


def test_ranks_that_end_one_after_the_other_are_one_end(tmp_path: Path) -> None:
    """The first traceback of 64 ranks is thousands of lines before the log's end, all of them victims."""
    victims = "".join(traceback(CLOSED, prefix=f"[rank{rank}]: ") for rank in range(64) if rank != 7)
    verdict = verdict_of(steps(50) + traceback("ValueError: x", prefix="[rank7]: ") + victims, tmp_path)
    assert (verdict.cause, verdict.rank) == ("python-exception", 7)


def test_a_victim_that_was_logged_as_a_note_ended_nobody(tmp_path: Path) -> None:
    line = "node1:189:472 [2] NCCL INFO [Service thread] Connection closed by localRank 2\n"
    assert not verdict_of(steps(50) + line, tmp_path).fatal


def test_progress_of_other_ranks_does_not_clear_an_exception(tmp_path: Path) -> None:
    others = "".join(f"[rank{rank}]: step 51 loss 0.1\n" for rank in range(8) if rank != 3)
    verdict = verdict_of(steps(50) + traceback("ValueError: x", prefix="[rank3]: ") + others, tmp_path)
    assert (verdict.cause, verdict.rank) == ("python-exception", 3)


def test_an_exception_at_the_interpreters_exit_ends_nothing(tmp_path: Path) -> None:
    text = steps(30) + "Error in atexit._run_exitfuncs:\n" + traceback("RuntimeError: the pool is closed already")
    assert not verdict_of(text, tmp_path).found


def test_what_native_code_says_before_it_aborts_is_the_cause(tmp_path: Path) -> None:
    said = "trainer: /src/native/queue.cpp:88: void Queue::push(Item): Assertion `size_ < capacity_' failed."
    verdict = verdict_of(steps(30) + f"{said}\nAborted (core dumped)\n", tmp_path)
    assert (verdict.cause, verdict.text) == ("native-fatal-error", said)


@pytest.mark.parametrize("metric", ["Error: 0.{}", "TestError: 0.{}", "ERROR: 0.{}"])
def test_a_metric_that_is_called_an_error_is_no_cause_at_the_logs_end(metric: str, tmp_path: Path) -> None:
    assert not verdict_of("".join(f"{metric.format(at)}\n" for at in range(10, 50)), tmp_path).found
