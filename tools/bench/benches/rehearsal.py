"""Wall-clock seconds of `amlstack rehearse` of two nodes with four ranks each, and of the same script started by hand.

By hand has the same environment. The two are run in pairs, in turns of who goes first, so that what else the machine
does meets both. A ratio is the median of the pairs' ratios, its spread is in brackets. The sandbox is up and the
environment built, as in the second rehearsal of a day; process start, upload, queue and collecting outputs count. With
`--quick` it is one pair of torchrun with two ranks on each node.
"""

from __future__ import annotations

import functools
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row

from amlstack import images

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PROJECT = Path(__file__).resolve().parents[3]
EXAMPLES = PROJECT / "examples"
PAIRS = 2
MOST = 1.15
NODES, PER_NODE, PER_NODE_QUICK = 2, 4, 2
AS_WRITTEN = "RANKS_PER_NODE = 2"


def run(*, quick: bool) -> Iterator[Row]:
    """Time the examples for torchrun and for mpirun."""
    python = images.build(images.resolve("acpt-pytorch-2.8-cuda12.6")) / "bin"
    cases: list[tuple[str, str, Callable[[Path, int, Path], None]]] = [
        ("torchrun", "ddp_torchrun", _torchrun),
        ("mpirun", "mpi_per_process", _mpirun),
    ]
    if quick:
        del cases[1:]
    ranks = PER_NODE_QUICK if quick else PER_NODE
    with _sandbox() as environ:
        for number, (name, folder, bare) in enumerate(cases):
            work = functools.partial(bare, python, ranks)
            count, warm = (1, False) if quick else (PAIRS, number == 0)
            yield _compared(name, folder, work, environ, ranks=ranks, count=count, warm=warm)


def _compared(
    name: str,
    folder: str,
    bare: Callable[[Path], None],
    environ: Mapping[str, str],
    *,
    ranks: int,
    count: int,
    warm: bool,
) -> Row:
    def rehearse() -> float:
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(EXAMPLES / folder, place, dirs_exist_ok=True)
            file = Path(place, "job.py")
            text = file.read_text("utf-8")
            if AS_WRITTEN not in text:
                message = f"{EXAMPLES / folder / 'job.py'} does not have {AS_WRITTEN!r} any more"
                raise RuntimeError(message)
            file.write_text(text.replace(AS_WRITTEN, f"RANKS_PER_NODE = {ranks}"), "utf-8")
            words = [sys.executable, "-m", "amlstack.cli.main", "rehearse", "-q", str(file)]
            return _timed(lambda: _run(words, PROJECT, environ))

    def by_hand() -> float:
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(EXAMPLES / folder, place, dirs_exist_ok=True)
            shutil.copytree(PROJECT / "amlnode", Path(place, "amlnode"))  # it travels beside the code that imports it
            return _timed(lambda: bare(Path(place)))

    if warm:
        rehearse()  # once for the caches of both examples; by hand has none of its own
    pairs = []
    for number in range(count):
        if number % 2:
            second = by_hand()
            pairs.append((rehearse(), second))
        else:
            pairs.append((rehearse(), by_hand()))
        print(f"{name}: {pairs[-1][0]:.1f} s against {pairs[-1][1]:.1f} s", file=sys.stderr, flush=True)
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    middle = statistics.median(ratios)
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    spread = f"now {middle:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}, {count} pairs)"
    goal = f"at most {MOST} times as long, {spread}"
    return Row(f"rehearsal of `{folder}`", ours, "s", f"bare {name}", theirs, goal, middle <= MOST)


def _torchrun(python: Path, ranks: int, place: Path) -> None:
    port = _port()
    words = ["torchrun", "--nnodes", str(NODES), "--nproc_per_node", str(ranks)]
    words += ["--master_addr", "127.0.0.1", "--master_port", port]
    script = ["train.py", "--epochs", "8", "--world-size", str(NODES * ranks)]
    started = [
        subprocess.Popen(
            [str(python / words[0]), *words[1:], "--node_rank", str(node), *script],
            cwd=place,
            env=_environ(python, ranks),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for node in range(NODES)
    ]
    _check([process.wait() for process in started], "torchrun")


def _mpirun(python: Path, ranks: int, place: Path) -> None:
    root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    quiet = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1"]
    words = ["mpirun", *root, "--oversubscribe", "--bind-to", "none", *quiet, "-n", str(NODES * ranks)]
    words.append(str(python / "python"))
    script = ["train.py", "--epochs", "6", "--world-size", str(NODES * ranks)]
    environ = {**_environ(python, ranks), "AZ_BATCHAI_MPI_MASTER_NODE": "127.0.0.1", "MASTER_PORT": _port()}
    _run([*words, *script], place, environ)


def _environ(python: Path, ranks: int) -> dict[str, str]:
    """What the sandbox gives a rank too, as far as it costs time: threads, interfaces, unbuffered output."""
    return {
        "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
        "HOME": os.environ.get("HOME", "/"),
        "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // (NODES * ranks))),
        "GLOO_SOCKET_IFNAME": "lo",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONUNBUFFERED": "1",
    }


@contextmanager
def _sandbox() -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        environ = {**os.environ, "AMLSTACK_HOME": home}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else every start compiles what nobody else has to
        amlstack = [sys.executable, "-m", "amlstack.cli.main", "sandbox"]
        _run([*amlstack, "up"], PROJECT, environ)
        stack.callback(_run, [*amlstack, "down"], PROJECT, environ)
        yield environ


def _run(words: list[str], place: Path, environ: Mapping[str, str]) -> None:
    done = subprocess.run(
        words, cwd=place, env=dict(environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    _check([done.returncode], " ".join(words))


def _check(codes: list[int], what: str) -> None:
    if any(codes):
        message = f"{what} ended with {codes}; its figure would say nothing"
        raise RuntimeError(message)


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])
