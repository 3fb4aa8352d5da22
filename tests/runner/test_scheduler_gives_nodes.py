from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys

import pytest

from amlstack.sandbox import processes, scheduler
from amlstack.sandbox.scheduling import scale_of
from tests.support.runner.runner_lab import CLUSTER, Lab


def test_jobs_wait_in_order_for_nodes_and_none_overtakes(lab: Lab) -> None:
    pipe = lab.pipe()
    first = lab.job(f"[ $RANK = 1 ] || echo up > {pipe}", name="first", nodes=2)
    second = lab.job("true", name="second", nodes=2)
    third = lab.job("true", name="third", nodes=1)

    async def go() -> None:
        def queued() -> bool:
            return lab.store.jobs[second].status == "Queued"

        await lab.drive(queued)
        assert lab.store.jobs[third].status == "Queued"
        assert {node.job for node in lab.store.nodes.of(CLUSTER)} == {"first"}
        looking = asyncio.create_task(asyncio.to_thread(pipe.read_text))  # the first runs until then
        await lab.drive(lambda: lab.ended(first, second, third))
        await looking

    asyncio.run(go())
    rows = [lab.store.jobs[name] for name in (first, second, third)]
    starts = [row.started for row in rows]
    assert starts == sorted(starts, key=lambda at: at or 0)
    assert (rows[1].started or 0) >= (rows[0].ended or 0)
    assert (rows[2].started or 0) >= (rows[1].ended or 0)
    assert "Provisioning" not in lab.steps(second)


def test_held_jobs_stay_queued_and_start_once_they_are_released(lab: Lab) -> None:
    lab.store.hold_jobs(hold=True)
    job = lab.job("true", name="job")
    cancelled = lab.job("true", name="cancelled")
    parent = lab.job("", name="parent", jobType="Pipeline", computeId=None)

    async def go() -> None:
        await lab.drive(lambda: lab.store.jobs[job].status == "Queued")
        lab.store.jobs.request_cancel(cancelled)
        lab.store.jobs.request_cancel(parent)
        await lab.drive(lambda: lab.ended(cancelled, parent))

    asyncio.run(go())
    assert lab.store.jobs[job].status == "Queued"
    assert lab.steps(parent) == ["NotStarted", "CancelRequested", "Canceled"]
    assert not lab.store.nodes.all()
    lab.store.hold_jobs(hold=False)
    assert lab.run(job).status == "Completed"


def test_a_small_job_gets_the_node_that_is_free(lab: Lab) -> None:
    pipe = lab.pipe()
    one = lab.job(f"cat {pipe}", name="one")
    two = lab.job(f"echo go > {pipe}", name="two")
    lab.run(one, two)
    assert [lab.store.jobs[name].nodes for name in (one, two)] == [(0,), (1,)]
    assert lab.log(one) == "go\n"


def test_more_nodes_than_the_cluster_has_is_refused_in_words(lab: Lab) -> None:
    job = lab.run(lab.job("true", nodes=3))
    assert job.error is not None
    assert job.error.code == "JobNodeCountExceedsCoreQuota"
    assert "3 nodes" in job.error.message
    assert "is 2" in job.error.message


def test_idle_nodes_leave_down_to_the_minimum(lab: Lab) -> None:
    lab.cluster(low=1, high=2, idle="PT0.2S")
    lab.run(lab.job("true", nodes=2))
    asyncio.run(lab.drive(lambda: len(lab.store.nodes.of(CLUSTER)) == 1))
    (kept,) = lab.store.nodes.of(CLUSTER)
    assert (kept.number, kept.state) == (0, "idle")


def test_the_minimum_is_there_before_any_job(lab: Lab) -> None:
    lab.cluster(low=2, high=2)
    asyncio.run(lab.drive(lambda: len(lab.store.nodes.of(CLUSTER)) == 2))
    job = lab.run(lab.job("true", nodes=2))
    assert "Provisioning" not in lab.steps("job")
    assert job.nodes == (0, 1)


