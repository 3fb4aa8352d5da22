"""Microsoft's own client submits a pipeline and a sweep, streams them to their ends and lists their children."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.azure_ai_ml import told
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Sandbox

PIPELINE = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
settings: {default_compute: "azureml:gpu"}
outputs: {result: {type: uri_folder}}
jobs:
  write:
    type: command
    command: cp word.txt ${{outputs.data}}/word.txt
    code: src
    environment: {image: "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"}
    outputs: {data: {type: uri_folder}}
  read:
    type: command
    command: cat ${{inputs.data}}/word.txt > ${{outputs.result}}/read.txt
    environment: {image: "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"}
    inputs: {data: "${{parent.jobs.write.outputs.data}}"}
    outputs: {result: "${{parent.outputs.result}}"}
  score:
    type: parallel
    inputs: {data: "${{parent.jobs.write.outputs.data}}"}
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
      environment: {image: "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"}
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
  command: test ${{search_space.lr}} != 0; cat word.txt
  code: src
  environment: {image: "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"}
search_space: {lr: {type: uniform, min_value: 0.1, max_value: 0.5}}
sampling_algorithm: random
objective: {goal: minimize, primary_metric: loss}
early_termination: {type: bandit, slack_factor: 0.1, evaluation_interval: 1}
limits: {max_total_trials: 2, max_concurrent_trials: 2}
"""


@pytest.mark.ranks
def test_azure_ai_ml_runs_a_pipeline_and_a_sweep(own_sandbox: Sandbox, tmp_path: Path) -> None:
    arm = Arm(own_sandbox.endpoint)
    arm.make_cluster(arm.make_workspace("space1"))
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "word.txt").write_text("hello\n")
    (tmp_path / "src" / "score.py").write_text(SCORE)
    files = [tmp_path / "pipeline.yml", tmp_path / "sweep.yml"]
    for file, text in zip(files, (PIPELINE, SWEEP), strict=True):
        file.write_text(text)

    seen = told("azure_ai_ml_parents", "space1", *files, environ=own_sandbox.environ)

    assert seen["pipeline"]["status"] == "Completed"
    assert [child[1:] for child in seen["pipeline"]["children"]] == [
        ["write", "Completed"],
        ["read", "Completed"],
        ["score", "Completed"],
    ]
    name = seen["sweep"]["name"]
    assert seen["sweep"]["status"] == "Completed"
    assert [(child[0], child[2]) for child in seen["sweep"]["children"]] == [
        (f"{name}_0", "Completed"),
        (f"{name}_1", "Completed"),
    ]
    assert seen["listed"] == ["pipeline", "sweep"], "children are not among the workspace's jobs"
