"""Files that are no jobs, and former spellings in files that are, have one finding that says what to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jobs
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

SCHEMAS = "https://azuremlschemas.azureedge.net/latest"


@for_each(
    "content, seen",
    [
        ("name: env\nchannels: [conda-forge]\ndependencies: [python=3.11, {pip: [numpy]}]\n", "a conda environment"),
        ("dependencies: [python]\n", "a conda environment"),
        (f"$schema: {SCHEMAS}/environment.schema.json\nname: e\nbuild: {{path: ctx}}\n", "an environment"),
        ("name: e\nimage: ubuntu\nconda_file: c.yml\n", "an environment"),
        ("name: d\nversion: 1\ntype: uri_folder\npath: ./data\n", "a data asset"),
        (f"$schema: {SCHEMAS}/data.schema.json\nname: d\npath: x\n", "a data asset"),
        ("name: m\npath: ./model\ntype: mlflow_model\n", "a model"),
        ("name: s\ntype: azure_blob\naccount_name: a\n", "a datastore"),
        ("name: c\ntype: amlcompute\nsize: Standard_D2s_v3\n", "a compute"),
        (f"$schema: {SCHEMAS}/managedOnlineDeployment.schema.json\nname: d\nmodel: m\n", "a deployment of a model"),
        ("$schema: https://x.net/promptflow/latest/Flow.schema.json\ninputs: {a: {type: string}}\n", "a prompt flow"),
        ("model_name: x\nlearning_rate: 0.1\nseed: 1\n", "no job: it has no key of one"),
    ],
)
def test_a_file_of_another_kind_has_one_finding_that_names_its_kind(content: str, seen: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yml"
    path.write_text(content)
    loaded = jobs.load(path)
    assert [(each.code, each.seen) for each in loaded.findings] == [("not-a-job", f"The file is {seen}")]
    assert loaded.findings[0].line
    assert loaded.jobs == ()


def test_an_empty_file_is_named_as_one(tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text("# written later\n")
    assert [(each.code, each.line) for each in jobs.load(path).findings] == [("file-empty", 1)]


@for_each(
    "content",
    [
        "comand: python train.py\nenvironment: azureml:e:1\n",
        "commandd: python train.py\n",
        "type: command\nname: x\n",
        "compute: azureml:gpu\nname: x\n",
        "code: src\n",
    ],
)
def test_a_file_that_was_meant_as_a_job_is_judged_as_one(content: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text(content)
    codes = {each.code for each in jobs.load(path).findings}
    assert "not-a-job" not in codes
    assert codes & {"key-missing", "key-unknown"}


@pytest.mark.parametrize("kind", ["spark", "parallel"])
def test_a_component_that_only_pipelines_run_is_called_a_component(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "component.yml"
    path.write_text(f"$schema: {SCHEMAS}/{kind}Component.schema.json\ntype: {kind}\nname: c\nversion: 1\n")
    (finding,) = jobs.load(path).findings
    assert finding.seen == f"The file is a component of type `{kind}`"


INNER = """\
type: pipeline
{schema}inputs:
  data: {{type: uri_folder, optional: true}}
  epochs: {{type: integer, default: 3}}
  schedule: {{type: string}}
jobs:
  train:
    command: python train.py --epochs ${{{{inputs.epochs}}}} ${{{{inputs.data}}}}
    environment: azureml:e:1
    inputs:
      data: ${{{{parent.inputs.data}}}}
      epochs: ${{{{parent.inputs.epochs}}}}
"""


@pytest.mark.parametrize("schema", ["", f"$schema: {SCHEMAS}/pipelineComponent.schema.json\n"])
def test_a_pipeline_component_alone_is_the_pipeline_that_it_would_be(schema: str, tmp_path: Path) -> None:
    path = tmp_path / "inner.yml"
    path.write_text(INNER.format(schema=schema))
    loaded = jobs.load(path)
    assert [each.code for each in loaded.findings] == ["component-alone"]
    (job,) = loaded.jobs
    assert isinstance(job, jobs.Pipeline)
    assert (job.inputs["epochs"], job.inputs["schedule"]) == (3, "")
    found = jobs.resolve(job, lambda _: (jobs.Target(), ()), source=loaded.source).findings
    assert "compute-unset" not in {each.code for each in found}


def test_an_input_that_the_component_does_not_have_is_a_warning_unless_it_is_a_near_miss(tmp_path: Path) -> None:
    (tmp_path / "inner.yml").write_text(INNER.format(schema=""))
    outer = tmp_path / "outer.yml"
    outer.write_text(
        "type: pipeline\nsettings: {default_compute: 'azureml:c'}\njobs:\n"
        "  inner: {type: pipeline, component: ./inner.yml, inputs: {schedule: x, split_ratio: 1, epoch: 2}}\n"
    )
    loaded = jobs.load(outer)
    (job,) = loaded.jobs
    found = jobs.resolve(job, lambda _: (jobs.Target(), ()), source=loaded.source).findings
    levels = {each.where: each.level for each in found if each.code == "port-unknown"}
    assert levels == {"jobs.inner.inputs.split_ratio": "warning", "jobs.inner.inputs.epoch": "error"}


COMMAND = "command: echo\nenvironment: azureml:e:1\n"


@for_each(
    "text, where, remedy",
    [
        (f"{COMMAND}code:\n  local_path: src\n", "code", "`code: src`"),
        (f"{COMMAND}compute:\n  target: azureml:c\n  instance_count: 4\n", "compute", "resources: {instance_count: …}"),
        (f"{COMMAND}inputs:\n  d:\n    dataset: azureml:iris:1\n", "inputs.d.dataset", "`path: azureml:NAME:VERSION`"),
        (f"{COMMAND}inputs:\n  d:\n    file: https://h/iris.csv\n", "inputs.d.file", "`path: …`"),
        ("command: echo\nenvironment:\n  docker:\n    image: i:1\n", "environment.docker", "`image` directly under"),
        ("command: echo\nenvironment:\n  build:\n    local_path: .\n", "environment.build.local_path", "`path` now"),
        (f"{COMMAND}services:\n  s:\n    job_service_type: ssh\n", "services.s.job_service_type", "`type` now"),
        (f"{COMMAND}distribution:\n  type: torch.distributed\n", "distribution.type", "`pytorch`"),
        (f"{COMMAND}instance_count: 2\n", "instance_count", "resources: {instance_count: …}"),
        (f"{COMMAND}process_count_per_instance: 2\n", "process_count_per_instance", "distribution: {type: pytorch,"),
        (
            "type: pipeline\nschedule: {type: cron}\njobs:\n  a:\n    command: echo\n    environment: azureml:e:1\n",
            "schedule",
            "`create_job`",
        ),
        (
            "type: pipeline\njobs:\n  a:\n    type: component\n    component: azureml:train:1\n",
            "jobs.a.type",
            "type `command`",
        ),
    ],
)
def test_a_former_spelling_gives_a_finding_with_the_new_one(tmp_path: Path, text: str, where: str, remedy: str) -> None:
    file = tmp_path / "job.yml"
    file.write_text(text)
    errors = [finding for finding in jobs.load(file).findings if finding.level.name == "ERROR"]
    (finding,) = [each for each in errors if each.where == where]
    assert remedy in finding.remedy
    assert len(errors) == 1


def test_a_key_that_was_never_spelt_so_keeps_its_own_remedy(tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    file.write_text(f"{COMMAND}inputs:\n  d:\n    pth: x\n")
    (finding,) = [each for each in jobs.load(file).findings if each.level.name == "ERROR"]
    assert finding.remedy == "Did you mean `path`?"
