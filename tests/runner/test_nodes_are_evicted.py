from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

import jobs
from amlstack.base.paths import PROJECT
from amlstack.sandbox.scheduling import EvictError, evict
from tests.support.runner.runner_lab import CLUSTER, WORKSPACE, Lab

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXAMPLE = PROJECT / "examples/checkpoint_resume"


@pytest.mark.parametrize(
    "distribution",
    [
        {"distributionType": "PyTorch", "processCountPerInstance": 2},
        {"distributionType": "Mpi", "processCountPerInstance": 2},
    ],
    ids=["PyTorch", "Mpi"],
)
def test_a_preempted_job_keeps_its_mounted_output_alone(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, distribution: dict[str, Any]
) -> None:
    monkeypatch.setenv("AMLSTACK_SANDBOX_GRACE", "0.2")
    pipe = lab.pipe()
    # Every rank's word is read before the eviction, so that all of them have written.
    command = (
        "echo own > outputs/own; echo word > ${{outputs.kept}}/kept; echo up > ${{outputs.sent}}/sent; "
        f"flock {lab.home}/lock sh -c 'echo x >> {lab.home}/count'; "
        f"[ $(wc -l < {lab.home}/count) = 4 ] && echo up > {pipe}; (setsid sleep 1000 &); sleep 1000"
    )
    outputs = {"kept": {"jobOutputType": "uri_folder"}, "sent": {"jobOutputType": "uri_folder", "mode": "Upload"}}
    job = lab.job(command, nodes=2, distribution=distribution, outputs=outputs)
    asyncio.run(lab.during(job, pipe=pipe, act=lambda: evict(lab.store, "job", 1) and None))
    row = lab.store.jobs[job]
    assert row.status == "Failed"
    assert row.error is not None
    assert row.error.code == "NodePreempted"
    assert row.error.message.startswith("Node 1 was pre-empted")
    assert list((lab.folder(job) / "outputs").iterdir()) == []
    stored = {blob.name.rsplit("/", 1)[-1] for blob in lab.store.blobs.under("account", "container", "azureml/")}
    assert stored == {"kept"}
    assert [(node.number, node.state) for node in lab.store.nodes.of(CLUSTER)] == [(0, "idle")]
    assert lab.survivors() == ()


def test_an_eviction_that_is_impossible_is_refused_with_the_running_jobs(lab: Lab) -> None:
    pipe = lab.pipe()
    job = lab.job(f"echo up > {pipe}; sleep 1000", name="train-0a1b2c", nodes=1)
    messages: list[str] = []

    def ask() -> None:
        for wanted, node in (("trains-abc", 0), ("train", 2), ("train", -1)):
            with pytest.raises(EvictError) as caught:
                evict(lab.store, wanted, node)
            messages.append(str(caught.value))
        evict(lab.store, "train", 0)

    asyncio.run(lab.during(job, pipe=pipe, act=ask))
    assert messages[0] == "No job 'trains-abc' runs. Running: train-0a1b2c. Did you mean `train-0a1b2c`?"
    assert messages[1] == "train-0a1b2c runs on 1 node(s): 0 to 0. There is no node 2."
    assert "no node -1" in messages[2]
    with pytest.raises(EvictError, match="Running: none"):
        evict(lab.store, "train", 0)


STOPS = """
# Holds the training for ever once its third checkpoint is written, and says so.
import os, signal

real, written = os.replace, []

def replace(source, target, **more):
    real(source, target, **more)
    written.append(target)
    if len(written) == 3:
        with open({pipe!r}, "w") as pipe:
            pipe.write("three")
        signal.pause()

os.replace = replace
"""

TWICE = """
# The training as it is started, and then once more from the beginning: the same ranks, which have imported torch.
import functools, os, runpy, sys
import torch.distributed as dist

shared = sys.argv[-1]
runpy.run_path("train.py", run_name="__main__")
os.makedirs("outputs", exist_ok=True)
os.chdir("outputs")
sys.argv[-1] = f"{shared}/whole"
os.makedirs(sys.argv[-1], exist_ok=True)
here = {"init_method": f"file://{shared}/store", "rank": int(os.environ["RANK"])}
dist.init_process_group = functools.partial(dist.init_process_group, world_size=2, **here)
runpy.run_path("../train.py", run_name="__main__")
"""


@pytest.mark.training
def test_an_evicted_training_resumes_to_the_same_loss(lab: Lab) -> None:
    files = {"train.py": (EXAMPLE / "train.py").read_text()}
    pipe = lab.pipe()
    held = started(lab, "held", {**files, "sitecustomize.py": STOPS.format(pipe=str(pipe))}, {"PYTHONPATH": "."})
    asyncio.run(lab.during(held, pipe=pipe, act=lambda: evict(lab.store, "held", 1) and None))
    error = lab.store.jobs[held].error
    assert error is not None
    assert error.code == "NodePreempted"
    assert not (lab.folder("held") / "outputs/metrics.json").exists()

    again = started(lab, "again", {**files, "twice.py": TWICE}, command=lambda own: own.replace("train.py", "twice.py"))
    done = lab.run(again)
    assert done.status == "Completed", done.error
    assert [f"{count} of 8 epochs are done already" in lab.log("again") for count in (3, 0)] == [True, True]
    resumed, whole = (metrics(lab.folder("again") / place) for place in ("outputs", "outputs/outputs"))
    assert resumed["losses"] == pytest.approx(whole["losses"], rel=1e-6)


def started(
    lab: Lab,
    name: str,
    files: dict[str, str],
    variables: dict[str, str] | None = None,
    command: Callable[[str], str] = str,
) -> str:
    """Submits the example under a name; all of them have their checkpoints in one folder."""
    loaded = jobs.load(EXAMPLE / "job.py")
    target = jobs.Target("Standard_ND96asr_v4", "a100", max_nodes=2)
    plan = jobs.plan(loaded.jobs[0], target, source=loaded.source)
    assert plan.findings == ()
    body = jobs.body(plan.enriched, jobs.Refs(WORKSPACE, lab.code(files)))["properties"]
    more = {"environmentVariables": {**body["environmentVariables"], **(variables or {})}}
    return lab.job(**{**body, **more, "command": command(body["command"]), "computeId": CLUSTER, "name": name})


def metrics(folder: Path) -> Any:
    return json.loads((folder / "metrics.json").read_text())