def test_a_serverless_job_has_nodes_of_its_own(lab: Lab) -> None:
    resources = {"instanceCount": 3, "instanceType": "Standard_D2s_v3"}
    job = lab.run(lab.job("echo $NODE_RANK", computeId=None, resources=resources))
    assert job.status == "Completed", job.error
    assert [lab.log("job", rank) for rank in range(3)] == ["0\n", "1\n", "2\n"]
    assert lab.store.nodes.all() == ()


def test_a_restarted_server_takes_over_what_runs(lab: Lab) -> None:
    pipe = lab.pipe()
    job = lab.job(f"cat {pipe}", nodes=1)
    # Another process is the first server; its end must not touch the runner.
    subprocess.run([sys.executable, "-c", SERVER, str(lab.home), job], check=True)
    row = lab.store.jobs[job]
    assert row.status == "Running"
    assert row.runner_pid is not None

    async def go() -> None:
        writing = asyncio.create_task(asyncio.to_thread(pipe.write_text, "over\n"))
        await lab.drive(lambda: lab.ended(job))
        await writing

    asyncio.run(go())
    assert lab.store.jobs[job].status == "Completed"
    assert lab.log(job) == "over\n"


def test_a_runner_that_died_while_no_server_was_there_fails_its_job(lab: Lab) -> None:
    job = lab.job("sleep 1000")
    subprocess.run([sys.executable, "-c", SERVER, str(lab.home), job], check=True)
    runner = lab.store.jobs[job].runner_pid
    assert runner is not None
    handle = os.pidfd_open(runner)
    os.kill(runner, signal.SIGKILL)
    asyncio.run(_readable(handle))
    os.close(handle)
    row = lab.run(job)
    assert (row.status, row.error and row.error.code) == ("Failed", "RunnerLost")
    assert lab.survivors() == ()


def test_a_second_runner_of_a_job_gives_way(lab: Lab) -> None:
    pipe = lab.pipe()
    job = lab.job(f"cat {pipe}")
    subprocess.run([sys.executable, "-c", SERVER, str(lab.home), job], check=True)
    second = subprocess.run([sys.executable, "-m", "amlstack.sandbox.runner", str(lab.home), job], check=False)
    assert second.returncode == 3
    assert lab.store.jobs[job].status == "Running"
    lab.store.jobs.request_cancel(job)
    assert lab.run(job).status == "Canceled"


def test_the_scheduler_of_the_server_runs_until_it_is_cancelled(lab: Lab) -> None:
    job = lab.job("true")
    over = asyncio.Event()

    class Wake(asyncio.Event):
        """Cleared by the scheduler at each turn: the one after the runner's end is the last."""

        def clear(self) -> None:
            super().clear()
            if not lab.store.jobs[job].active and not processes.marked(lab.home):
                over.set()

    async def go() -> None:
        task = asyncio.create_task(scheduler.run(lab.store, lab.home, Wake()))
        await asyncio.wait((task, asyncio.create_task(over.wait())), return_when=asyncio.FIRST_COMPLETED)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert lab.store.jobs[job].status == "Completed"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"minNodeCount": 1, "maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": "PT15M"}, (1, 4, 900.0)),
        ({"maxNodeCount": 4}, (0, 4, 120.0)),
        ({"maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": None}, (0, 4, 120.0)),
    ],
)
def test_scale_settings(lab: Lab, settings: dict[str, object], expected: tuple[int, int, float]) -> None:
    body = {"properties": {"properties": {"scaleSettings": settings}}}
    cluster = lab.store.resources.put(CLUSTER, "x/y", "/p", body)
    scale = scale_of(cluster)
    assert (scale.smallest, scale.largest, scale.idle) == expected


async def _readable(handle: int) -> None:
    ready = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, ready.set)
    await ready.wait()
    asyncio.get_running_loop().remove_reader(handle)


SERVER = """
import asyncio, sys
from pathlib import Path
from amlstack.sandbox.scheduler import Scheduler
from amlstack.sandbox.store.store import Store

async def main(home, job):
    store, wake = Store(home), asyncio.Event()
    made = Scheduler(store, home, wake)
    made.step(0)
    log = home / "sandbox" / "jobs" / job / "runner.log"
    while store.jobs[job].status != "Running":
        assert store.jobs[job].active, store.jobs[job].error
        await asyncio.sleep(0.01)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""
