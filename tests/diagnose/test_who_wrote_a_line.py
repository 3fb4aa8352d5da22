"""The writer of a line: by labels of a whole log, by its process, by the command that failed."""

# ruff: noqa: E501
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from amlstack.diagnose.reading import writers
from tests.support.diagnose.log_texts import CLOSED, traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
WARN = "NCCL WARN Cuda failure 'out of memory'"


def verdict_of(text: str, folder: Path) -> Diagnosis:
    (folder / "out.log").write_text(text)
    return diagnose([folder])


@for_each("form", ["{rank}: {text}", "{rank:2d}: {text}", "[{rank}] {text}", "[{rank}]: {text}"])
@for_each(
    "line, cause",
    [
        (f"[2024-02-01 10:00:00] trainer {OOM}", "cuda-out-of-memory"),
        ("bash: line 3: 4711 Segmentation fault (core dumped) python train.py", "segmentation-fault"),
    ],
)
def test_numbers_before_most_lines_are_ranks(form: str, line: str, cause: str, tmp_path: Path) -> None:
    rows = [f"loading shard {each}" for each in range(2)] + ["ready"]
    text = "".join(form.format(rank=rank, text=row) + "\n" for row in rows for rank in range(9, 13))
    text += form.format(rank=10, text=line) + "\n"
    text += "".join(form.format(rank=rank, text=CLOSED) + "\n" for rank in (9, 11, 12))
    verdict = verdict_of(text, tmp_path)
    assert (verdict.cause, verdict.rank) == (cause, 10)
    assert {each.rank for each in verdict.victims} == {9, 11, 12}


def test_an_excerpt_of_one_labelled_rank_needs_no_header(tmp_path: Path) -> None:
    rows = traceback(OOM).splitlines()[3:]
    assert verdict_of("".join(f"10: {row}\n" for row in rows), tmp_path).rank == 10


@for_each(
    "rows",
    [
        [f"{number}: line" for number in range(1, 40)],
        [f"[{number}] item" for number in range(1, 40)],
        [f"12:00:{second:02d} step" for second in (1, 1, 2, 2, 3)],
        ["[1] only one number" for _ in range(5)],
        ["0: 0.51", "1: 0.33", *["epoch done, val loss 0.2"] * 9, "0: 0.4"],
    ],
)
def test_numbers_that_count_lines_or_stand_before_few_are_no_ranks(rows: list[str]) -> None:
    log = writers.Prefixes()
    log.sample("\n".join(rows).encode())
    assert log.line_of(rows[0]).rank is None


def test_the_number_of_a_task_that_starts_a_launcher_is_a_nodes(tmp_path: Path) -> None:
    rows = [f"{task}: starting torch.distributed.run with torch.distributed.elastic" for task in range(2)]
    rows += [f"{task}: waiting" for task in range(2)] + [f"1: {row}" for row in traceback(OOM).splitlines()]
    verdict = verdict_of("\n".join(rows) + "\nsrun: error: gpu7: task 1: Exited with exit code 1\n", tmp_path)
    assert (verdict.cause, verdict.rank) == ("cuda-out-of-memory", None)


@for_each(
    "who, rank",
    [
        ("Worker_TP3", 3),
        ("VllmWorker TP3", 3),
        ("Worker_PP0_TP3", 3),
        ("Worker_PP0_TP3_EP3", 3),
        ("Worker_PP2", 2),
        ("Worker_PP1_TP3", None),
        ("Worker_PP1_TP0", None),
        ("Worker_DP1_TP3", None),
        ("EngineCore_DP0", None),
        ("RayTrainWorker", None),
        ("HTTP3", None),
    ],
)
def test_a_workers_name_tells_its_rank_where_no_other_sizes_are_needed(who: str, rank: int | None) -> None:
    assert writers.parallel(who) == rank
    assert writers.strip(f"({who} pid=12) x").rank == rank
    assert writers.strip(f"({who} pid=12) x").text == "x"


