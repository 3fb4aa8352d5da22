from __future__ import annotations

import pytest

import jobs
from tests.support.runner.runner_lab import CLUSTER, CURATED, WORKSPACE, Lab

pytestmark = pytest.mark.training

TRAIN = """
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
first = int(os.environ["TORCHELASTIC_RESTART_COUNT"]) == 0
if os.environ["NODE"] == "1" and first:
    raise SystemExit("breaks once")
dist.all_reduce(total)
print(f"all {int(total)} are here", flush=True)
dist.destroy_process_group()
"""


def test_ranks_of_two_nodes_that_are_started_again_find_each_other(lab: Lab) -> None:
    job = jobs.Job(
        name="again",
        command="python train.py",
        environment="acpt-pytorch-2.8-cuda12.6",
        compute="cluster",
        nodes=2,
        launcher=jobs.TorchRun(processes_per_node=1, max_restarts=3),
    )
    plan = jobs.plan(job, jobs.Target("Standard_ND96asr_v4", "cluster", max_nodes=2))
    assert plan.findings == ()
    properties = jobs.body(plan.enriched, jobs.Refs(WORKSPACE))["properties"]
    # The node of a rank is not its number's business: c10d deals the ranks to the nodes as they come.
    command = f"export NODE=$NODE_RANK; {properties['command']}"
    code = lab.code({"train.py": TRAIN})
    body = {**properties, "command": command, "codeId": code, "environmentId": CURATED, "computeId": CLUSTER}
    done = lab.run(lab.job(**body))
    messages = "".join(lab.log("job", node) for node in range(2))
    assert done.status == "Completed", (done.error, messages)
    assert "breaks once" in messages
    assert messages.count("all 4 are here") == 2
