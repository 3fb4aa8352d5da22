"""A prefix before a traceback's lines changes nothing of it, and names rank and node where it can."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from tests.support.diagnose.log_texts import traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

PREFIXES: list[tuple[str, int | None, str | None]] = [
    ("[1,3]<stderr>:", 3, None),
    ("[1,3]<stderr>: ", 3, None),
    ("[prterun-node-1-99@1,3]<stderr>: ", 3, None),
    ("[3]<stderr>:", 3, None),
    ("Mon Jul  3 12:00:00 2023[3]<stderr>:", 3, None),
    ("Mon Jul  3 12:00:00 2023[1,3]<stderr>:", 3, None),
    ("[rank3]: ", 3, None),
    ("[rank3]:", 3, None),
    ("rank3: ", 3, None),
    ("Rank 3: ", 3, None),
    ("[Rank 3] ", 3, None),
    ("[rank 3] ", 3, None),
    ("[default3]:", 3, None),
    ("[default1]:[rank3]: ", 3, None),
    ("[host1:3]", 3, "host1"),
    ("node-1: [rank3]: ", 3, "node-1"),
    ("10.0.0.5: [rank3]: ", 3, "10.0.0.5"),
    ("10.0.0.5: ", None, "10.0.0.5"),
    ("3: ", 3, None),
    ("[3] ", 3, None),
    ("[3]: ", 3, None),
    ("worker-1: ", None, "worker-1"),
    ("gpu-node-7: ", None, "gpu-node-7"),
    ("trainer-2  | ", 2, None),
    ("ip-10-0-0-5: ", None, "ip-10-0-0-5"),
    ("(RayTrainWorker pid=1203, ip=10.0.0.9) ", None, "10.0.0.9"),
    ("(pid=1203, ip=10.0.0.9) ", None, "10.0.0.9"),
    ("(VllmWorker rank=3 pid=12231) ", 3, None),
    ("(VllmWorker rank=3 pid=12231) ERROR 03-25 21:13:53 multiproc_executor.py:374] ", 3, None),
    ("(Worker_TP3 pid=2541127) ERROR 09-22 23:19:03 [multiproc_executor.py:597] ", 3, None),
    ("(Worker_PP1_TP3 pid=2541127) ", None, None),
    ("[2025-05-01 10:00:00 TP3] ", 3, None),
    ("[2025-05-01 10:00:00 DP1 TP3] ", None, None),
    ("[RANK 3] 2026-05-19 10:10:29,701 [ERROR] ", 3, None),
    ("[rank: 3] ", 3, None),
    ("2023-05-10T12:00:00.123456789Z stderr F ", None, None),
    ("2023-05-10 12:00:00,123 ", None, None),
    ("12:00:00 ", None, None),
    ("[12:00:00] ", None, None),
    ("[2023-05-10 12:00:00,123] [ERROR] [train.py:90] ", None, None),
    ("ERROR 2023-05-10 12:00:00,123 main: ", None, None),
    ("stderr: ", None, None),
    ("\x1b[31m", None, None),
    ("  1234  ", None, None),
    ("| ", None, None),
    ("# ", None, None),
    ("E  ", None, None),
    ("[1;31m", None, None),
    ("\x1b[36m(main pid=12)\x1b[0m ", None, None),
    ("[stderr][rank3] ", 3, None),
    ("[3/8] ", None, None),
    ("vm1.internal: ", None, "vm1.internal"),
    ("[1689072000.123] ", None, None),
    ("localhost: ", None, None),
    ("[localhost:00012] ", None, None),
    ("train-job-worker-0 | ", 0, None),
    ("train_worker_3_1  | ", None, None),
    ("pytorch-job-worker-3 pytorch ", None, None),
    ("[INFO|trainer.py:90] 2023-05-10 12:00:00,123 >> ", None, None),
]


@for_each("prefix, rank, node", PREFIXES)
def test_a_traceback_is_read_behind_any_prefix(prefix: str, rank: int | None, node: str | None, tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text("starting\n" + traceback("KeyError: 'labels'", prefix=prefix) + "end\n")
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.text) == ("python-exception", "KeyError: 'labels'")
    assert (verdict.rank, verdict.node) == (rank, node)
    assert verdict.source is not None
    assert (verdict.source.file, verdict.source.line, verdict.source.function) == ("/code/train.py", 41, "main")


@pytest.mark.parametrize("indented", [True, False])
def test_a_prefix_before_the_header_alone_names_the_whole_traceback(indented: bool, tmp_path: Path) -> None:
    """One record of a logger with several lines, of which the first has its prefix; others may come between."""
    lines = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB").splitlines()
    lines = [line if indented else line.strip() for line in lines]
    lines[0] = f"[2025-02-09 21:23:00 TP2] Scheduler hit an exception: {lines[0]}"
    lines.insert(3, "[2025-02-09 21:23:00 TP0] waiting")
    (tmp_path / "out.log").write_text("\n".join(lines) + "\n[2025-02-09 21:23:01] a child failed\n")
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.rank) == ("cuda-out-of-memory", 2)
    assert verdict.source is not None
    assert verdict.source.file == "/code/train.py"


def test_lines_without_a_prefix_belong_to_nobody_whose_name_stands_before_every_line(tmp_path: Path) -> None:
    mine = traceback("ValueError: bad label", prefix="[rank3]: ").splitlines()
    other = traceback("KeyError: 'x'").splitlines()
    mixed = [line for pair in zip(mine, other, strict=True) for line in pair]
    (tmp_path / "out.log").write_text("\n".join(mixed) + "\n")
    verdict = diagnose([tmp_path])
    found = {(verdict.text, verdict.rank), *((each.text, each.rank) for each in verdict.pointers)}
    assert found == {("ValueError: bad label", 3), ("KeyError: 'x'", None)}
