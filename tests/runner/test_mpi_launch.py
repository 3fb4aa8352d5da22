from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.runner.mpi import mpirun

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason=f"Open MPI is missing: apt-get install {mpirun.PACKAGES}"
)

NAMES = (
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    *("AZ_BATCH_MASTER_NODE", "AZ_BATCHAI_MPI_MASTER_NODE", "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK"),
)
SHOW = "; ".join(f'echo "{name}=${{{name}-unset}}"' for name in NAMES) + "; pwd"


def mpi_job(lab: Lab, command: str, *, nodes: int = 2, processes: int = 2, **more: Any) -> str:
    distribution = {"distributionType": "Mpi", "processCountPerInstance": processes}
    return lab.job(command, nodes=nodes, distribution=distribution, **more)


def seen(lab: Lab, rank: int) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lab.log("job", rank).splitlines() if "=" in line)


def test_mpirun_gives_each_rank_its_node_its_numbers_and_a_log_of_its_own(lab: Lab) -> None:
    job = lab.run(mpi_job(lab, SHOW))
    assert job.status == "Completed", job.error
    logs = [seen(lab, rank) for rank in range(4)]
    for rank, log in enumerate(logs):
        assert [log[name] for name in NAMES[:4]] == [str(rank), "4", str(rank % 2), "2"]
        assert log["AZ_BATCHAI_MPI_MASTER_NODE"] == "127.0.0.1"
        assert [log[name] for name in ("MASTER_ADDR", "RANK", "LOCAL_RANK")] == ["unset"] * 3
        assert lab.log("job", rank).splitlines()[-1] == str(lab.folder("job") / f"nodes/{rank // 2}/wd")
    assert {log["AZ_BATCH_MASTER_NODE"] for log in logs} == {f"127.0.0.1:{logs[0]['MASTER_PORT']}"}
    assert [(end.node, end.rank, end.code) for end in job.exits] == [(0, 0, 0), (0, 1, 0), (1, 2, 0), (1, 3, 0)]
    assert (lab.folder("job") / "user_logs/mpi_log.txt").is_file()
    report = json.loads((lab.folder("job") / "report.json").read_text())
    assert [entry["rank"] for entry in report["ranks"]] == [0, 1, 2, 3]
    assert all(entry["seconds"] is not None for entry in report["ranks"])


def test_on_one_node_the_batch_master_is_absent(lab: Lab) -> None:
    job = lab.run(mpi_job(lab, SHOW, nodes=1))
    assert job.status == "Completed", job.error
    log = seen(lab, 1)
    assert (log["AZ_BATCH_MASTER_NODE"], log["AZ_BATCHAI_MPI_MASTER_NODE"]) == ("unset", "127.0.0.1")


def test_a_port_of_the_jobs_own_is_left_alone(lab: Lab) -> None:
    lab.run(mpi_job(lab, SHOW, processes=1, environmentVariables={"MASTER_PORT": "6105"}))
    assert seen(lab, 1)["MASTER_PORT"] == "6105"


def test_nothing_of_the_launch_itself_shows_in_a_rank(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    lab.run(mpi_job(lab, "env", processes=1))
    for rank in (0, 1):
        names = seen(lab, rank).keys()
        assert not {"MY_SECRET", mpirun.PLAN, mpirun.NODES} & names
        assert seen(lab, rank)["HOME"] == str(lab.folder("job") / f"nodes/{rank}/home")


def test_outputs_of_every_node_are_collected(lab: Lab) -> None:
    code = lab.code({"run.sh": "echo $OMPI_COMM_WORLD_RANK > outputs/$OMPI_COMM_WORLD_RANK"})
    job = lab.run(mpi_job(lab, "bash run.sh", codeId=code))
    assert job.status == "Completed", job.error
    assert sorted(path.name for path in (lab.folder("job") / "outputs").iterdir()) == ["0", "1", "2", "3"]


WAITS = """
import os, signal, sys
if os.environ["OMPI_COMM_WORLD_RANK"] == "3":
    BREAK
signal.pause()
"""


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ('raise RuntimeError("no such shard")', "exited with code 1: RuntimeError: no such shard."),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV."),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL."),
    ],
)
def test_the_rank_that_breaks_is_named_and_the_others_end(lab: Lab, how: str, says: str) -> None:
    code = lab.code({"train.py": WAITS.replace("BREAK", how)})
    job = lab.run(mpi_job(lab, "exec python train.py", codeId=code))
    assert job.status == "Failed"
    assert job.error is not None
    assert job.error.message == (
        f"Execution failed: rank 3 of 4 (node 1, local rank 1) {says} Its log: user_logs/std_log_process_03.txt"
    )
    assert all(end.code for end in job.exits)
    assert lab.survivors() == ()


