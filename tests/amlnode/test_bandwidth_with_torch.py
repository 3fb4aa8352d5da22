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


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter of the sandbox's PyTorch, built on first use."""
    return building.build(standins.resolve("acpt-pytorch-2.8-cuda12.6")) / "bin/python"


def ranks(python: Path, folder: Path, nodes: int, each: int, words: list[str], **more: str) -> list[tuple[int, str]]:
    """Every rank as Azure ML's per-process launch starts it: exit code and output."""
    port = str(processes.free_port())
    started = []
    for rank in range(nodes * each):
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT),
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "WORLD_SIZE": str(nodes * each),
            "RANK": str(rank),
            "NODE_RANK": str(rank // each),
            "LOCAL_RANK": str(rank % each),
            **more,
        }
        started.append(
            subprocess.Popen(
                [str(python), *words],
                cwd=folder,
                env=environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        )
    try:
        outputs = [process.communicate()[0] for process in started]
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return [(process.returncode, out) for process, out in zip(started, outputs, strict=True)]


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
    *, python: Path, tmp_path: Path, nodes: int, each: int, slow: list[int], message: str
) -> None:
    result = measured(ranks(python, tmp_path, nodes, each, ["-c", SLOW, json.dumps(slow)]))
    assert result["verdict"]["state"] == "bad"
    assert result["slow"]["slow"] == slow, result["slow"]
    assert message in result["slow"]["text"]


def test_where_all_are_equally_slow_no_node_is_named(python: Path, tmp_path: Path) -> None:
    result = measured(ranks(python, tmp_path, 3, 1, ["-c", SLOW, "[0, 1, 2]"]))
    assert result["slow"]["slow"] == []
    assert "No node is slower" in result["slow"]["text"]


def test_the_sweep_is_reported_written_and_ends_the_job_when_bad(python: Path, tmp_path: Path) -> None:
    words = ["-m", "amlnode", "bandwidth", "--sizes", "64K..256K", "--find-slow", "never"]
    done = ranks(python, tmp_path, 2, 1, words, AMLSTACK_BUSBW_EXPECTED="187")
    assert [code for code, _ in done] == [0, 0], done
    result = json.loads((tmp_path / "outputs/bandwidth.json").read_text())
    assert [row["size"] for row in result["rows"]] == [1 << 16, 1 << 17, 1 << 18]
    assert all(row["busbw"] == pytest.approx(row["algbw"]) for row in result["rows"])  # 2 ranks: × 2 (2 - 1) / 2
    assert (result["world_size"], result["nodes"], result["backend"]) == (2, 2, "gloo")
    assert result["verdict"]["state"] == "not judged"
    assert "256 KiB" in done[0][1]
    assert "bandwidth not judged" in done[0][1]
    assert "bandwidth" not in done[1][1]
    bad = ranks(python, tmp_path, 2, 1, [*words, "--expect", "1e6"])
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
