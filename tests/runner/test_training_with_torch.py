from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.runner.runner_lab import CURATED, LIMIT, Lab

pytestmark = pytest.mark.training

TORCHRUN = (
    "torchrun --nnodes 2 --nproc_per_node 2 --node_rank $NODE_RANK --master_addr $MASTER_ADDR "
    "--master_port $MASTER_PORT "
)

BREAKS = """
import os, signal, sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
if dist.get_rank() == 3:
    HOW
dist.all_reduce(total)
print("went on", flush=True)
"""


@pytest.mark.parametrize(
    ("prefix", "processes", "log", "how", "says"),
    [
        (
            *(TORCHRUN, 1, "user_logs/rank_03_stderr.txt"),
            *('raise ValueError("shard 7 is empty")', "exited with code 1: ValueError: shard 7 is empty."),
        ),
        (
            *("python ", 2, "user_logs/std_log_process_03.txt"),
            *("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL."),
        ),
    ],
    ids=["torchrun", "per process"],
)
def test_the_rank_that_breaks_is_named_with_its_log(
    lab: Lab, prefix: str, processes: int, log: str, how: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # torch takes its time to end: nobody is to be cut short on a busy machine.
    monkeypatch.setenv("AMLSTACK_SANDBOX_SETTLE", str(LIMIT))
    code = lab.code({"train.py": BREAKS.replace("HOW", how)})
    job = lab.run(lab.job(f"{prefix}train.py", nodes=2, processes=processes, codeId=code, environmentId=CURATED))
    assert job.status == "Failed"
    assert job.error is not None
    assert job.error.code == "UserError"
    assert job.error.message.startswith(f"Execution failed: rank 3 of 4 (node 1, local rank 1) {says}")
    assert job.error.message.endswith(f"Its log: {log}")
    assert Path(lab.folder("job") / log).is_file()
    assert lab.survivors() == ()
