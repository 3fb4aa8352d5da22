"""The last error that a program logged is the cause only of a failed run without a better sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from tests.support.diagnose.log_texts import child_failed, row, steps, traceback

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis


def verdict_of(text: str, folder: Path) -> Diagnosis:
    (folder / "out.log").write_text(text)
    return diagnose([folder])


@pytest.mark.parametrize(
    "line",
    [
        "2026-03-01 10:00:00 ERROR trainer: the validation set has no rows",
        "[10:00:00] CRITICAL - config: unknown schedule `cosin`",
        "fatal: detected dubious ownership in repository at '/code'",
        "/usr/bin/env: exec format error: ./train",
        "train.sh: line 7: syntax error near unexpected token `('",
        "In 'config': Could not find 'model/large'",
        "/opt/torch/bin/luajit: train.lua:31: attempt to index a nil value",
        "docker: Error response from daemon: Conflict. The container name is in use",
    ],
)
def test_an_error_without_a_signature_is_the_cause_when_it_is_the_last_word(line: str, tmp_path: Path) -> None:
    verdict = verdict_of(f"starting\n{line}\n\n", tmp_path)
    assert (verdict.cause, verdict.line, verdict.confidence) == ("logged-error", 2, "low")


@pytest.mark.parametrize("line", ["ERROR uploader: metrics were not sent", "error: 0.0312", "INFO error rate 3"])
def test_an_error_in_a_run_that_goes_on_or_succeeds_is_no_cause(line: str, tmp_path: Path) -> None:
    assert not verdict_of(steps(60) + f"{line}\n" + steps(3), tmp_path).found
    assert not verdict_of(f"{line}\ntraining finished\n", tmp_path).found


def test_a_signature_is_better_than_a_logged_error(tmp_path: Path) -> None:
    verdict = verdict_of("ERROR trainer: giving up\n" + traceback("ValueError: seven"), tmp_path)
    assert (verdict.cause, "seven" in str(verdict.text)) == ("python-exception", True)


def test_an_exception_before_the_word_of_success_of_its_own_writer_ended_nothing(tmp_path: Path) -> None:
    shown = traceback("ValueError: no cache", prefix="[rank1]: ")
    assert not verdict_of(f"{shown}[rank1]: training finished\n", tmp_path).found
    assert verdict_of(f"{shown}[rank0]: training finished\n", tmp_path).rank == 1


@pytest.mark.parametrize("end", ["using the slow path", "falling back to eager mode", "this feature will be disabled"])
def test_a_failure_that_the_program_does_without_is_no_cause(end: str, tmp_path: Path) -> None:
    assert not verdict_of(f"ImportError: cannot import name 'fast_op', {end}\n", tmp_path).found


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("starting\n" + "info line\n" * 14 + "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error\n"
         + "  at exit\n" * 12, "shared-memory-exhausted"),
        ("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection failed\n",
         "rendezvous-timeout"),
        ("/bin/sh: 1: torchrun: not found\n", "missing-launcher"),
        ("ValueError:the outputs are no numbers! Stopped\n", "bare-exception"),
    ],
)  # fmt: skip
def test_an_excerpt_without_progress_is_about_what_it_shows(text: str, cause: str, tmp_path: Path) -> None:
    assert verdict_of(text, tmp_path).cause == cause


def test_an_abort_after_a_timeout_is_the_watchdogs(tmp_path: Path) -> None:
    waited = "NCCL communicator was aborted on rank 0. Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)"
    ended = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: 1 (pid: 88)"
    verdict = verdict_of(f"{traceback(f'RuntimeError: {waited}')}{ended}\n", tmp_path)
    assert (verdict.found, verdict.rank) == (False, None)


def test_an_exception_far_from_the_end_is_the_cause_when_the_run_only_lists_things_after_it(tmp_path: Path) -> None:
    listing = "".join(f"  - dataset_{number}\n" for number in range(600))
    ended = child_failed(row(1, 1), row(0, 1))
    verdict = verdict_of(steps(5) + traceback("ValueError: no dataset of that name") + listing + ended, tmp_path)
    assert (verdict.cause, "no dataset" in str(verdict.text)) == ("python-exception", True)
    went_on = steps(5) + traceback("ValueError: caught") + listing + steps(40, begin=5) + listing + ended
    assert not verdict_of(went_on, tmp_path).found


def test_an_exception_that_most_ranks_raise_blames_none(tmp_path: Path) -> None:
    def run(ranks: range) -> str:
        seen = "".join(f"[rank{rank}]: ready\n" for rank in range(8))
        return seen + "".join(traceback("KeyError: 'labels'", prefix=f"[rank{rank}]: ") for rank in ranks)

    assert verdict_of(run(range(2, 7)), tmp_path).rank is None
    assert verdict_of(run(range(2, 4)), tmp_path).rank == 2


def test_a_header_behind_a_progress_bar_belongs_to_the_rank_before_it(tmp_path: Path) -> None:
    shown = traceback("KeyError: 'x'", prefix="1: [rank4]: ")
    lines = shown.replace("1: [rank4]: Trace", "1:  96%|###| [rank4]: Trace", 1)
    verdict = verdict_of(lines, tmp_path)
    assert (verdict.cause, verdict.rank) == ("python-exception", 4)
    assert verdict.source is not None


def test_a_step_that_slurm_ended_for_one_task_was_not_ended_from_outside(tmp_path: Path) -> None:
    cancelled = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-03-01T10:00:00 DUE TO {} ***\n"
    assert verdict_of(cancelled.format("SIGNAL Terminated"), tmp_path).cause == "terminated-from-outside"
    assert verdict_of(cancelled.format("TASK FAILURE"), tmp_path).cause is None


def test_a_warning_in_a_short_log_is_no_cause(tmp_path: Path) -> None:
    warned = "[node1:6956] plm:rsh: Warning: setpgid(6961,6961) failed in parent with errno=Permission denied(13)\n"
    assert not verdict_of(warned + "model saved\n", tmp_path).found
    assert verdict_of(warned.replace("Warning: ", "") + "model saved\n", tmp_path).cause == "permission-denied"
