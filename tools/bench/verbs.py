"""Verbs of the command line, by the clock, each beside the same done by hand."""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from measure import PROJECT, Row, environ, run, taken

from amlstack.images import building, standins

Taken = tuple[float, float]

EXAMPLES = PROJECT / "examples"
NODES = 2
AS_WRITTEN = "RANKS_PER_NODE = 2"
OURS = ["make", "--no-print-directory", "up", "YES=1"]
BY_HAND = ["pulumi", "up", "--yes", "--non-interactive", "--stack", "sandbox"]
AMLSTACK = [sys.executable, "-m", "amlstack.cli.main"]


def rehearsal(*, quick: bool) -> Iterator[Row]:
    """Wall-clock seconds of `amlstack rehearse` of two nodes with four ranks each, and of the same script by hand.

    By hand has the same environment. The two are run in pairs, in turns of who goes first, so that what else the
    machine does meets both. A ratio is the median of the pairs' ratios, its spread is in brackets. The sandbox is up
    and the environment built, as in the second rehearsal of a day; process start, upload, queue and collecting outputs
    count. With `--quick` it is one pair of torchrun with two ranks on each node.
    """
    python = building.build(standins.resolve("acpt-pytorch-2.8-cuda12.6")) / "bin"
    cases = (("torchrun", "ddp_torchrun", _torchrun), ("mpirun", "mpi_per_process", _mpirun))
    ranks = 2 if quick else 4
    with ExitStack() as held:
        env = environ(AMLSTACK_HOME=held.enter_context(tempfile.TemporaryDirectory()))
        run([*AMLSTACK, "sandbox", "up"], env)
        held.callback(run, [*AMLSTACK, "sandbox", "down"], env)
        if not quick:
            _rehearse("ddp_torchrun", ranks, env)  # once for the caches of both examples; by hand has none of its own
        for name, example, start in cases[:1] if quick else cases:

            def ours(example: str = example) -> Taken:
                return _rehearse(example, ranks, env)

            def by_hand(example: str = example, start: Callable[[Path, int, Path], None] = start) -> Taken:
                with tempfile.TemporaryDirectory() as folder:
                    shutil.copytree(EXAMPLES / example, folder, dirs_exist_ok=True)
                    shutil.copytree(PROJECT / "amlnode", Path(folder, "amlnode"))  # travels beside what imports it
                    return taken(lambda: start(python, ranks, Path(folder)))

            pairs = _pairs(ours, by_hand, range(1 if quick else 2))
            yield _compared(f"rehearsal of `{example}`", f"bare {name}", pairs, 1.15)


def second_up(*, quick: bool) -> Iterator[Row]:
    """Wall-clock seconds of a `make up` that has nothing to do, and of `pulumi up --yes` of the same stack by hand.

    The stack is the one of `make up`, on a sandbox of its own, and its job has ended. By hand means the variables that
    `amlstack sandbox env` prints and no policy pack; `make up` judges with the pack. Each has run once before; with
    `--quick` by hand alone. The two then run in turns of who goes first; the ratio is the median of the pairs' ratios.
    Both keep bytecode. CPU seconds are those of a command and all that it starts.
    """
    with _stack(trained=not quick) as (env, plain):
        # By words of the output, not by the status: that of `make up` is also the run's, which may have been cancelled.
        pairs = _pairs(
            lambda: taken(lambda: run(OURS, env, sign="nothing to change"), own=False),
            lambda: taken(lambda: run(BY_HAND, plain, sign="unchanged"), own=False),
            # With `quick` ours has not run yet, and goes second, when by hand has left bytecode and caches behind.
            range(1, 2) if quick else range(3),
        )
    what, anchor = "second `make up`, nothing to do", "`pulumi up --yes` by hand"
    yield _compared(what, anchor, pairs, 1.0, longest=8)
    ours, theirs = (statistics.median(cpu for _, cpu in column) for column in zip(*pairs, strict=True))
    yield Row(f"{what}: CPU", ours, "s", anchor, theirs)


def _pairs(ours: Callable[[], Taken], theirs: Callable[[], Taken], turns: range) -> list[tuple[Taken, Taken]]:
    """Both, once a turn; in the odd turns ours goes second."""
    pairs = []
    for turn in turns:
        if turn % 2:
            second = theirs()
            pairs.append((ours(), second))
        else:
            pairs.append((ours(), theirs()))
        print(f"{pairs[-1][0][0]:.1f} s against {pairs[-1][1][0]:.1f} s", file=sys.stderr, flush=True)
    return pairs


