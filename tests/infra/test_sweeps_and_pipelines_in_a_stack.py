"""Sweeps and pipelines of a stack: judged part by part, deployed by the same job resource, planned with schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.infra import composed_files
from tests.support.infra.composed_files import COMPONENT, NIGHTLY, PIPELINE, WEEKLY, deployable, errors, judged, written

if TYPE_CHECKING:
    from pathlib import Path

    from infra.runs import Run
    from tests.support.running import MakeStack, Sandbox

STACK = composed_files.STACK + "  amlstack:jobs: [{file: pipeline.yml, wait: completed}, sweep.py]\n"
SWEEP = """\
from jobs import Job, LogUniform, Objective, Sweep, SweepLimits, TorchRun

job = Sweep(
    name="tune",
    trial=Job(
        command="python train.py --lr ${{search_space.lr}}",
        code="train",
        environment="acpt-pytorch-2.8-cuda12.6",
        compute="a100",
        nodes=2,
        launcher=TorchRun(),
    ),
    search_space={"lr": LogUniform(min_value=-6, max_value=-1)},
    objective=Objective(primary_metric="loss", goal="minimize"),
    limits=SweepLimits(max_total_trials=4),
)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return written(tmp_path, {"Pulumi.team.yaml": STACK, "sweep.py": SWEEP})


def composed(project: Path) -> dict[str, Run]:
    return {run.name: run for run in judged(project).runs}


def test_each_part_has_its_code_and_its_cluster(project: Path) -> None:
    assert errors(project) == []
    runs = composed(project)
    assert set(runs) == {"pipeline", "tune"}
    assert set(runs["pipeline"].codes) == {"jobs.prepare", "jobs.train"}
    assert runs["pipeline"].plan.job.wait == "completed"
    assert runs["tune"].codes["trial"].hash == runs["pipeline"].codes["jobs.train"].hash


def test_an_edit_of_one_steps_code_is_another_run(project: Path) -> None:
    before = composed(project)["pipeline"].own.hash
    (project / "prepare" / "prepare.py").write_text("print('else')\n")
    assert composed(project)["pipeline"].own.hash != before


def test_an_edit_of_a_component_is_another_run_and_a_move_of_its_file_is_not(project: Path) -> None:
    before = composed(project)["pipeline"].plan.declaration
    (project / "train.yml").rename(project / "moved.yml")
    (project / "pipeline.yml").write_text(PIPELINE.replace("./train.yml", "moved.yml"))
    assert composed(project)["pipeline"].plan.declaration == before
    (project / "moved.yml").write_text(COMPONENT.replace("train.py", "train.py --more"))
    assert composed(project)["pipeline"].plan.declaration != before


@pytest.mark.parametrize(
    ("old", "new", "code", "place"),
    [
        ("instance_count: 2", "instance_count: 3", "nodes-beyond-cluster", "pipeline.yml:14:17: jobs.train.resources"),
        ("azureml:a100", "azureml:cpu2", "cluster-unknown", "pipeline.yml:12:5: jobs.train.compute"),
        ("per_instance: 8", "per_instance: 16", "processes-beyond-gpus", "pipeline.yml:13:5: jobs.train.distribution"),
        ("code: prepare", "code: prepaer", "code-missing", "pipeline.yml:6:5: jobs.prepare.code"),
    ],
)
def test_a_steps_fault_is_placed_under_its_step(old: str, new: str, code: str, place: str, project: Path) -> None:
    (project / "pipeline.yml").write_text(PIPELINE.replace(old, new))
    (finding,) = (each for each in judged(project).findings if each.level == "error")
    assert finding.code == code
    assert str(finding).startswith(place), str(finding)


def test_a_fault_in_a_components_file_is_placed_in_that_file(project: Path) -> None:
    (project / "train.yml").write_text(COMPONENT.replace("code: ./train", "code: ./trian"))
    (finding,) = (each for each in judged(project).findings if each.level == "error")
    assert finding.code == "code-missing"
    assert str(finding).startswith("train.yml:3:1: jobs.train.component.code"), str(finding)


