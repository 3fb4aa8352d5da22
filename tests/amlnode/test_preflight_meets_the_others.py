from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from amlnode.preflight.meeting import Reports, meet
from amlnode.rank import LOOPBACK, NodeError, RankInfo
from amlstack.base.paths import PROJECT
from amlstack.sandbox import processes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def port() -> int:
    """Not of those that the kernel gives out: who knocks there too early would meet itself, or a visitor."""
    return processes.free_port()


def place(rank: int, world: int) -> RankInfo:
    return RankInfo(rank, world, 0, 1, rank, world, LOOPBACK, 1, "pytorch")


def clock(ahead: float) -> Callable[[], float]:
    return lambda: time.time() + ahead


def together(ranks: dict[int, float], world: int, port: int, wait: float = 60) -> dict[int, Any]:
    """The ranks, each with a clock so far ahead, meet; what each learns, or its error."""

    def one(rank: int) -> Any:
        try:
            report = {"node": rank}
            return meet(place(rank, world), report, job="j", port=port, wait=wait, clock=clock(ranks[rank]))
        except NodeError as error:
            return error

    with ThreadPoolExecutor(len(ranks)) as pool:
        return dict(zip(ranks, pool.map(one, ranks), strict=True))


def test_clocks_are_compared_and_all_learn_the_same(port: int) -> None:
    learnt = together({0: 0.0, 1: 7.25, 2: -3.5}, 3, port)
    assert learnt[0] == learnt[1] == learnt[2]
    assert learnt[0]["missing"] == []
    for report, ahead in zip(learnt[0]["reports"], (0.0, 7.25, -3.5), strict=True):
        # How sure it is bounds how wrong it is, on a machine however busy.
        assert abs(report["skew"] - ahead) <= report["skew_error"] + 1e-3


def test_who_never_comes_is_named_to_all(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def until_two_came(table: Reports, until: float) -> bool:
        with table.changed:
            return not table.changed.wait_for(lambda: len(table.present) == 2)

    monkeypatch.setattr(Reports, "full", until_two_came)  # and then the first rank's time is over
    learnt = together({0: 0.0, 2: 0.0}, 3, port)
    assert learnt[0]["missing"] == [1]
    assert learnt[2]["missing"] == [1]


def test_first_rank_waits_no_longer_than_given() -> None:
    assert not Reports("j", 2).full(time.monotonic())


def test_other_ranks_fail_when_the_first_never_comes(port: int) -> None:
    learnt = together({1: 0.0}, 2, port, wait=0.5)
    assert "could not reach rank 0" in str(learnt[1])
    assert "See rank 0's log" in str(learnt[1])


def test_first_rank_fails_when_its_port_is_taken() -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        learnt = together({0: 0.0}, 2, other.getsockname()[1], wait=0.5)
    assert "Name a free port with --port" in str(learnt[0])


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b'{"job": "other", "rank": 1, "world": 2}\n']
)
def test_meeting_ignores_other_connections_at_its_port(port: int, sent: bytes) -> None:
    met: list[Any] = []
    host = threading.Thread(target=lambda: met.append(meet(place(0, 2), {}, job="j", port=port, wait=60)))
    host.start()
    while True:
        try:
            visitor = socket.create_connection((LOOPBACK, port))
            break
        except ConnectionRefusedError:
            os.sched_yield()
    with visitor:
        visitor.sendall(sent)
        meet(place(1, 2), {}, job="j", port=port, wait=60)
        host.join()
    assert met[0]["missing"] == []


def run(folder: Path, nproc: int, *words: str, plan: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "AMLSTACK_PLAN": json.dumps(plan)}
    return subprocess.run(
        [sys.executable, "-m", "amlnode", "launch", "--nproc", str(nproc), *words],
        cwd=folder,
        env={**environ, "MASTER_PORT": str(processes.free_port())},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("plan", "goes"), [({"gpus": 0}, True), ({"shm": "900t"}, False)])
def test_a_bad_node_stops_every_rank_before_the_training(tmp_path: Path, plan: dict[str, Any], goes: bool) -> None:
    step = f"{sys.executable} -m amlnode preflight && echo trained"
    done = run(tmp_path, 3, "--no_python", "bash", "-c", step, plan=plan)
    assert (done.returncode == 0) is goes
    assert done.stdout.count("trained") == (3 if goes else 0)
    assert "preflight: GO" in done.stdout if goes else "preflight: STOP: the job ends here" in done.stdout
    assert json.loads((tmp_path / "outputs/preflight.json").read_text())["go"] is goes
