"""Local data of every kind of declaration become the addresses that azure-ai-ml sends, by its own resolution."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import jobs
from jobs.local_data import DataFolders, local_inputs
from tests.support import azure_ai_ml

INPUTS = """\
inputs:
  folder: {type: uri_folder, path: ./data}
  again: {type: uri_folder, path: data/}
  file: {type: uri_file, path: data/a.csv}
  table: {type: mltable, path: data, mode: eval_mount}
  model: {type: custom_model, path: data/deep, datastore: "azureml:models"}
  elsewhere: {type: uri_folder, path: "azureml:x:1"}
  value: 3
"""
COMMAND = "type: command\ncommand: cat ${{inputs.file}}\nenvironment: azureml:e:1\ncompute: azureml:c\n" + INPUTS
SWEEP = (
    """\
type: sweep
compute: azureml:c
trial: {command: "cat ${{inputs.file}} ${{search_space.lr}}", environment: azureml:e:1}
search_space: {lr: {type: choice, values: [1]}}
sampling_algorithm: grid
objective: {goal: minimize, primary_metric: loss}
limits: {max_total_trials: 1}
"""
    + INPUTS
)
PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:c}
inputs:
  folder: {type: uri_folder, path: ./data}
jobs:
  one:
    type: command
    command: cat ${{inputs.file}} ${{inputs.bound}}
    environment: azureml:e:1
    inputs:
      bound: ${{parent.inputs.folder}}
      file: {type: uri_file, path: data/a.csv}
  two:
    component: azureml:c:1
    inputs:
      folder: {type: uri_folder, path: data}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "a.csv").write_text("1,2\n")
    (tmp_path / "data" / "deep" / "weights").write_text("w")
    return tmp_path


def planned(project: Path, text: str) -> Any:
    file = project / "job.yml"
    file.write_text(text)
    loaded = jobs.load(file)
    assert [each for each in loaded.findings if str(each.level) == "error"] == []
    return jobs.resolve(loaded.jobs[0], lambda _: (jobs.Target(cluster="c"), []), source=loaded.source)


def theirs(project: Path, asset_type: str, path: str, datastore: str | None) -> str:
    """The path of an input after azure-ai-ml has uploaded it; nothing is sent."""
    artifacts = azure_ai_ml.module("_artifacts._artifact_utilities")
    operations = azure_ai_ml.module("operations._job_operations")
    assets = azure_ai_ml.module("_utils._asset_utils")

    def uploaded(*_: Any, path: Path, datastore_name: str, **__: Any) -> Any:
        digest = assets.get_object_hash(path, assets.get_ignore_file(path))
        store = datastore_name.removeprefix("azureml:")
        return Mock(
            relative_path=f"LocalUpload/{digest}/{Path(path).name}",
            datastore_arm_id=f"/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices"
            f"/workspaces/w/datastores/{store}",
        )

    entry = operations.Input(type=asset_type, path=path)
    entry.datastore = datastore
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifacts, "_upload_to_datastore", uploaded)
        patch.setattr(operations, "_upload_and_generate_remote_uri", artifacts._upload_and_generate_remote_uri)
        operations.JobOperations._resolve_job_input(Mock(), entry, str(project))
    return str(entry.path)


def addresses(body: Any) -> dict[str, str]:
    """The addresses in a body by the names of their inputs."""
    found: dict[str, str] = {}
    for key, value in body.items():
        if isinstance(value, dict):
            found |= {key: value["uri"]} if "uri" in value else addresses(value)
    return found


@pytest.mark.parametrize("text", [COMMAND, SWEEP])
def test_inputs_of_jobs_and_sweeps_have_the_addresses_of_azure_ai_ml(project: Path, text: str) -> None:
    plan = planned(project, text)
    data, found = DataFolders().scanned(plan)
    assert found == []
    body = jobs.render(data.addressed(plan.enriched)).body["properties"]
    sent = addresses(body)
    assert sent.pop("elsewhere") == "x:1"
    assert sent == {
        "folder": theirs(project, "uri_folder", "./data", None),
        "again": theirs(project, "uri_folder", "data/", None),
        "file": theirs(project, "uri_file", "data/a.csv", None),
        "table": theirs(project, "mltable", "data", None),
        "model": theirs(project, "custom_model", "data/deep", "azureml:models"),
    }
    assert sent["folder"].endswith("/data/")
    assert sent["model"].startswith("azureml://datastores/models/paths/LocalUpload/")


def test_inputs_of_pipelines_and_their_steps_and_of_schedules_have_them_too(project: Path) -> None:
    folder, file = theirs(project, "uri_folder", "data", None), theirs(project, "uri_file", "data/a.csv", None)
    (project / "pipeline.yml").write_text(PIPELINE)
    schedule = (
        "name: nightly\ntrigger: {type: cron, expression: '0 8 * * 1'}\ncreate_job: ./pipeline.yml\n"
        "$schema: https://azuremlschemas.azureedge.net/latest/schedule.schema.json\n"
    )
    for text in (PIPELINE, schedule):
        plan = planned(project, text)
        data, found = DataFolders().scanned(plan)
        assert found == []
        properties = jobs.render(data.addressed(plan.enriched)).body["properties"]
        definition = properties["action"]["jobDefinition"] if text == schedule else properties
        assert definition["inputs"]["folder"]["uri"] == folder
        steps = definition["jobs"]
        assert steps["one"]["inputs"]["file"]["uri"] == file
        assert steps["two"]["inputs"]["folder"]["uri"] == folder
        assert set(data.uploads) == {"inputs.folder", "jobs.one.inputs.file", "jobs.two.inputs.folder"}


def test_what_a_run_reads_is_part_of_its_identity_and_nothing_else_is_added(project: Path) -> None:
    plan = planned(project, COMMAND)

    def identity() -> Any:
        return DataFolders().scanned(plan)[0].identity(plan.declaration)

    before = identity()
    assert set(before) - set(plan.declaration) == {"local_data"}
    assert set(before["local_data"]) == {f"inputs.{name}" for name in ("folder", "again", "file", "table", "model")}
    (project / "data" / "deep" / "weights").write_text("v")
    changed = {key for key, value in identity()["local_data"].items() if value != before["local_data"][key]}
    assert changed == {"inputs.folder", "inputs.again", "inputs.table", "inputs.model"}
    plain = planned(project, COMMAND.partition("inputs:\n")[0].replace("cat ${{inputs.file}}", "date"))
    assert DataFolders().scanned(plain)[0].identity(plain.declaration) == plain.declaration
    assert local_inputs(plain.job, project) == ()
