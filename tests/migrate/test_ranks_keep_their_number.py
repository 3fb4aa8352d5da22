"""Each distribution of SDK v1 has the same ranks on the same nodes in v2, or is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.migrate.programs import hands, migrated, the_job
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

MPI4 = {"type": "mpi", "process_count_per_instance": 4}
ONE = {"type": "pytorch", "process_count_per_instance": 1}
SUBMIT = "ScriptRunConfig('src', 'train.py', compute_target='gpu', environment=env, distributed_job_config={})"
ESTIMATE = "{}('src', entry_script='a.py', compute_target='c', {})"
SERVERS = "node_count=2, worker_count=2, parameter_server_count=1, distributed_backend='ps'"
BY_BACKEND = "node_count=2, process_count_per_node=4, distributed_backend='mpi'"
OPEN_MPI = "c = RunConfiguration(communicator='OpenMpi')\nc.mpi.process_count_per_node = 4\nc.node_count = 2\n"
INTEL_MPI = "c = RunConfiguration()\nc.communicator = 'IntelMpi'\nc.mpi = MpiConfiguration(4)\nc.node_count = 2\n"
RUN = "ScriptRunConfig('src', 'train.py', run_config=c)"


@for_each(
    "configuration, distribution, nodes",
    [
        ("MpiConfiguration(process_count_per_node=4, node_count=2)", MPI4, 2),
        ("MpiConfiguration(4, 2)", MPI4, 2),
        ("MpiConfiguration()", {"type": "mpi", "process_count_per_instance": 1}, 1),
        ("PyTorchConfiguration(process_count=8, node_count=2)", {**ONE, "process_count_per_instance": 4}, 2),
        ("PyTorchConfiguration('Nccl', 8)", {**ONE, "process_count_per_instance": 8}, 1),
        ("PyTorchConfiguration(node_count=2)", ONE, 2),
        ("PyTorchConfiguration()", ONE, 1),
        (
            "TensorflowConfiguration(worker_count=2, parameter_server_count=0)",
            {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 0},
            2,
        ),
        ("TensorflowConfiguration(3)", {"type": "tensorflow", "worker_count": 3, "parameter_server_count": 1}, 3),
    ],
)
def test_a_configuration_means_the_same(tmp_path: Path, configuration: str, distribution: Any, nodes: int) -> None:
    found = migrated(tmp_path, SUBMIT.format(configuration))
    job = the_job(found)
    assert (job["distribution"], job["resources"]["instance_count"]) == (distribution, nodes)
    assert hands(found) == []


@for_each("program, distribution, nodes", [
        (ESTIMATE.format("Estimator", "node_count=2, distributed_training=MpiConfiguration(4)"), MPI4, 2),
        (ESTIMATE.format("Estimator", BY_BACKEND), MPI4, 2),
        (ESTIMATE.format("PyTorch", "node_count=2, distributed_training=Mpi(4)"), MPI4, 2),
        (ESTIMATE.format("PyTorch", "node_count=3, distributed_backend='nccl'"), ONE, 3),
        (
            ESTIMATE.format("TensorFlow", SERVERS),
            {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 1},
            2,
        ),
        (OPEN_MPI + RUN, MPI4, 2),
        (INTEL_MPI + RUN, MPI4, 2),
        ("c = MpiConfiguration()\nc.process_count_per_node = 4\nc.node_count = 2\n" + SUBMIT.format("c"), MPI4, 2),
        ("s = " + SUBMIT.format("MpiConfiguration(4)") + "\ns.run_config.node_count = 2", MPI4, 2),
        ("s = ScriptRunConfig('src', 'a.py')\ns.run_config.node_count = 1", None, None),
])  # fmt: skip
def test_older_ways_mean_the_same(tmp_path: Path, program: str, distribution: Any, nodes: int | None) -> None:
    job = the_job(migrated(tmp_path, program))
    assert job.get("distribution") == distribution
    assert job.get("resources", {}).get("instance_count") == nodes


@for_each("program, named", [
        (SUBMIT.format("PyTorchConfiguration(process_count=7, node_count=2)"), "process_count"),
        (SUBMIT.format("PyTorchConfiguration('Gloo', node_count=2)"), "communication_backend"),
        (SUBMIT.format("unknown"), "unknown"),
        (SUBMIT.format("MpiConfiguration(node_count=argv[1])"), "argv[1]"),
        (SUBMIT.format("None if x else MpiConfiguration()"), "None_if_x_else_MpiConfiguration()"),
        ("PyTorch('src', entry_script='a.py', node_count=2)", "node_count"),
        (SUBMIT.format("MpiConfiguration(**given)"), "node_count"),
        (SUBMIT.format("MpiConfiguration(*given)"), "node_count"),
        ("def f(nodes=2):\n    return MpiConfiguration(node_count=nodes)\n" + SUBMIT.format("f(**given)"), "nodes"),
        ("def f(nodes=2):\n    " + SUBMIT.format("MpiConfiguration(node_count=nodes)"), "nodes"),
        ("MpiConfiguration(node_count=2)\n" + SUBMIT.format("None"), "MpiConfiguration"),
        ("from azureml.pipeline.steps import *\nParallelRunConfig(node_count=2)", "ParallelRunConfig"),
        ("ScriptRunConfig('src', 'a.py', run_config=given)", "given"),
        (ESTIMATE.format("PyTorch", "process_count_per_node=4, distributed_training=Mpi()"), "process_count_per_node"),
])  # fmt: skip
def test_what_has_no_like_or_is_not_known_is_named(tmp_path: Path, program: str, named: str) -> None:
    assert named in hands(migrated(tmp_path, program))
