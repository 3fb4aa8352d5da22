"""Gigabytes read in one process, each beside a tool that only reads them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measure import Row, taken

from amlstack import snapshot
from amlstack.diagnose import read
from amlstack.snapshot import remembered

LINES = 100_000
MODULE = 20_000


def diagnosis(*, quick: bool) -> Iterator[Row]:
    """Logs of 500 MB, read by `diagnose` in one process, against `grep -c Error` of the same file.

    Three shapes of file, each a hundred thousand lines written with other numbers again and again: NCCL's output at
    NCCL_DEBUG=INFO, where nothing is wrong and nothing repeats a word of the table; errors of 512 ranks on 64
    nodes, of which each line is worth a look; and the steps of a training that prints an error rate. Both read the
    file from memory, in turns; each figure is the less of two. Grep stops at nothing: it counts, and its output is
    read.
    """
    size = 50_000_000 if quick else 500_000_000
    for title, line in (("NCCL's output", _nccl), ("errors", _error), ("steps", _step)):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "std_log.txt"
            _write(file, line, size)

            def grep(file: Path = file) -> None:
                # With its output thrown away grep would stop at the first match.
                subprocess.run(["grep", "-c", "Error", str(file)], capture_output=True, check=False)

            def ours(file: Path = file) -> None:
                read([file])

            turns = [[taken(work)[1] for work in (grep, ours)] for _ in range(1 if quick else 2)]
        anchor, least = map(min, zip(*turns, strict=True))
        goal = f"at most 15 times as long (now {least / anchor:.1f})"
        what = f"{title}, {size // 1_000_000} MB"
        yield Row(what, least, "s", "`grep -c Error`", anchor, goal, least <= 15 * anchor)


def snapshots(*, quick: bool) -> Iterator[Row]:
    """A code folder of 20,000 files and 2 GB (half Python modules, half binary data), hashed for upload and for a run.

    Ours is the scan of the folder and the identity of a run in it, in a running process: the content hash of
    azure-ai-ml, the same without what tools leave, a digest of each file, a look for secrets, and which job files
    nothing uses. The anchor is one process of `sha256sum` over the same files, which lie in the memory of the
    machine for both. Best of two turns each. Coreutils' own SHA-256 is slower than OpenSSL's, which Python has:
    where `sha256sum` is linked with OpenSSL, its figure is about a third of the one here.
    """
    files, size = (2_000, 200_000_000) if quick else (20_000, 2_000_000_000)
    former = os.environ.get("AMLSTACK_CACHE")
    found: list[Any] = []
    with tempfile.TemporaryDirectory() as made:
        code, cache = Path(made, "code"), Path(made, "cache")
        names = _folder(code, files, size)
        time.sleep(remembered.GRAIN / 1e9)  # younger files are not remembered
        os.environ["AMLSTACK_CACHE"] = str(cache)

        def anchor() -> None:
            subprocess.run(["sha256sum", "--", *names], cwd=code, stdout=subprocess.DEVNULL, check=True)

        def unchanged() -> None:
            scanned = snapshot.scan(code)
            identity = snapshot.own_code(scanned, declared_in=(code / "p0/m0.py",), commands=("python p1/m2.py",))
            found.append((scanned, identity))

        def cold() -> None:
            shutil.rmtree(cache, ignore_errors=True)
            unchanged()

        try:
            turns = [[taken(work) for work in (anchor, cold, unchanged)] for _ in range(2)]
        finally:
            os.environ.pop("AMLSTACK_CACHE")
            os.environ.update({} if former is None else {"AMLSTACK_CACHE": former})
    if any(each != found[0] for each in found):
        raise RuntimeError("the scans differ")
    theirs, *ours = ([min(figures) for figures in zip(*column, strict=True)] for column in zip(*turns, strict=True))
    for title, least, most in zip(("cold", "unchanged"), ours, (1.3, 0.1), strict=True):
        for unit, figure, anchors in zip(("clock", "CPU"), least, theirs, strict=True):
            what = f"{files:,} files, {size / 1e9:g} GB, {title}, {unit}"
            yield Row(what, figure, "s", "sha256sum", anchors, f"at most {most:g} times", figure <= most * anchors)


def _write(file: Path, line: Callable[[random.Random, int], str], size: int) -> None:
    rng = random.Random(24)  # noqa: S311 - the same file in every run
    piece = "".join(f"{line(rng, number)}\n" for number in range(LINES)).encode()
    with file.open("wb") as out:
        for _ in range(size // len(piece)):
            out.write(piece)
        out.write(piece[: size % len(piece)])


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


def _folder(root: Path, files: int, size: int) -> list[str]:
    """Makes the folder; names of its files."""
    rng = random.Random(7)  # noqa: S311 - the same files in every run
    lines = [f"name_{number} = values[{number}] + {number * 7}  # what it is for\n" for number in range(400)]
    text = "".join(rng.choice(lines) for _ in range(4_000)).encode()
    data = rng.randbytes(8 * MODULE)
    rest = (size - files // 2 * MODULE // 2) // (files // 2)
    names = []
    for number in range(files):
        folder = f"p{number % 200}"
        (root / folder).mkdir(parents=True, exist_ok=True)
        if number % 2:
            name, start = f"{folder}/d{number}.bin", rng.randrange(len(data))
            content = (number.to_bytes(8) + (data[start:] + data) * (rest // len(data) + 1))[:rest]
        else:
            name, start = f"{folder}/m{number}.py", rng.randrange(len(text) - MODULE)
            content = f"import m{number}\n".encode() + text[start : start + rng.randrange(MODULE)]
        (root / name).write_bytes(content)
        names.append(name)
    (root / ".gitignore").write_text("*.pyc\n__pycache__/\n/build/\n.venv/\n*.tmp\n")
    return [*names, ".gitignore"]
