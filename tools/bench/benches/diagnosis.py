"""Logs of 500 MB, read by `diagnose` in one process, against `grep -c Error` of the same file.

Three shapes of file, each a hundred thousand lines written with other numbers again and again: NCCL's output at
NCCL_DEBUG=INFO, where nothing is wrong and nothing repeats a word of the table; errors of 512 ranks on 64 nodes, of
which each line is worth a look; and the steps of a training that prints an error rate. Both read the file from memory,
in turns; each figure is the less of two. Grep stops at nothing: it counts, and its output is read.
"""

from __future__ import annotations

import functools
import random
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row, cpu

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BYTES, LINES, TIMES = 500_000_000, 100_000, 2
RATIO = 15


def run(*, quick: bool) -> Iterator[Row]:
    """Time both on each shape of file; with few bytes the first lines, which are read, weigh more."""
    from amlstack.diagnose import read  # noqa: PLC0415 - what is measured is imported where it is measured

    size = BYTES // 10 if quick else BYTES
    for title, line in (("NCCL's output", _nccl), ("errors", _error), ("steps", _step)):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "std_log.txt"
            _write(file, line, size)
            ours, theirs = [], []
            for _ in range(1 if quick else TIMES):
                theirs.append(_grep(file))
                ours.append(cpu(functools.partial(read, [file])))
        least, anchor = min(ours), min(theirs)
        goal = f"at most {RATIO} times as long (now {least / anchor:.1f})"
        yield Row(
            f"{title}, {size // 1_000_000} MB", least, "s", "`grep -c Error`", anchor, goal, least <= RATIO * anchor
        )


def _write(file: Path, line: Callable[[random.Random, int], str], size: int) -> None:
    rng = random.Random(24)  # noqa: S311 - the same file in every run
    piece = "".join(f"{line(rng, number)}\n" for number in range(LINES)).encode()
    with file.open("wb") as out:
        for _ in range(size // len(piece)):
            out.write(piece)
        out.write(piece[: size % len(piece)])


def _grep(file: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # With its output thrown away grep would stop at the first match.
    subprocess.run(["grep", "-c", "Error", str(file)], capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _nccl(rng: random.Random, number: int) -> str:
    gpu, peer = number % 8, (number + 1) % 8
    begin = f"node-{number % 64}:{1_000 + number}:{2_000 + number} [{gpu}] NCCL INFO"
    sent, received = rng.randrange(16**5), rng.randrange(16**5)
    return rng.choice(
        [
            f"{begin} Channel {number % 32:02d}/0 : {gpu}[{sent:x}] -> {peer}[{received:x}] via P2P",
            f"{begin} comm 0x{rng.randrange(16**12):x} rank {number % 512} nranks 512 cudaDev {gpu} - Init COMPLETE",
            f"{begin} NET/IB : Using [0]mlx5_ib{gpu}:1/IB [RO]; OOB eth0:10.0.{number % 255}.{number % 250}<0>",
            f"{begin} Trees [0] {gpu}/-1/-1->{peer}->{gpu} [1] {gpu}/-1/-1->{peer}->{gpu}",
            f"{begin} Setting affinity for GPU {gpu} to {rng.randrange(16**8):x},{rng.randrange(16**8):x}",
            f"{begin} Connected all rings, use ring PXN 1 GDR 1 0x{rng.randrange(16**12):x}",
        ]
    )


def _error(rng: random.Random, number: int) -> str:
    rank, hexadecimal = number % 8, f"{rng.randrange(16**8):x}"
    what = rng.choice(["an illegal memory access", "out of memory", "unspecified launch failure"])
    work = f"WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600061 milliseconds."
    clock, place = f"18:44:{number % 60:02d}.715298746", "ProcessGroupNCCL.cpp:607"
    return rng.choice(
        [
            f"[rank{rank}]:[E1206 {clock} {place}] [Rank {rank}] Watchdog caught collective operation timeout: {work}",
            f"frame #{number % 40}: c10::Error::Error(c10::SourceLocation) + 0x57 (0x{hexadecimal} in libc10.so)",
            f"RuntimeError: CUDA error: {what} was encountered at {hexadecimal}",
            f"node-{number % 64}: [rank{rank}]: ValueError: bad sample {hexadecimal} in shard {number}",
            f"WARNING retrying request {hexadecimal}: connection reset by peer",
        ]
    )


def _step(rng: random.Random, number: int) -> str:
    clock = f"2024-02-01 10:{number // 60 % 60:02d}:{number % 60:02d}"
    loss, speed = 2 - number * 1e-6, rng.randrange(90_000)
    return f"[{clock}] [rank{number % 8}] step {number} loss {loss:.5f} error_rate 0.1 tokens/s {speed}"
