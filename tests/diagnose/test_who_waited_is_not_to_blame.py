"""Ranks that waited: what they raise afterwards, whose numbers are compared, and who never came."""

from __future__ import annotations

# ruff: noqa: E501
from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from tests.support.diagnose.log_texts import LIB, steps, traceback, watchdog

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis

INSIDE = f"""\
Traceback (most recent call last):
  File "/code/train.py", line 41, in main
    dist.all_reduce(x)
  File "{LIB}/torch/distributed/distributed_c10d.py", line 2501, in all_reduce
    work.wait()
RuntimeError: the operation was given up
"""


def verdict_of(text: str, folder: Path) -> Diagnosis:
    (folder / "out.log").write_text(text)
    return diagnose([folder])


def ranked(text: str, rank: int) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


def reached(rank: int, enqueued: int, completed: int, group: int = 0) -> str:
    return (
        f"[rank{rank}]:[E201 10:10:12.815298746 ProcessGroupNCCL.cpp:1664] [PG ID {group} PG GUID {group}(g) Rank {rank}] "
        f"Exception (either an error or timeout) detected by watchdog at work: {completed + 1}, "
        f"last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}.\n"
    )


@pytest.mark.parametrize("late", [True, False])
def test_what_a_library_raises_in_a_rank_that_timed_out_follows_from_that(late: bool, tmp_path: Path) -> None:
    parts = [watchdog(1), ranked(INSIDE, 1)]
    verdict = verdict_of(steps(3) + "".join(parts if late else parts[::-1]) + watchdog(2), tmp_path)
    assert (verdict.cause, verdict.rank) == ("collective-timed-out", None)
    assert {1, 2} == {each.rank for each in verdict.victims}


def test_one_rank_that_timed_out_shows_that_a_collective_did_and_blames_nobody(tmp_path: Path) -> None:
    gloo = traceback(
        "RuntimeError: [gloo/transport/tcp/buffer.cc:81] Timed out waiting 1800ms for recv", prefix="[rank1]: "
    )
    run = "world_size: 2\n" + steps(60) + watchdog(1)
    others = "Get every rank's log"
    for log, alone in ((run, False), (run.removeprefix("world_size: 2\n"), True), (gloo, True)):
        verdict = verdict_of(log, tmp_path)
        assert (verdict.cause, verdict.rank) == ("collective-timed-out", None)
        assert (others in str(verdict.advice), "NCCL" in str(verdict.advice)) == (alone, log != gloo)
    closed = "n1:72:71 [1] NCCL INFO [Service thread] Connection closed by localRank 2\n"
    assert verdict_of(watchdog(2) + closed + watchdog(0), tmp_path).cause == "collective-timed-out"
    (tmp_path / "out.log").write_text(run.removeprefix("world_size: 2\n"))
    (tmp_path / "out.log").rename(tmp_path / "rank_1.log")
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.rank, others in str(verdict.advice)) == ("collective-timed-out", None, True)


def test_a_plugin_that_nccl_does_without_is_not_why_a_collective_timed_out(tmp_path: Path) -> None:
    plugin = "n1:23:25 [3] NCCL INFO TUNER/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object"
    assert (
        verdict_of(f"{plugin} file: No such file or directory\n{watchdog(3)}", tmp_path).cause == "collective-timed-out"
    )


def test_the_codes_own_exception_stays_its_own(tmp_path: Path) -> None:
    verdict = verdict_of(steps(3) + watchdog(1) + traceback("ValueError: x", prefix="[rank3]: "), tmp_path)
    assert (verdict.cause, verdict.rank) == ("python-exception", 3)


def test_the_rank_that_never_enqueued_what_the_others_wait_for_is_named(tmp_path: Path) -> None:
    verdict = verdict_of("".join(reached(rank, 815, 810) for rank in (0, 1, 2)) + reached(3, 810, 810), tmp_path)
    assert (verdict.cause, verdict.rank) == ("rank-did-not-join", 3)


@pytest.mark.parametrize(
    "other",
    [
        reached(3, 400, 399),  # a lag that no collective of this group explains
        reached(3, 813, 810),  # it joined, and has only enqueued less beyond it
        reached(3, 810, 810, group=7),  # another group's numbers
    ],
)
def test_numbers_that_do_not_compare_name_nobody(other: str, tmp_path: Path) -> None:
    verdict = verdict_of("".join(reached(rank, 815, 810) for rank in (0, 1, 2)) + other, tmp_path)
    assert (verdict.found, verdict.rank) == (False, None)


@pytest.mark.parametrize(
    "ready",
    [
        "| distributed init (rank {rank}): env://\n",
        "initializing distributed: GLOBAL_RANK: {rank}, MEMBER: 1/4\n",
        "INFO - Added key: store_based_barrier_key:1 to store for rank: {rank}\n",
    ],
)
def test_who_was_ready_tells_who_was_not(ready: str, tmp_path: Path) -> None:
    text = "".join(ready.format(rank=rank) for rank in (0, 1, 3)) + "world_size: 4\n"
    end = "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 3/4 clients joined.\n"
    verdict = verdict_of(text + traceback(end.strip()), tmp_path)
    assert (verdict.cause, verdict.rank) == ("rendezvous-timeout", 2)


def test_ranks_that_cannot_reach_each_other_are_nobodys_fault(tmp_path: Path) -> None:
    line = "RuntimeError: Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:144] no error"
    verdict = verdict_of(steps(0) + traceback(line, prefix="[rank4]: ") + traceback(line, prefix="[rank6]: "), tmp_path)
    assert (verdict.cause, verdict.rank) == ("network-unreachable", None)
    assert "GLOO_SOCKET_IFNAME" in verdict.advice
