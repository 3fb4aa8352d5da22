from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.runner.runner_lab import CURATED, LIMIT, Lab

pytestmark = pytest.mark.training

TORCHRUN = (
    "torchrun --nnodes 2 --nproc_per_node 2 --node_rank $NODE_RANK --master_addr $MASTER_ADDR "
    "--master_port $MASTER_PORT "
)

# torchrun imports torch itself, and its ranks need not.
WAITS = """
import os, signal

if os.environ["RANK"] == "3":
    HOW
signal.pause()
"""
BREAKS = """
import os, signal, sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
if dist.get_rank() == dist.get_world_size() - 1:
    HOW
dist.all_reduce(total)
print("went on", flush=True)
"""


class Break(NamedTuple):
    """A launch, what its last rank does, who that is, and what is said of it."""

    script: str
    prefix: str
    processes: int
    how: str
    who: str
    says: str
    log: str


BREAKING = {
    "torchrun": Break(
        *(WAITS, TORCHRUN, 1, 'raise ValueError("shard 7 is empty")', "rank 3 of 4 (node 1, local rank 1)"),
        "exited with code 1: ValueError: shard 7 is empty.",
        "user_logs/rank_03_stderr.txt",
    ),
    "per process": Break(
        *(BREAKS, "python ", 1, "os.kill(os.getpid(), signal.SIGKILL)", "rank 1 of 2 (node 1, local rank 0)"),
        *("was killed by SIGKILL.", "user_logs/std_log_process_01.txt"),
    ),
}


@pytest.mark.parametrize("one", BREAKING.values(), ids=BREAKING)
def test_the_rank_that_breaks_is_named_with_its_log(lab: Lab, one: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    if one.script is BREAKS:  # torch takes its time to end: nobody is to be cut short on a busy machine
        monkeypatch.setenv("AMLSTACK_SANDBOX_SETTLE", str(LIMIT))
    code = lab.code({"train.py": one.script.replace("HOW", one.how)})
    job = lab.run(
        lab.job(f"{one.prefix}train.py", nodes=2, processes=one.processes, codeId=code, environmentId=CURATED)
    )
    assert job.status == "Failed"
    assert job.error is not None
    assert job.error.code == "UserError"
    assert job.error.message.startswith(f"Execution failed: {one.who} {one.says}")
    assert job.error.message.endswith(f"Its log: {one.log}")
    assert Path(lab.folder("job") / one.log).is_file()
    assert lab.survivors() == ()
