"""Job files as Azure's guides write them, and examples as files for `az ml job create`.

azure-ai-ml submits them, streams them and downloads what they left. One example by default, all that train with
`EXAMPLES=all` (`make guide-jobs`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from amlstack.base.paths import PROJECT
from amlstack.sandbox.runner import prepare
from tests.support.azure_ai_ml import told
from tests.support.running import running_sandbox
from tests.support.sandbox.sandbox_client import Arm, cluster

pytestmark = [pytest.mark.training, pytest.mark.timeout(3600)]

# The check of nodes before a training trains nothing.
ALL = sorted(file.parent.name for file in PROJECT.glob("examples/*/job.*") if file.parent.name != "preflight")
WANTED = ALL if os.environ.get("EXAMPLES") == "all" else os.environ.get("EXAMPLES", "checkpoint_resume").split()
NEEDS_AMLNODE = "needs `amlnode` beside it"

# Azure ML starts every rank, as in its guide for PyTorch.
PER_PROCESS = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
display_name: a line
experiment_name: guides
code: src
command: python train.py --epochs ${{inputs.epochs}} --ranks ${{inputs.ranks}} --model ${{outputs.model}}
inputs: {epochs: 40, ranks: 4}
outputs: {model: {type: uri_folder}}
environment: {image: mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04}
compute: azureml:gpu
resources: {instance_count: 2}
distribution: {type: pytorch, process_count_per_instance: 2}
environment_variables: {STREAMED: "%s"}
"""
STEPS = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
experiment_name: guides
settings: {default_compute: azureml:gpu}
outputs: {report: {type: uri_folder}}
jobs:
  train:
    type: command
    code: src
    command: python train.py --epochs 40 --ranks 1 --model ${{outputs.model}}
    environment: {image: mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04}
    outputs: {model: {type: uri_folder}}
  judge:
    type: command
    command: cp ${{inputs.model}}/model.json ${{outputs.report}}/judged.json
    environment: {image: mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04}
    inputs: {model: "${{parent.jobs.train.outputs.model}}"}
    outputs: {report: "${{parent.outputs.report}}"}
  score:
    type: parallel
    inputs: {data: "${{parent.jobs.train.outputs.model}}"}
    outputs: {rows: {type: uri_file}}
    input_data: ${{inputs.data}}
    mini_batch_size: "1"
    mini_batch_error_threshold: 0
    max_concurrency_per_instance: 1
    resources: {instance_count: 2}
    retry_settings: {max_retries: 1, timeout: 60}
    task:
      type: run_function
      code: src
      entry_script: score.py
      environment: {image: mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04}
      program_arguments: --word ${{inputs.data}}
      append_row_to: ${{outputs.rows}}
"""
SCORE = """\
def init():
    pass

def run(mini_batch):
    return [open(file).read() for file in mini_batch]
"""
SWEEP = """\
$schema: https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json
type: sweep
compute: azureml:gpu
trial:
  command: test ${{search_space.lr}} != 0; cat score.py
  code: src
  environment: {image: mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04}
search_space: {lr: {type: uniform, min_value: 0.1, max_value: 0.5}}
sampling_algorithm: random
objective: {goal: minimize, primary_metric: loss}
early_termination: {type: bandit, slack_factor: 0.1, evaluation_interval: 1}
limits: {max_total_trials: 2, max_concurrent_trials: 2}
"""
# Fits y = 2x + 1 by gradient descent, each rank on its share of the points; ranks do not speak to each other.
TRAIN = """\
import argparse, json, os, pathlib

words = argparse.ArgumentParser()
for name, kind in (("epochs", int), ("ranks", int), ("model", pathlib.Path)):
    words.add_argument(f"--{name}", type=kind, required=True)
given = words.parse_args()
rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
assert size == given.ranks, f"{size} ranks, {given.ranks} are wanted"
points = [(x / 16, 2 * x / 16 + 1) for x in range(rank, 32, size)]
slope = offset = 0.0
for epoch in range(given.epochs):
    errors = [(slope * x + offset - y, x) for x, y in points]
    loss = sum(error**2 for error, _ in errors) / len(points)
    slope -= 0.4 * sum(error * x for error, x in errors) / len(points)
    offset -= 0.4 * sum(error for error, _ in errors) / len(points)
    if epoch == 10 and rank == 0 and "STREAMED" in os.environ:
        open(os.environ["STREAMED"], "rb", buffering=0).read(1)  # azure-ai-ml shows nothing of a run that has ended
    if epoch % 10 == 0:
        print(f"rank {rank} of {size}: epoch {epoch} loss {loss:.4f}", flush=True)
if rank == 0:
    model = json.dumps({"slope": slope, "offset": offset, "loss": loss})
    (given.model / "model.json").write_text(model)
    pathlib.Path("outputs").mkdir(exist_ok=True)
    pathlib.Path("outputs/loss.txt").write_text(f"{loss:.4f}")
