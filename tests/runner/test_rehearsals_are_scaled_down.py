"""Jobs whose declaration is larger than the machine: the record keeps its counts, the processes are fewer."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox import contract
from amlstack.sandbox.runner import prepare
from amlstack.sandbox.scale import RehearsalScale

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import JobRow
    from tests.support.runner.runner_lab import Lab

TWICE_TWO = RehearsalScale(2, 2)
# Stands for torch's launcher: the module name is what the scaling goes by.
SHOW = "import sys; print(*sys.argv[1:])"
LAUNCHER = {"torch/__init__.py": "", "torch/distributed/__init__.py": "", "torch/distributed/run.py": SHOW}


def run(lab: Lab, command: str, *, nodes: int = 16, processes: int = 8, **more: Any) -> JobRow:
    job = lab.job(command, nodes=nodes, processes=processes, **more)
    lab.store.scales.put(job, TWICE_TWO)
    return lab.run(job)


def test_a_pytorch_job_of_128_ranks_runs_as_four_and_keeps_its_body(lab: Lab) -> None:
    job = run(lab, 'echo "$WORLD_SIZE $RANK $NODE_RANK $LOCAL_RANK"')

    assert job.status == "Completed", job.error
    assert [lab.log(job.id, rank).split() for rank in range(4)] == [
        ["4", "0", "0", "0"],
        ["4", "1", "0", "1"],
        ["4", "2", "1", "0"],
        ["4", "3", "1", "1"],
    ]
    assert len(job.exits) == 4
    assert job.nodes == (0, 1)
    assert job.properties["resources"]["instanceCount"] == 16
    assert job.properties["distribution"]["processCountPerInstance"] == 8
    runner = (lab.folder(job.id) / "runner.log").read_text()
    assert "scaled to 2x2: 16 × 8 declared, 2 × 2 started" in runner


def test_a_job_smaller_than_the_scale_keeps_its_counts(lab: Lab) -> None:
    job = run(lab, 'echo "$WORLD_SIZE"', nodes=1, processes=1)

    assert (lab.log(job.id).strip(), len(job.exits)) == ("1", 1)


def test_counts_of_a_launcher_are_scaled_wherever_the_launcher_is_called(lab: Lab) -> None:
    words = "-m torch.distributed.run --nnodes $NODES --nproc_per_node=8 train.py --nnodes 16"
    code = lab.code({**LAUNCHER, "start.sh": f"python -u {words}\n"})
    job = run(lab, "NODES=16 bash start.sh", processes=1, codeId=code)

    assert job.status == "Completed", job.error
    for rank in range(2):
        *changes, seen = sorted(lab.log(job.id, rank).splitlines(), key=lambda line: not line.startswith("amlstack"))
        assert seen == "--nnodes 2 --nproc_per_node=2 train.py --nnodes 16"
        assert changes == [
            "amlstack: rehearsed as 2x2: python --nnodes 16 → 2",
            "amlstack: rehearsed as 2x2: python --nproc_per_node 8 → 2",
        ]


def test_counts_of_variables_and_of_a_configuration_file_are_scaled(lab: Lab) -> None:
    show = "import os, sys; print(os.environ.get('PET_NNODES'), *sys.argv[1:])"
    accelerate = {
        "accelerate/__init__.py": "",
        "accelerate/commands/__init__.py": "",
        "accelerate/commands/launch.py": show,
    }
    files = {
        **LAUNCHER,
        "torch/distributed/run.py": show,
        **accelerate,
        "a.yaml": "num_machines: 16\nnum_processes: 128\n",
    }
    command = "python -m torch.distributed.run t.py; python -m accelerate.commands.launch --config_file a.yaml t.py"
    job = run(lab, command, processes=1, codeId=lab.code(files), environmentVariables={"PET_NNODES": "16"})

    assert job.status == "Completed", job.error
    seen = [line for line in lab.log(job.id).splitlines() if not line.startswith("amlstack")]
    assert seen == ["2 t.py", "16 --num_machines 2 --num_processes 4 --config_file a.yaml t.py"]


def test_a_sweep_hands_its_scale_on_to_its_trials(lab: Lab) -> None:
    trial = {
        "command": "echo $WORLD_SIZE",
        "environmentId": lab.store.jobs[lab.job("true", name="first")].properties["environmentId"],
        "resources": {"instanceCount": 16},
        "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 8},
    }
    body = {
        "jobType": "Sweep",
        "computeId": lab.store.jobs["first"].properties["computeId"],
        "trial": trial,
        "searchSpace": {"lr": ["choice", [[1]]]},
        "samplingAlgorithm": {"samplingAlgorithmType": "Grid"},
        "objective": {"goal": "Minimize", "primaryMetric": "loss"},
        "limits": {"jobLimitsType": "Sweep", "maxTotalTrials": 1, "maxConcurrentTrials": 1},
    }
    sweep = lab.store.jobs.add(lab.store.jobs["first"].workspace, "sweep", {"properties": body}).id
    lab.store.scales.put(sweep, TWICE_TWO)

    ended = lab.run("first", sweep)

    assert ended.status == "Completed", ended.error
    (child,) = lab.store.family.children(sweep).values()
    assert lab.log(child).strip() == "4"
    assert len(lab.store.jobs[child].exits) == 4


@pytest.mark.skipif(shutil.which("mpirun") is None, reason=f"Open MPI is missing: apt-get install {prepare.PACKAGES}")
def test_mpirun_starts_as_many_ranks_as_the_scale_allows(lab: Lab) -> None:
    distribution = {"distributionType": "Mpi", "processCountPerInstance": 8}
    job = run(lab, 'echo "$OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_SIZE"', distribution=distribution)

    assert job.status == "Completed", job.error
    assert [lab.log(job.id, rank).strip() for rank in range(4)] == ["4 2"] * 4


@pytest.mark.parametrize(
    ("workers", "servers", "started"), [(128, 16, (4, 2)), (4, 1, (2, 1)), (16, 0, (2, 0)), (1, 1, (1, 1))]
)
def test_workers_of_tensorflow_are_spread_over_fewer_nodes(
    workers: int, servers: int, started: tuple[int, int]
) -> None:
    body = {
        "jobType": "Command",
        "command": "x",
        "environmentId": "e",
        "resources": {"instanceCount": 16},
        "distribution": {
            "distributionType": "TensorFlow", "workerCount": workers, "parameterServerCount": servers
        },
    }  # fmt: skip
    read = contract.read(body, TWICE_TWO)

    assert (read.nodes, read.workers, read.servers) == (2, *started)