@pytest.mark.parametrize(
    "stubborn", ["sleep 1000", "trap '' TERM; while :; do sleep 1000; done", "setsid sleep 1000 & wait"]
)
def test_a_cancel_leaves_neither_mpirun_nor_its_daemons_nor_a_rank(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, stubborn: str
) -> None:
    monkeypatch.setenv("AMLSTACK_SANDBOX_GRACE", "3")
    pipe = lab.pipe()
    job = mpi_job(lab, f"echo up > {pipe}; {stubborn}")
    asyncio.run(lab.during(job, pipe=pipe, act=lambda: lab.store.jobs.request_cancel(job) and None))
    assert lab.store.jobs[job].status == "Canceled"
    assert lab.survivors() == ()


def test_a_killed_runner_leaves_nothing_of_mpirun(lab: Lab) -> None:
    pipe = lab.pipe()
    job = mpi_job(lab, f"(setsid sleep 1000 &); echo up > {pipe}; sleep 1000")

    def kill() -> None:
        runner = lab.store.jobs[job].runner_pid
        assert runner is not None
        os.kill(runner, signal.SIGKILL)

    asyncio.run(lab.during(job, pipe=pipe, act=kill))
    error = lab.store.jobs[job].error
    assert error is not None
    assert error.code == "RunnerLost"
    assert lab.survivors() == ()


def test_a_job_past_its_time_limit_is_cancelled(lab: Lab) -> None:
    job = lab.run(mpi_job(lab, "sleep 1000", limits={"timeout": "PT0.5S"}))
    assert job.status == "Canceled"
    assert lab.survivors() == ()


def test_a_lost_node_takes_its_ranks_along_and_mpirun_ends(lab: Lab) -> None:
    pipe = lab.pipe()
    command = f'[ "$OMPI_COMM_WORLD_RANK" = 3 ] && echo $AMLSTACK_SANDBOX_NODE > {pipe}; sleep 1000'
    job = mpi_job(lab, command)

    def lose() -> None:
        from amlstack.sandbox.server import processes

        for pid in processes.marked(lab.home):
            # A process that was seen may be gone before it is looked at: ranks start short-lived shells.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if str(lab.folder(job) / "nodes/1/plan.json") in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                    os.kill(pid, signal.SIGKILL)

    asyncio.run(lab.during(job, pipe=pipe, act=lose))
    error = lab.store.jobs[job].error
    assert error is not None
    assert error.message.startswith("Node 1 was lost")
    assert lab.survivors() == ()


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        (None, f"apt-get install {mpirun.PACKAGES}"),
        ("mpirun (Open MPI) 5.0.7", "5.0.7"),
        ("mpirun (Open MPI) 5.0.7", "Put an Open MPI 4 first on PATH"),
        ("HYDRA build", "HYDRA"),
    ],
)
def test_a_missing_or_another_mpirun_is_named(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str | None, says: str
) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    if printed is not None:
        (place / "mpirun").write_text(f"#!/bin/sh\necho '{printed}'\n")
        (place / "mpirun").chmod(0o755)
    monkeypatch.setenv("PATH", str(place))
    job = lab.run(mpi_job(lab, "true"))
    assert job.status == "Failed"
    assert job.error is not None
    assert job.error.code == "OpenMpiMissing"
    assert says in job.error.message