"""
JOBS = {"per_process.yml": PER_PROCESS, "steps.yml": STEPS, "sweep.yml": SWEEP}


def written(example: str, project: Path) -> str:
    """Writes an example's file for `az ml job create` beside its code; the file's path below `project`."""
    (source,) = (PROJECT / "examples" / example).glob("job.*")
    folder = project / "examples" / example
    shown = subprocess.run(
        [str(Path(sys.executable).with_name("amlstack")), "show", str(source), "--as", "yaml"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    if NEEDS_AMLNODE in shown.stderr + shown.stdout:
        code = folder / yaml.safe_load(shown.stdout)["code"]
        shutil.copytree(PROJECT / "amlnode", code / "amlnode", dirs_exist_ok=True)
    (folder / "az.yml").write_text(shown.stdout)
    return f"examples/{example}/az.yml"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By example or job file: the run's status, what was streamed, and the downloaded files with their texts."""
    project = tmp_path_factory.mktemp("copy")
    shutil.copytree(PROJECT / "examples", project / "examples")
    files = {
        example: written(example, project)
        for example in WANTED
        if example != "horovod" or shutil.which("mpicxx") is not None
    }
    guides = project / "guides"
    (guides / "src").mkdir(parents=True)
    (guides / "src" / "train.py").write_text(TRAIN)
    (guides / "src" / "score.py").write_text(SCORE)
    streamed = guides / "streamed"
    os.mkfifo(streamed)
    for name, text in JOBS.items():
        (guides / name).write_text(text.replace("%s", str(streamed)))
    # The first job waits in the pipe until it is streamed, so that it is submitted before all others.
    submitted = [*(f"guides/{name}" for name in JOBS), *files.values()]
    with running_sandbox(tmp_path_factory.mktemp("home")) as sandbox:
        arm = Arm(sandbox.endpoint)
        space = arm.make_workspace("space1")
        arm.make_cluster(space)
        arm.finish(arm.put(f"{space}/computes/a100", cluster("Standard_ND96asr_v4")))
        environ = {**sandbox.environ, "STREAMED": str(streamed)}
        found = told("azure_ai_ml_submits", "space1", project / "kept", *submitted, environ=environ, cwd=project)
    return {**{name: found[f"guides/{name}"] for name in JOBS}, **{name: found[file] for name, file in files.items()}}


@pytest.mark.parametrize("example", WANTED)
def test_an_example_is_streamed_and_its_metrics_are_downloaded(seen: dict[str, dict[str, Any]], example: str) -> None:
    if example not in seen:
        pytest.skip(f"Horovod cannot be compiled here: apt-get install {prepare.PACKAGES}")
    run = seen[example]
    assert (run["status"], run["failure"]) == ("Completed", ""), run
    assert f"RunId: {run['name']}" in run["streamed"]
    files: dict[str, str] = run["files"]
    metrics = json.loads(files["artifacts/outputs/metrics.json"])
    assert metrics["world_size"] >= 1
    assert metrics["losses"][-1] < metrics["losses"][0]
    assert any("loss" in text for name, text in files.items() if name.startswith("artifacts/user_logs/"))


def files(seen: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = seen["files"]
    return found


def test_a_distributed_training_is_streamed_and_its_outputs_are_downloaded(seen: dict[str, dict[str, Any]]) -> None:
    run = seen["per_process.yml"]
    assert (run["status"], run["failure"]) == ("Completed", "")
    assert "rank 0 of 4: epoch 30 loss " in run["streamed"]
    assert f"RunId: {run['name']}" in run["streamed"]
    there = files(run)
    logs = [there[f"artifacts/user_logs/std_log_process_0{rank}.txt"] for rank in range(4)]
    assert [f"rank {rank} of 4: epoch 0 loss " in log for rank, log in enumerate(logs)] == [True] * 4
    model = json.loads(there["named-outputs/model/model.json"])
    assert model["loss"] < 0.1
    assert there["artifacts/outputs/loss.txt"] == f"{model['loss']:.4f}"


def test_a_pipeline_is_streamed_and_its_output_is_what_its_first_step_trained(seen: dict[str, dict[str, Any]]) -> None:
    run = seen["steps.yml"]
    assert (run["status"], run["failure"]) == ("Completed", "")
    assert f"RunId: {run['name']}" in run["streamed"]
    assert json.loads(files(run)["named-outputs/report/judged.json"])["loss"] < 0.1
    assert [child[1:] for child in run["children"]] == [
        ["train", "Completed"],
        ["judge", "Completed"],
        ["score", "Completed"],
    ]
    assert run["listed"] == [run["name"]], "children are not among the workspace's jobs"


def test_a_sweep_is_streamed_and_its_trials_are_its_children(seen: dict[str, dict[str, Any]]) -> None:
    run = seen["sweep.yml"]
    assert (run["status"], run["failure"]) == ("Completed", "")
    assert [(child[0], child[2]) for child in run["children"]] == [
        (f"{run['name']}_0", "Completed"),
        (f"{run['name']}_1", "Completed"),
    ]
    assert run["listed"] == [run["name"]]
