from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from amlstack.images import building, standins
from amlstack.sandbox import processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.training

# Nodes that are slow on purpose. The ranks really reduce; the clock is their own and says what that has cost with such
# a node among them, so that the noise of this machine is in no number.
SLOW = """
import json, sys
from types import SimpleNamespace
from amlnode.bandwidth import main
from amlnode.bandwidth.main import join, measure
from amlnode.bandwidth.verdict import Expectation

slow, passed = set(json.loads(sys.argv[1])), [0.0]
main.time = SimpleNamespace(perf_counter=lambda: sum(passed))
def reduce(message, group):
    dist = ring.torch.distributed
    dist.all_reduce(message, group=group)
    held_up = ring.torch.tensor([float(ring.node in slow)])
    dist.all_reduce(held_up, op=dist.ReduceOp.MAX, group=group)
    passed.append(0.2 if held_up.item() else 0.001)
ring = join(reduce)
result = measure(ring, [65536], Expectation(least=1e3, explicit=True), "auto")
if ring.info.rank == 0:
    print(json.dumps(result), flush=True)
ring.torch.distributed.destroy_process_group()
"""


# Imports torch once, which takes seconds; each rank is forked from it, with its own variables and its own output.
FORKED = """
import gc, json, os, sys, traceback
import torch.distributed

gc.freeze()
for line in sys.stdin:
    program, words, folder, ranks = json.loads(line)
    pids = []
    for number, environ in enumerate(ranks):
        pids.append(os.fork())
        if not pids[-1]:
            os.chdir(folder)
            file = os.open(f"rank{number}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, 1), os.dup2(file, 2)
            os.environ.update(environ)
            sys.argv = ["-c", *words]
            code = 0
            try:
                exec(program, {"__name__": "__main__"})
            except SystemExit as end:
                code = end.code
            except BaseException:
                traceback.print_exc()
                code = 1
            sys.stdout.flush()
            os._exit(code or 0)  # an end in order would copy all that it shares, only to free it
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]), flush=True)
"""


@pytest.fixture(scope="module")
def forks() -> Iterator[subprocess.Popen[str]]:
    """The process of the sandbox's PyTorch, built on first use, from which ranks are forked."""
    python = building.build(standins.resolve("acpt-pytorch-2.8-cuda12.6")) / "bin/python"
    started = subprocess.Popen(
        [str(python), "-c", FORKED],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with started:
        try:
            yield started
        finally:
            os.killpg(started.pid, signal.SIGKILL)


def ranks(
    forks: subprocess.Popen[str], folder: Path, nodes: int, each: int, program: str, *words: str, **more: str
) -> list[tuple[int, str]]:
    """Every rank as Azure ML's per-process launch starts it: exit code and output."""
    port, count = str(processes.free_port()), nodes * each
    environs = [
        {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "WORLD_SIZE": str(count),
            "RANK": str(rank),
            "NODE_RANK": str(rank // each),
            "LOCAL_RANK": str(rank % each),
            **more,
        }
        for rank in range(count)
    ]
    assert forks.stdin is not None
    assert forks.stdout is not None
    print(json.dumps([program, words, str(folder), environs]), file=forks.stdin, flush=True)
    codes = json.loads(forks.stdout.readline())
    return [(code, (folder / f"rank{rank}.txt").read_text()) for rank, code in enumerate(codes)]


def measured(done: list[tuple[int, str]]) -> dict[str, Any]:
    assert [code for code, _ in done] == [0] * len(done), done
    found: dict[str, Any] = json.loads(done[0][1].splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("nodes", "each", "slow", "message"),
    [
        (4, 1, [2], "node 2 reaches"),
        (3, 1, [0], "node 0 reaches"),
        (2, 2, [1], "within itself"),
    ],
)
def test_the_slow_node_is_named(
    *, forks: subprocess.Popen[str], tmp_path: Path, nodes: int, each: int, slow: list[int], message: str
) -> None:
    result = measured(ranks(forks, tmp_path, nodes, each, SLOW, json.dumps(slow)))
    assert result["verdict"]["state"] == "bad"
    assert result["slow"]["slow"] == slow, result["slow"]
    assert message in result["slow"]["text"]


def test_where_all_are_equally_slow_no_node_is_named(forks: subprocess.Popen[str], tmp_path: Path) -> None:
    result = measured(ranks(forks, tmp_path, 3, 1, SLOW, "[0, 1, 2]"))
    assert result["slow"]["slow"] == []
    assert "No node is slower" in result["slow"]["text"]


def test_the_sweep_is_reported_written_and_ends_the_job_when_bad(forks: subprocess.Popen[str], tmp_path: Path) -> None:
    verb = "import sys; from amlnode.__main__ import main; sys.exit(main())"
    words = ["bandwidth", "--sizes", "64K..256K", "--find-slow", "never"]
    done = ranks(forks, tmp_path, 2, 1, verb, *words, AMLSTACK_BUSBW_EXPECTED="187")
    assert [code for code, _ in done] == [0, 0], done
    result = json.loads((tmp_path / "outputs/bandwidth.json").read_text())
    assert [row["size"] for row in result["rows"]] == [1 << 16, 1 << 17, 1 << 18]
    assert all(row["busbw"] == pytest.approx(row["algbw"]) for row in result["rows"])  # 2 ranks: × 2 (2 - 1) / 2
    assert (result["world_size"], result["nodes"], result["backend"]) == (2, 2, "gloo")
    assert result["verdict"]["state"] == "not judged"
    assert "256 KiB" in done[0][1]
    assert "bandwidth not judged" in done[0][1]
    assert "bandwidth" not in done[1][1]
    bad = ranks(forks, tmp_path, 2, 1, verb, *words, "--expect", "1e6")
    assert [code for code, _ in bad] == [1, 1]


def test_without_torch_the_image_is_named() -> None:
    done = subprocess.run(
        ["python3", "-S", "-c", "import amlnode.__main__ as m, sys; sys.exit(m.main(['bandwidth']))"],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Use a PyTorch image." in done.stderr