@for_each(
    "known",
    [
        "{node}:{pid}:{tid} [{rank}] NCCL INFO comm 0xa{rank} rank {rank} nranks 4 cudaDev 0 busId 1000 - Init COMPLETE",
        "{node}:{pid}:{tid} [{rank}] NCCL INFO ncclCommInitRank comm 0xa{rank} rank {rank} nranks 4 cudaDev 0",
        "{node}:{pid}:{tid} [{rank}] NCCL INFO Channel 00/0 : {rank}[0] -> 1[0] via P2P/IPC",
        "{node}:{pid}:{tid} [0] NCCL WARN [Proxy Service {rank}] Failed to execute operation Setup from rank 9",
        "#  Rank  {rank} Group  0 Pid  {pid} on  {node} device  0",
        "(RayTrainWorker pid={pid}) [rank{rank}]: something",
        "- (node_id=1, ip=10.0.0.1, pid={pid}) world_rank={rank}, local_rank=0",
    ],
)
def test_a_process_has_the_rank_that_another_line_gives_it(known: str, tmp_path: Path) -> None:
    ranks = {4711 + 10 * rank: rank for rank in range(4)}
    text = "".join(known.format(node="n1", pid=pid, tid=pid + 1, rank=rank) + "\n" for pid, rank in ranks.items())
    verdict = verdict_of(f"{text}n1:4731:4735 [0] include/alloc.h:178 {WARN}\n", tmp_path)
    assert (verdict.cause, verdict.rank, verdict.node) == ("cuda-out-of-memory", 2, "n1")


def test_ranks_that_several_processes_share_name_none(tmp_path: Path) -> None:
    """Two groups of two number their members anew."""
    comm = "n1:{pid}:1 [{gpu}] NCCL INFO comm 0xa rank {rank} nranks 2 cudaDev {gpu} busId 1000 - Init COMPLETE\n"
    text = "".join(comm.format(pid=50 + gpu, gpu=gpu, rank=gpu % 2) for gpu in range(4))
    assert verdict_of(f"{text}n1:53:9 [3] include/alloc.h:178 {WARN}\n", tmp_path).rank is None


@pytest.mark.parametrize(("world", "hosts", "rank"), [(4, 1, 2), (4, 2, None), (64, 1, None), (None, 1, None)])
def test_the_number_of_a_gpu_is_a_rank_on_one_node_only(
    world: int | None, hosts: int, rank: int | None, tmp_path: Path
) -> None:
    rows = [f"n{gpu % hosts}:{50 + gpu}:1 [{gpu}] NCCL INFO Bootstrap" for gpu in range(4)]
    rows += [f"world_size: {world}"] if world else []
    rows += [f"n0:52:9 [2] include/alloc.h:178 {WARN}", ""]
    assert verdict_of("\n".join(rows), tmp_path).rank == rank


FAILED = "subprocess.CalledProcessError: Command '['python', '-u', 'train.py', '--local_rank={local}']' returned non-zero exit status 1."
LAUNCHER = 'Traceback (most recent call last):\n  File "/opt/conda/lib/python3.8/site-packages/torch/distributed/launch.py", line 231, in main\n    {source}\n'


@pytest.mark.parametrize(
    ("source", "local", "rank"),
    [("cmd=process.args)", 3, 3), ("cmd=cmd)", 3, None), ("cmd=cmd)", 0, 0)],
)
def test_the_command_that_failed_names_its_rank_where_it_is_not_the_last_one_started(
    source: str, local: int, rank: int | None, tmp_path: Path
) -> None:
    text = traceback("ValueError: bad label") + LAUNCHER.format(source=source) + FAILED.format(local=local) + "\n"
    verdict = verdict_of(text, tmp_path)
    assert (verdict.cause, verdict.rank) == ("python-exception", rank)


@pytest.mark.parametrize(("local", "rank"), [(0, 0), (3, None)])
def test_deepspeed_shows_the_command_that_it_started_last(local: int, rank: int | None, tmp_path: Path) -> None:
    end = f"[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['python', '--local_rank={local}', 'x'] exits with return code = 1\n"
    assert verdict_of(traceback("ValueError: bad label") + end, tmp_path).rank == rank
