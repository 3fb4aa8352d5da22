"""Mistakes in a sweep, a pipeline or a component are reported once, at their place, whatever the file holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jobs
from tests.support import yaml_files
from tests.support.examples import examples
from tests.support.jobs import pipeline_cases, sweep_cases
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

A100 = jobs.Target("Standard_ND96asr_v4", "a100", 4)
DIALECT = """\
$schema: https://componentsdk.azureedge.net/jsonschema/DistributedComponent.json
name: samples.train
version: 0.0.1
type: DistributedComponent
inputs:
  data_dir: {type: AnyDirectory}
  epochs: {type: Integer, default: 3}
  resume: {type: String, optional: true}
outputs:
  model: {type: AnyDirectory}
code: .
environment: {docker: {image: mcr.microsoft.com/x}, os: Linux}
launcher:
  type: torch.distributed
  additional_arguments: >-
    python train.py --data {inputs.data_dir} --epochs {inputs.epochs} [--resume {inputs.resume}] --out {outputs.model}
"""


def planned(path: Path) -> Any:
    loaded = jobs.load(path)
    (declared,) = loaded.jobs
    return jobs.resolve(declared, lambda _: (A100, ()), source=loaded.source)


def codes(found: Any) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in found]


@for_each(
    "changes, code, where",
    [
        ("search_space: {rl: {type: randint, upper: 3}}", "search-space-undefined", "trial.command"),
        ("sampling_algorithm: grid", "sampling-space", "search_space.lr"),
        ("early_termination: {type: bandit}", "bandit-slack", "early_termination"),
        (
            "limits: {max_total_trials: 2, max_concurrent_trials: 3}",
            "trials-concurrent",
            "limits.max_concurrent_trials",
        ),
        ("limits: {max_total_trials: 2, timeout: 5}", "timeout-short", "limits.timeout"),
    ],
)
def test_faults_of_a_sweep(changes: str, code: str, where: str, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yml"
    path.write_text(yaml_files.dump({**sweep_cases.BASE, **yaml_files.load(changes)}))
    found = planned(path).findings
    assert (code, where) in codes(found)
    assert all(finding.line for finding in found)


@for_each(
    "steps, code, where",
    [
        ("{c: {component: ./sub/component.yml}}", "input-missing", "jobs.c.inputs.data"),
        ("{c: {component: ./sub/component.yml, inputs: {data: x, dta: y}}}", "port-unknown", "jobs.c.inputs.dta"),
        (
            (
                "{a: {command: x, environment: 'azureml:e:1'},"
                " b: {command: x, environment: 'azureml:e:1', inputs: {i: '${{parent.jobs.a.outputs.o}}'}}}"
            ),
            "binding-undefined",
            "jobs.b.inputs.i",
        ),
        (
            (
                "{a: {command: x, environment: 'azureml:e:1', outputs: {o: },"
                " inputs: {i: '${{parent.jobs.b.outputs.o}}'}},"
                " b: {command: x, environment: 'azureml:e:1', outputs: {o: },"
                " inputs: {i: '${{parent.jobs.a.outputs.o}}'}}}"
            ),
            "pipeline-circle",
            "jobs.a",
        ),
        (
            "{a: {command: x, environment: 'azureml:e:1', resources: {instance_count: 5}, compute: a100}}",
            "nodes-beyond-cluster",
            "jobs.a.resources.instance_count",
        ),
    ],
)
def test_faults_of_a_pipeline_are_placed_under_their_step(steps: str, code: str, where: str, tmp_path: Path) -> None:
    pipeline_cases.folder(tmp_path)
    path = tmp_path / "pipeline.yml"
    path.write_text(f"type: pipeline\njobs: {steps}\n")
    errors = [finding for finding in planned(path).findings if finding.level == "error"]
    assert codes(errors) == [(code, where)]


SPARK = "{type: spark, component: 'azureml:s:1', resources: {instance_type: standard_e4s_v3, runtime_version: '3.4'}}"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("{command: x, environment: 'azureml:e:1', compute: a100}", False),
        ("{type: parallel, component: 'azureml:p:1', compute: a100}", False),
        (SPARK, True),
        ("{type: automl, task: classification, compute: a100}", True),
    ],
)
def test_a_step_says_that_no_rehearsal_runs_it_when_the_sandbox_does_not(step: str, said: bool, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yml"
    path.write_text(f"type: pipeline\njobs: {{a: {step}}}\n")
    found = [finding for finding in planned(path).findings if finding.code == "step-carried"]
    assert codes(found) == ([("step-carried", "jobs.a")] if said else [])


def test_a_component_alone_is_the_command_job_that_it_would_be(tmp_path: Path) -> None:
    pipeline_cases.folder(tmp_path)
    loaded = jobs.load(tmp_path / "sub" / "component.yml")
    assert codes(loaded.findings) == [("component-alone", "")]
    (job,) = loaded.jobs
    assert isinstance(job, jobs.Job)
    assert (job.nodes, job.inputs["epochs"], job.inputs["data"]) == (2, 5, jobs.Input(type="uri_folder"))


def test_the_older_dialect_is_translated_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "train.yml").write_text(DIALECT)
    loaded = jobs.load(tmp_path / "train.yml")
    assert codes(loaded.findings) == [("dialect-translated", "launcher"), ("component-alone", "")]
    (job,) = loaded.jobs
    assert isinstance(job, jobs.Job)
    assert job.command == (
        "python train.py --data ${{inputs.data_dir}} --epochs ${{inputs.epochs}} $[[--resume ${{inputs.resume}}]]"
        " --out ${{outputs.model}}"
    )
    assert jobs.body(job)["properties"]["distribution"] == {"distributionType": "PyTorch"}
    assert job.environment == jobs.Environment(image="mcr.microsoft.com/x")


def test_a_step_of_the_older_dialect_says_its_processes(tmp_path: Path) -> None:
    (tmp_path / "train.yml").write_text(DIALECT)
    path = tmp_path / "pipeline.yml"
    path.write_text(
        "type: pipeline\njobs: {t: {component: train.yml, inputs: {data_dir: 'azureml:x:1'}, compute: a100,"
        " distribution: {type: pytorch, process_count_per_instance: 8}, resources: {instance_count: 2}}}\n"
    )
    plan = planned(path)
    assert not [str(finding) for finding in plan.findings if finding.level == "error"]
    assert plan.parts["jobs.t"].world_size == 16


def test_a_typed_launcher_is_lowered_in_its_component_and_enriched_at_its_step() -> None:
    component = jobs.Component(command="python train.py", environment="acpt-pytorch-2.8-cuda12.6")
    step = jobs.Step(component=component, launcher=jobs.TorchRun(), nodes=2, compute="a100")
    plan = jobs.resolve(jobs.Pipeline(jobs={"train": step}), lambda _: (A100, ()))
    body = jobs.render(plan.enriched).body["properties"]["jobs"]["train"]
    assert isinstance(plan.enriched, jobs.Pipeline)
    result = jobs.render(plan.enriched).components["train"]["properties"]["componentSpec"]
    assert result["command"].startswith("torchrun --nnodes 2 --nproc_per_node 8")
    assert body["resources"]["instance_count"] == 2
    assert body["resources"]["shm_size"]
    assert body["environment_variables"]["NCCL_SOCKET_IFNAME"] == "eth0"


def test_names_and_tags_are_no_part_of_a_runs_identity(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yml"
    path.write_text(yaml_files.dump(sweep_cases.BASE))
    before = planned(path).declaration
    path.write_text(yaml_files.dump({**sweep_cases.BASE, "display_name": "D", "tags": {"a": "b"}, "name": "n"}))
    assert planned(path).declaration == before
    path.write_text(yaml_files.dump({**sweep_cases.BASE, "limits": {"max_total_trials": 11}}))
    assert planned(path).declaration != before
    json.dumps(before)


@pytest.mark.parametrize(
    ("text", "where", "near"),
    [
        ("Sweep(trial=None, search_spcae={})", "search_spcae", "search_space"),
        ("Pipeline(jbos={})", "jbos", "jobs"),
        ("Step(component='azureml:a:1', lancher=TorchRun())", "lancher", "launcher"),
        ("Schedule(name='s', triger=1)", "triger", "trigger"),
    ],
)
def test_a_misspelt_field_of_python_is_named(text: str, where: str, near: str, tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_text(f"from jobs import Pipeline, Schedule, Step, Sweep, TorchRun\njob = {text}\n")
    (finding,) = (each for each in jobs.load(path).findings if each.where == where)
    assert f"Did you mean `{near}`?" in finding.message
    assert finding.line == 2


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=True), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text("abtype_", max_size=6), inner)),
    max_leaves=6,
)
WHOLE = {
    "sweep": sweep_cases.BASE,
    "pipeline": {
        "type": "pipeline",
        "settings": {"default_compute": "azureml:gpu"},
        "inputs": {"a": 1},
        "jobs": {
            "a": {"command": "x", "environment": "azureml:e:1", "inputs": {"i": "${{parent.inputs.a}}"}},
            "c": {"component": "./sub/component.yml", "inputs": {"data": "azureml:x:1"}, "resources": {}},
            "s": {
                "type": "sweep",
                "trial": "./sub/component.yml",
                "inputs": {"data": "azureml:x:1"},
                "search_space": {"lr": {"type": "uniform", "min_value": 0, "max_value": 1}},
                "objective": {"goal": "minimize", "primary_metric": "m"},
                "limits": {"max_total_trials": 1},
            },
        },
    },
}


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = (
        [inner for key, each in value.items() for inner in paths(each, (*path, key))] if isinstance(value, dict) else []
    )
    return [path, *below] if path else below


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    return new if not path else {**value, path[0]: put(value[path[0]], path[1:], new)}


@settings(max_examples=examples(1.5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(sorted(WHOLE)), data=st.data(), new=junk)
def test_a_damaged_file_gives_findings_or_a_body_but_never_raises(
    kind: str, data: Any, new: Any, tmp_path: Path
) -> None:
    if not (tmp_path / "sub").exists():
        pipeline_cases.folder(tmp_path)
    where = data.draw(st.sampled_from(paths(WHOLE[kind])))
    path = tmp_path / "file.yml"
    path.write_text(yaml_files.dump(put(WHOLE[kind], where, new)), encoding="utf-8")
    loaded = jobs.load(path)
    for declared in loaded.jobs:
        plan = jobs.resolve(declared, lambda _: (A100, ()), source=loaded.source)
        json.dumps(jobs.render(plan.enriched).body)
        json.dumps(plan.declaration)
    assert loaded.jobs or any(finding.level == "error" for finding in loaded.findings)


OUTER = """\
type: pipeline
inputs: {{trainer: gpu-cluster}}
settings: {{default_compute: azureml:cpu-cluster}}
jobs:
  own: {{command: 'true', environment: azureml:e:1, compute: "${{{{parent.inputs.trainer}}}}"}}
  inner: {{type: pipeline, component: ./inner.yml, inputs: {{where: {where}}}}}
"""
INNER = """\
type: pipeline
inputs: {where: {type: string}}
jobs:
  train: {command: 'true', environment: azureml:e:1, compute: "${{parent.inputs.where}}"}
"""


@pytest.mark.parametrize("where", ["gpu-cluster", "${{parent.inputs.trainer}}"])
def test_a_compute_that_is_bound_to_an_input_is_the_cluster_that_it_names(where: str, tmp_path: Path) -> None:
    (tmp_path / "inner.yml").write_text(INNER)
    outer = tmp_path / "outer.yml"
    outer.write_text(OUTER.format(where=f'"{where}"'))
    loaded = jobs.load(outer)
    asked: list[str | None] = []

    def find(job: jobs.Job) -> tuple[jobs.Target, tuple[()]]:
        asked.append(job.compute)
        return jobs.Target(cluster=job.compute), ()

    jobs.resolve(loaded.jobs[0], find, source=loaded.source)
    assert asked == ["gpu-cluster", "gpu-cluster"]
