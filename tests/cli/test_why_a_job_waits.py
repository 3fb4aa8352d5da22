"""The reason why a job waits, from what the service says of its cluster, the jobs on it and the quota of its region."""

from __future__ import annotations

from typing import Any

from amlstack.cli.workspace.job_search import WorkspaceJob
from amlstack.cli.workspace.status import Queue, ranks_of
from amlstack.provider.arm import ArmClient, Response
from amlstack.provider.runs import Record
from tests.support.rows import for_each

CLUSTER = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w/computes/gpu"
SIZE = "Standard_ND96asr_v4"


class SmallArm(ArmClient):
    """Answers what it is given by the end of a path."""

    def __init__(self, **answers: Any) -> None:
        super().__init__("https://127.0.0.1:1")
        self._answers = answers

    def look(self, path: str, api_version: str | None = None, *, query: Any = None) -> Response:
        body = self._answers.get(path.rpartition("/")[2])
        return Response(404, {}) if body is None else Response(200, body)


def job(nodes: int = 2, status: str = "Queued", name: str = "waits", compute: str = CLUSTER) -> WorkspaceJob:
    properties = {"jobType": "Command", "computeId": compute, "resources": {"instanceCount": nodes}}
    return WorkspaceJob(CLUSTER.partition("/computes/")[0], Record(name, status, properties), None)


def cluster(most: int = 4, **more: Any) -> dict[str, Any]:
    inner = {"vmSize": SIZE, "scaleSettings": {"maxNodeCount": most}, "nodeStateCounts": {}, **more}
    return {"properties": {"computeLocation": "West Europe", "properties": inner}}


def usages(current: int, limit: int) -> dict[str, Any]:
    return {"value": [{"name": {"value": "family-x"}, "currentValue": current, "limit": limit}]}


SIZES = {"value": [{"name": SIZE, "family": "family-x", "vCPUs": 96}]}


@for_each(
    "answers, words",
    [
        ({}, "there is no compute `gpu`"),
        ({"gpu": cluster(1)}, "asks for 2 nodes, and `gpu` has at most 1: it never starts there"),
        (
            {"gpu": cluster(errors=[{"error": {"code": "Quota", "message": "no cores left"}}])},
            "`gpu` cannot grow: no cores left",
        ),
        (
            {"gpu": cluster(nodeStateCounts={"runningNodeCount": 3})},
            "waits for 2 nodes: 3 of at most 4 of `gpu` run other jobs (`busy`)",
        ),
        (
            {"gpu": cluster(), "usages": usages(192, 200), "vmSizes": SIZES},
            (
                "quota: 192 of 200 vCPUs of family-x in westeurope are in use, and it asks for 192 more "
                f"(2 nodes of {SIZE})"
            ),
        ),
        (
            {"gpu": cluster(nodeStateCounts={"preparingNodeCount": 1}), "usages": usages(0, 400), "vmSizes": SIZES},
            "1 node of `gpu` is being prepared, it asks for 2",
        ),
        ({"gpu": cluster()}, "waits for 2 nodes: `gpu` has 0 of at most 4 now, 0 busy"),
    ],
)
def test_a_job_that_waits_is_explained_with_numbers(answers: dict[str, Any], words: str) -> None:
    arm: Any = SmallArm(**answers)
    found = Queue(arm, [job(3, "Running", "busy"), job(1, "Completed", "past")]).why(job())
    assert words in found


def test_a_job_that_does_not_wait_has_no_reason() -> None:
    arm: Any = SmallArm()
    assert Queue(arm).why(job(status="Running")) == ""
    assert "serverless" in Queue(arm).why(job(compute=""))


@for_each(
    "distribution, command, ranks",
    [
        ({"distributionType": "PyTorch", "processCountPerInstance": 8}, "python train.py", 16),
        ({"distributionType": "Mpi"}, "python -u train.py", 2),
        ({"distributionType": "TensorFlow", "workerCount": 2, "parameterServerCount": 1}, "python train.py", 3),
        ({"distributionType": "PyTorch"}, "cd a && torchrun --nnodes 2 --nproc_per_node 4 train.py --epochs 3", 8),
        ({"distributionType": "PyTorch"}, "torchrun --nnodes 2 --nproc_per_node gpu train.py", None),
        ({"distributionType": "PyTorch"}, "torchrun --nproc_per_node ${{inputs.n}} train.py", None),
        ({"distributionType": "PyTorch"}, "accelerate launch --num_machines 2 --num_processes 16 train.py", 16),
        ({"distributionType": "PyTorch"}, "python -m torch.distributed.run --nproc_per_node=8 train.py", 16),
        (None, "deepspeed --num_gpus 4 train.py", 4),
        (None, "python train.py", None),
    ],
)
def test_ranks_are_those_that_body_and_command_say(
    distribution: dict[str, Any] | None, command: str, ranks: int | None
) -> None:
    job = {"resources": {"instanceCount": 2}, "distribution": distribution, "command": command}
    assert ranks_of(job) == ranks
