"""`amlstack rehearse` of sweeps and pipelines, as a person runs it, on a real sandbox."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from amlstack.sandbox import processes
from amlstack.sandbox.store.store import Store, job_folder
from tests.support.cli.verbs import Verbs
from tests.support.running import running_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow
    from tests.support.cli.verbs import Ran

# The first one may have to build an environment.
pytestmark = [pytest.mark.ranks, pytest.mark.timeout(3600)]

PLAIN = "{image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}"
HANDS_ON = f"""\
type: pipeline
name: hands-on
settings: {{default_compute: azureml:a100}}
outputs: {{report: {{type: uri_folder}}}}
jobs:
  prepare:
    command: echo made > ${{{{outputs.data}}}}/data.txt
    environment: {PLAIN}
    outputs: {{data: {{type: uri_folder}}}}
  train:
    command: >-
      echo "rank $RANK of $WORLD_SIZE reads $(cat ${{{{inputs.data}}}}/data.txt)";
      echo trained > ${{{{outputs.model}}}}/$RANK.txt
    environment: {PLAIN}
    inputs: {{data: "${{{{parent.jobs.prepare.outputs.data}}}}"}}
    outputs: {{model: {{type: uri_folder}}}}
    distribution: {{type: pytorch, process_count_per_instance: 1}}
    resources: {{instance_count: 2}}
  judge:
    command: cat ${{{{inputs.data}}}}/data.txt ${{{{inputs.model}}}}/*.txt > ${{{{outputs.report}}}}/report.txt
    environment: {PLAIN}
    inputs: {{data: "${{{{parent.jobs.prepare.outputs.data}}}}", model: "${{{{parent.jobs.train.outputs.model}}}}"}}
    outputs: {{report: "${{{{parent.outputs.report}}}}"}}
"""
SWEEP = """\
type: sweep
name: sweep
compute: azureml:a100
trial:
  command: python -c 'import mlflow; mlflow.log_metric("loss", abs(${{search_space.lr}} - 0.3))'
  environment: azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest
sampling_algorithm: {type: random, seed: 7}
search_space: {lr: {type: uniform, min_value: 0, max_value: 1}}
objective: {primary_metric: loss, goal: minimize}
limits: {max_total_trials: 3, max_concurrent_trials: 2}
"""
BREAKS = f"""\
type: pipeline
name: breaks
settings: {{default_compute: azureml:a100}}
jobs:
  first:
    type: command
    command: echo made > ${{{{outputs.data}}}}/made.txt
    environment: {PLAIN}
    outputs:
      data: {{type: uri_folder}}
  bad:
    type: command
    command: python -c "raise ValueError(open('${{{{inputs.data}}}}/made.txt').read())"
    environment: {PLAIN}
    inputs:
      data: ${{{{parent.jobs.first.outputs.data}}}}
    outputs:
      model: {{type: uri_folder}}
  after:
    type: command
    command: "true"
    environment: {PLAIN}
    inputs:
      model: ${{{{parent.jobs.bad.outputs.model}}}}
"""
SCORES = f"""\
type: pipeline
name: scores
settings: {{default_compute: azureml:a100}}
inputs:
  files: {{type: uri_folder, path: ./files}}
jobs:
  score:
    type: parallel
    inputs: {{files: "${{{{parent.inputs.files}}}}"}}
    outputs: {{rows: {{type: uri_file}}}}
    input_data: ${{{{inputs.files}}}}
    mini_batch_size: "2"
    resources: {{instance_count: 2}}
    max_concurrency_per_instance: 2
    task:
      type: run_function
      code: ./src
      entry_script: score.py
      environment: {PLAIN}
      append_row_to: ${{{{outputs.rows}}}}
  check:
    type: command
    command: test "$(tr '\\n' , < ${{{{inputs.rows}}}})" = 11,22,33,
    environment: {PLAIN}
    inputs:
      rows: {{type: uri_file, path: "${{{{parent.jobs.score.outputs.rows}}}}"}}
"""
SCORE = """\
def init():
    pass

def run(mini_batch):
    return [2 * open(file).read() for file in mini_batch]
"""
# Neither the name of the argument nor an example of the input: as years of tutorials write it.
LOGS_WITH_PYTORCH = """\
import mlflow
import torch

model = torch.nn.Linear(1, 1)
torch.nn.init.ones_(model.weight), torch.nn.init.ones_(model.bias)
mlflow.log_metric("loss", 0.5)
mlflow.pytorch.log_model(model, "./model", pip_requirements=[])
uri = f"runs:/{mlflow.active_run().info.run_id}/model"
print("newer loaded", mlflow.pytorch.load_model(uri)(torch.ones(1)).item())
"""
LOGS_A_FUNCTION = """\
import mlflow

class Double(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return 2.0 * model_input

mlflow.log_metric("loss", 0.5)
mlflow.pyfunc.log_model("model", python_model=Double(), pip_requirements=[])
uri = f"runs:/{mlflow.active_run().info.run_id}/model"
print("older loaded", mlflow.pyfunc.load_model(uri).predict(1.0))
"""
LOGS_MODELS = """\
type: pipeline
name: models
settings: {default_compute: azureml:a100}
jobs:
  newer:
    type: command
    command: python newer.py
    code: src
    environment: azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest
  older:
    type: command
    command: python older.py
    code: src
    environment:
      image: mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04
      conda_file: {dependencies: [python=3.11, {pip: [mlflow-skinny==2.22.5, numpy, pandas]}]}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A sandbox of this module's own; nothing of its jobs is left when they have ended."""
    with running_sandbox(tmp_path_factory.mktemp("rehearsals")) as sandbox:
        yield sandbox.home


def rehearse(home: Path, file: Path, *words: str) -> Ran:
    return run(home, "rehearse", str(file), *words)


def run(home: Path, *words: str) -> Ran:
    return Verbs(PROJECT, {}, {"AMLSTACK_HOME": str(home)})(*words)


def family(home: Path, stem: str) -> tuple[JobRow, dict[str, JobRow]]:
    """The one parent whose name begins so, and its children by place."""
    with closing(Store(home)) as store:
        parents = [
            job for job in store.jobs.list() if job.name.startswith(f"{stem}-") and not store.family.above(job.id)
        ]
        (parent,) = parents
        return parent, {place: store.jobs[key] for place, key in store.family.children(parent.id).items()}


def test_a_pipeline_hands_its_data_from_step_to_step(home: Path, tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(HANDS_ON)

    ended = rehearse(home, tmp_path / "pipeline.yml")

    assert ended.code == 0, ended.printed
    parent, steps = family(home, "hands-on")
    assert {name: row.status for name, row in steps.items()} == dict.fromkeys(
        ("prepare", "train", "judge"), "Completed"
    )
    assert (job_folder(home, parent.id) / "outputs/report/report.txt").read_text() == "made\ntrained\ntrained\n"
    assert "[train · node 0] rank 0 of 2 reads made" in ended.out
    assert f"judge: Completed; logs in {job_folder(home, steps['judge'].id)}" in ended.out
    assert processes.marked(home) == ()


def test_a_parallel_step_runs_over_data_of_this_machine(home: Path, tmp_path: Path) -> None:
    for name in ("src", "files"):
        (tmp_path / name).mkdir()
    (tmp_path / "src" / "score.py").write_text(SCORE)
    for number in "123":
        (tmp_path / "files" / f"{number}.txt").write_text(number)
    (tmp_path / "pipeline.yml").write_text(SCORES)

    ended = rehearse(home, tmp_path / "pipeline.yml")

    assert ended.code == 0, ended.printed
    assert "2 mini-batches, 2 node(s) with 2 process(es) each" in ended.out


@pytest.mark.training
def test_a_sweep_names_the_trial_with_the_smallest_loss(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sweep.yml").write_text(SWEEP)

    ended = rehearse(home, tmp_path / "sweep.yml")

    assert ended.code == 0, ended.printed
    parent, trials = family(home, "sweep")
    assert len(trials) == 3
    assert {row.status for row in trials.values()} == {"Completed"}
    with closing(Store(home)) as store:
        lowest = {row.name: min(store.metrics.values(row.id, "loss")) for row in trials.values()}
    result = parent.properties["properties"]
    assert (result["best_child_run_id"], float(result["score"])) == min(lowest.items(), key=lambda item: item[1])
    assert f"best trial: {result['best_child_run_id']} with loss = {result['score']}" in ended.out
    assert "trial 2 is " in ended.out
    assert processes.marked(home) == ()


@pytest.mark.training
def test_mlflows_real_clients_log_a_model_and_load_it(home: Path, tmp_path: Path) -> None:
    """MLflow 3 as in the curated image, MLflow 2 as in environments of one's own."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/newer.py").write_text(LOGS_WITH_PYTORCH)
    (tmp_path / "src/older.py").write_text(LOGS_A_FUNCTION)
    (tmp_path / "models.yml").write_text(LOGS_MODELS)

    ended = rehearse(home, tmp_path / "models.yml")

    assert ended.code == 0, ended.printed
    _, steps = family(home, "models")
    for step in ("newer", "older"):
        (described,) = (job_folder(home, steps[step].id) / "artifacts").rglob("MLmodel")
        assert "python_function" in described.read_text()
        assert f"{step} loaded 2.0" in ended.out


def test_a_broken_step_is_named_with_its_cause(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "breaks.yml"
    file.write_text(BREAKS)

    ended = rehearse(home, file)

    assert ended.code == 1, ended.printed
    parent, steps = family(home, "breaks")
    assert {name: row.status for name, row in steps.items()} == {"first": "Completed", "bad": "Failed"}
    assert parent.error is not None
    assert f"Step 'bad' (job {steps['bad'].name}) failed: " in parent.error.message
    assert parent.error.message.endswith("Not run: after.")
    assert parent.error.message in ended.out
    assert "ValueError: made" in ended.out
    assert "diagnosis (" in ended.out
    assert f"logs in {job_folder(home, steps['bad'].id)}" in ended.out

    of_the_parent = run(home, "diagnose", str(job_folder(home, parent.id)), "--json")
    assert of_the_parent.code == 1, of_the_parent.err
    assert json.loads(of_the_parent.out)["text"].startswith("ValueError: made")
    assert f"bad (job {steps['bad'].name}) failed first of 2" in of_the_parent.err


READS = f"""\
type: pipeline
name: reads
settings: {{default_compute: azureml:a100}}
inputs:
  raw: {{type: uri_folder, path: "azureml:raw@latest"}}
jobs:
  only:
    type: command
    command: >-
      cat ${{{{inputs.raw}}}}/a.txt ${{{{inputs.own}}}}/b.txt;
      ls ${{{{outputs.kept}}}}; touch ${{{{outputs.kept}}}}/old
    environment: {PLAIN}
    inputs:
      raw: ${{{{parent.inputs.raw}}}}
      own: {{type: uri_folder, path: ./own}}
    outputs:
      kept: {{type: uri_folder, path: azureml://datastores/workspaceblobstore/paths/kept}}
"""


def test_data_of_this_machine_reach_the_steps_and_a_fresh_start_finds_no_earlier_outputs(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "reads.yml"
    file.write_text(READS)
    for name, text in (("mapped/a.txt", "mapped\n"), ("given/a.txt", "given\n"), ("own/b.txt", "own\n")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "rehearsal.toml").write_text('[inputs]\n"azureml:raw@latest" = "mapped"\n')

    first = rehearse(home, file)
    again = rehearse(home, file, "--input", f"raw={tmp_path / 'given'}")
    fresh = rehearse(home, file, "--fresh")

    for ended, raw, kept in ((first, "mapped", False), (again, "given", True), (fresh, "mapped", False)):
        assert ended.code == 0, ended.printed
        assert f"[only · node 0] {raw}" in ended.out
        assert "[only · node 0] own" in ended.out
        assert ("[only · node 0] old" in ended.out) is kept
        assert "only · output kept: " in ended.out
    assert f"input raw: {tmp_path / 'mapped'}, instead of azureml:raw@latest" in first.out
    assert "output only.kept: 1 file of earlier rehearsals" in fresh.out