def _compared(
    what: str, anchor: str, pairs: list[tuple[Taken, Taken]], most: float, longest: float | None = None
) -> Row:
    """The row of some pairs by the clock, which aims at a ratio, and at so many seconds if they are given."""
    ratios = sorted(ours[0] / theirs[0] for ours, theirs in pairs)
    middle = statistics.median(ratios)
    ours, theirs = (statistics.median(clock for clock, _ in column) for column in zip(*pairs, strict=True))
    goal = f"at most {most} times as long, now {middle:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}, {len(pairs)} pairs)"
    if longest is None:
        return Row(what, ours, "s", anchor, theirs, goal, middle <= most)
    return Row(
        what,
        ours,
        "s",
        anchor,
        theirs,
        f"{goal}, and at most {longest:.0f} s when quiet",
        middle <= most and ours <= longest,
    )


def _rehearse(example: str, ranks: int, env: Mapping[str, str]) -> Taken:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(EXAMPLES / example, folder, dirs_exist_ok=True)
        file = Path(folder, "job.py")
        text = file.read_text("utf-8")
        if AS_WRITTEN not in text:
            raise RuntimeError(f"{EXAMPLES / example / 'job.py'} does not have {AS_WRITTEN!r} any more")
        file.write_text(text.replace(AS_WRITTEN, f"RANKS_PER_NODE = {ranks}"), "utf-8")
        return taken(lambda: run([*AMLSTACK, "rehearse", "-q", str(file)], env))


def _torchrun(python: Path, ranks: int, folder: Path) -> None:
    words = [str(python / "torchrun"), "--nnodes", str(NODES), "--nproc_per_node", str(ranks)]
    words += ["--master_addr", "127.0.0.1", "--master_port", _port()]
    script = ["train.py", "--epochs", "8", "--world-size", str(NODES * ranks)]
    quiet = subprocess.DEVNULL
    env = _environ(python, ranks)
    started = [
        subprocess.Popen([*words, "--node_rank", str(node), *script], cwd=folder, env=env, stdout=quiet, stderr=quiet)
        for node in range(NODES)
    ]
    if any(codes := [process.wait() for process in started]):
        raise RuntimeError(f"torchrun ended with {codes}; its figure would say nothing")


def _mpirun(python: Path, ranks: int, folder: Path) -> None:
    root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    quiet = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1"]
    words = ["mpirun", *root, "--oversubscribe", "--bind-to", "none", *quiet, "-n", str(NODES * ranks)]
    script = [str(python / "python"), "train.py", "--epochs", "6", "--world-size", str(NODES * ranks)]
    env = {**_environ(python, ranks), "AZ_BATCHAI_MPI_MASTER_NODE": "127.0.0.1", "MASTER_PORT": _port()}
    run([*words, *script], env, folder)


def _environ(python: Path, ranks: int) -> dict[str, str]:
    """The variables of a rank in the sandbox, as far as they cost time: threads, interfaces, unbuffered output."""
    return {
        "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
        "HOME": os.environ.get("HOME", "/"),
        "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // (NODES * ranks))),
        "GLOO_SOCKET_IFNAME": "lo",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONUNBUFFERED": "1",
    }


def _port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@contextmanager
def _stack(*, trained: bool) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """The stack of `make up` on a home of its own; the environments of `make up`, and of plain Pulumi.

    Args:
        trained: Whether its job is trained to the end, as by a first `make up`; else it is cancelled, which is quicker
            and leaves the same to be looked at.
    """
    with ExitStack() as held:
        env = environ(AMLSTACK_HOME=held.enter_context(tempfile.TemporaryDirectory()))
        held.callback(run, [*AMLSTACK, "down", "--yes"], env)
        words = ["bash", "-c", 'eval "$("$0" -m amlstack.cli.main sandbox env)" && env -0', sys.executable]
        plain = env | dict(word.split("=", 1) for word in run(words, env).split("\0") if "=" in word)
        if trained:
            run(OURS, env)
        else:
            run([*BY_HAND, "--skip-preview"], plain)
            run([*AMLSTACK, "cancel", "ddp-torchrun"], env)
        yield env, plain