INNER = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineComponent.schema.json
type: pipeline
inputs: {data: {type: uri_folder}}
jobs:
  again:
    command: python -m amlnode preflight && python train.py ${{inputs.data}}
    code: ./train
    environment: azureml:mine
    inputs: {data: "${{parent.inputs.data}}"}
"""
OTHERS = """\
type: pipeline
inputs: {images: {type: mltable, path: "azureml:images:1"}, rows: {type: uri_folder, path: "azureml:rows:1"}}
settings: {default_compute: "azureml:cpu"}
jobs:
  score:
    type: parallel
    inputs: {images: "${{parent.inputs.images}}"}
    input_data: ${{inputs.images}}
    mini_batch_size: "10"
    task: {type: run_function, code: prepare, entry_script: prepare.py, environment: "azureml:mine"}
  whole:
    type: pipeline
    component: ./inner.yml
    inputs: {data: "${{parent.inputs.rows}}"}
"""


@pytest.mark.engine
def test_all_are_planned_with_their_ids_and_with_what_other_steps_and_inner_pipelines_need(
    stack: MakeStack, sandbox: Sandbox, project: Path
) -> None:
    (project / "inner.yml").write_text(INNER)
    (project / "others.yml").write_text(OTHERS)
    (project / "nightly.yml").write_text(NIGHTLY)
    (project / "weekly.py").write_text(WEEKLY)
    files = (project / name for name in ("nightly.yml", "pipeline.yml", "weekly.py", "sweep.py", "others.yml"))
    planned = deployable(stack, sandbox, "ws-composed", *files).preview().ok()
    components = {step.name: step for step in planned.planned if step.type == "amlstack:components:Version"}
    others = {"others.score", "others.whole", "others.whole.jobs.again"}
    # What a schedule and a job share is registered for each; the provider adopts the second of them.
    timed = {"nightly.prepare", "nightly.train", "weekly.train"}
    assert set(components) == {"pipeline.prepare", "pipeline.train", *timed, *others}
    codes = [step.name for step in planned.planned if step.type == "amlstack:code:Snapshot"]
    assert len(codes) == 3
    assert sum(name.endswith("train + amlnode") for name in codes) == 1
    (job,) = planned.steps("pipeline", "jobs:Job")
    nodes = job.new["inputs"]["body"]["properties"]["jobs"]
    for name, node in nodes.items():
        made = components[f"pipeline.{name}"].new["inputs"]
        assert components[f"nightly.{name}"].new["inputs"]["body"] == made["body"]
        assert node["componentId"].endswith(f"/components/amlstack_inline/versions/{made['version']}")
        spec = made["body"]["componentSpec"]
        assert spec["code"].startswith("azureml:/subscriptions/")
        assert "/environments/mine/versions/" in spec["environment"]
    assert nodes["train"]["computeId"].endswith("/computes/a100")
    assert nodes["train"]["distribution"] == {"distribution_type": "PyTorch", "process_count_per_instance": 8}
    (nightly,) = planned.steps("nightly", "schedules:Schedule")
    definition = nightly.new["inputs"]["body"]["properties"]["action"]["jobDefinition"]
    assert definition["jobs"] == nodes
    order = [step.urn for step in planned.planned]
    assert order.index(nightly.urn) > max(order.index(components[f"nightly.{name}"].urn) for name in nodes)
    (sweep,) = planned.steps("tune", "jobs:Job")
    properties = sweep.new["inputs"]["body"]["properties"]
    assert properties["jobType"] == "Sweep"
    assert "torchrun --nnodes 2 --nproc_per_node 8" in properties["trial"]["command"]
    assert properties["searchSpace"] == {"lr": ["loguniform", [-6, -1]]}
    specs = {name: step.new["inputs"]["body"]["componentSpec"] for name, step in components.items()}
    task = specs["others.score"]["task"]
    for result in (task, specs["others.whole.jobs.again"]):
        assert "/codes/" in result["code"]
        assert "/environments/mine/versions/" in result["environment"]
    inner = specs["others.whole"]["jobs"]["again"]
    version = components["others.whole.jobs.again"].new["inputs"]["version"]
    assert inner["componentId"].endswith(f"/components/amlstack_inline/versions/{version}")
    (job,) = planned.steps("others", "jobs:Job")
    assert job.new["inputs"]["codeHash"]
