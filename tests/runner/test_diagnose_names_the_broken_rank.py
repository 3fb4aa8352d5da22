"""A rank is broken on purpose in a real rehearsal; its logs name it. Seeds move it around."""

from __future__ import annotations

import asyncio
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.diagnose import diagnose
from amlstack.sandbox.runner import namespace
from tests.support.runner.failures import ALONE, LOADER, NEVER_JOINS, STEPS, WAYS
from tests.support.runner.runner_lab import CURATED, LIMIT

if TYPE_CHECKING:
    from amlstack.diagnose import Diagnosis
    from tests.support.runner.runner_lab import Lab

NODES, PROCESSES = 2, 2
RANKS = NODES * PROCESSES
ALL = int(os.environ.get("FAILURE_SEEDS", "0"))
"""``make failures`` runs as many seeds of every failure; the suite runs four of the first, and one of each other."""

OF_TORCH = 4 if ALL else 3
"""Nodes, with a rank each, where every rank takes seconds to import torch."""

NO_MOUNT = "this machine does not permit a private mount of /dev/shm (unshare, mount)"


def drawn(way: str, seed: int, ranks: int = RANKS) -> int:
    return random.Random(f"{way}{seed}").randrange(ranks)


def seeds(few: int) -> range:
    return range(ALL or few)


CASES = [(way, seed) for way in WAYS for seed in seeds(4 if way == "raise" else 1)]


@pytest.mark.parametrize(("way", "seed"), CASES)
def test_the_rank_that_was_broken_is_named(lab: Lab, way: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = WAYS[way]
    if made.shm and not namespace.possible():
        pytest.skip(NO_MOUNT)
    # Who is left ends by itself, but for a rank that hangs: for that one the others must not be cut short.
    monkeypatch.setenv("AMLSTACK_SANDBOX_SETTLE", "10" if made.silence else str(LIMIT))
    broken = drawn(way, seed)
    code = lab.code({"train.py": ALONE.format(how=made.how, silence=made.silence)})
    resources = {"instanceCount": NODES, **({"shmSize": made.shm} if made.shm else {})}
    job = lab.run(lab.job(f"python train.py {broken}", processes=PROCESSES, codeId=code, resources=resources))
    assert job.status == "Failed"
    verdict = diagnose([lab.folder("job")])
    assert (verdict.found, verdict.rank, verdict.cause) == (True, broken, made.cause)
    assert verdict.node == str(broken // PROCESSES)
    assert broken not in [victim.rank for victim in verdict.victims]
    if way == "raise":
        assert verdict.file == f"user_logs/std_log_process_{broken:02d}.txt"
        assert verdict.text == f"ValueError: shard {broken} is broken"
        assert verdict.source is not None
        assert (verdict.source.function, verdict.source.file.rsplit("/", 1)[-1]) == ("fail", "train.py")
    # The logs alone, as they are downloaded, name it too where a log says anything.
    alone = diagnose([lab.folder("job") / "user_logs"])
    assert alone.rank == broken


@pytest.mark.parametrize("seed", seeds(1))
def test_a_rank_that_hangs_without_a_timeout_is_named_with_low_confidence(lab: Lab, seed: int) -> None:
    broken, pipe = drawn("silent", seed), lab.pipe()
    code = lab.code({"train.py": STEPS})
    job = lab.job(f"python train.py {broken} {pipe}", nodes=NODES, processes=PROCESSES, codeId=code)
    asyncio.run(lab.during(job, act=lambda: cancel_once_all_wait(lab, job, broken), pipe=pipe))
    assert lab.store.jobs[job].status == "Canceled"
    verdict = diagnose([lab.folder(job)])
    assert (verdict.found, verdict.rank, verdict.cause) == (True, broken, "rank-did-not-join")
    assert verdict.node == str(broken // PROCESSES)
    assert verdict.confidence == "low"


def cancel_once_all_wait(lab: Lab, job: str, broken: int) -> None:
    """The hanging rank has spoken; the others write their last line at once, and then wait for it for ever."""
    others = [
        lab.folder(job) / "user_logs" / f"std_log_process_{rank:02d}.txt" for rank in range(RANKS) if rank != broken
    ]
    while not all("step 4 begins" in log.read_text() for log in others):
        os.sched_yield()
    lab.store.jobs.request_cancel(job)


def of_torch(lab: Lab, script: str, broken: int, **resources: Any) -> Diagnosis:
    lab.cluster(high=OF_TORCH)
    code = lab.code({"train.py": script})
    asked = {"instanceCount": OF_TORCH, **resources}
    job = lab.job(f"python train.py {broken}", codeId=code, environmentId=CURATED, resources=asked)
    assert lab.run(job).status == "Failed"
    return diagnose([lab.folder(job)])


@pytest.mark.training
@pytest.mark.parametrize("seed", seeds(1))
def test_a_node_that_never_joins_is_named(lab: Lab, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_SANDBOX_SETTLE", "20")
    broken = drawn("never joins", seed, OF_TORCH)
    verdict = of_torch(lab, NEVER_JOINS, broken)
    assert (verdict.found, verdict.cause) == (True, "rendezvous-timeout")
    assert (verdict.rank, verdict.node) == (broken, str(broken))


@pytest.mark.training
@pytest.mark.parametrize("seed", seeds(1))
def test_a_data_loader_without_shared_memory_is_named(lab: Lab, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if not namespace.possible():
        pytest.skip(NO_MOUNT)
    monkeypatch.setenv("AMLSTACK_SANDBOX_SETTLE", str(LIMIT))
    broken = drawn("loader", seed, OF_TORCH)
    # A node's ranks share what there is: each has a node of its own, so that no neighbour runs out of it too.
    verdict = of_torch(lab, LOADER, broken, shmSize="8m")
    assert (verdict.found, verdict.rank, verdict.cause) == (True, broken, "shared-memory-exhausted")
    assert verdict.node == str(broken)
