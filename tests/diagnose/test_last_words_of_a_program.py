"""What a program logged as an error last is the cause only where no better sign is, and its run did not succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from tests.support.diagnose.log_texts import steps, traceback

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
    assert (verdict.cause, "seven" in verdict.text) == ("python-exception", True)


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
    ],
)  # fmt: skip
def test_an_excerpt_without_progress_is_about_what_it_shows(text: str, cause: str, tmp_path: Path) -> None:
    assert verdict_of(text, tmp_path).cause == cause


def test_an_abort_after_a_timeout_is_the_watchdogs(tmp_path: Path) -> None:
    waited = "NCCL communicator was aborted on rank 0. Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)"
    ended = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: 1 (pid: 88)"
    verdict = verdict_of(f"{traceback(f'RuntimeError: {waited}')}{ended}\n", tmp_path)
    assert (verdict.found, verdict.rank) == (False, None)
