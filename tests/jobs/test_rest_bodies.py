"""REST bodies are read and rendered back unchanged, whatever no field has a place for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import other_step_cases
import parity_cases
import pipeline_cases
import pytest
import sweep_cases
import yaml
from test_pipeline_body_equals_azure_ai_ml import planned

import jobs

FULL: dict[str, Any] = {
    "properties": {
        "jobType": "Command",
        "command": "python train.py ${{inputs.a}}",
        "codeId": "/subscriptions/s/codes/c/versions/1",
        "environmentId": "azureml://registries/azureml/environments/e/versions/1",
        "computeId": "/subscriptions/s/computes/gpu",
        "displayName": "d",
        "description": "x",
        "experimentName": "e",
        "distribution": {"distributionType": "TensorFlow", "parameterServerCount": 1, "workerCount": 2},
        "environmentVariables": {"A": "1"},
        "identity": {"identityType": "Managed", "clientId": "c"},
        "inputs": {
            "a": {"jobInputType": "literal", "value": "1", "description": "only the wire has it"},
            "b": {"jobInputType": "uri_folder", "uri": "azureml://x", "mode": "ReadOnlyMount"},
        },
        "outputs": {"o": {"jobOutputType": "uri_file", "mode": "Upload", "uri": "u", "assetName": "n"}},
        "limits": {"jobLimitsType": "Command", "timeout": "PT5M"},
        "queueSettings": {"jobTier": "Spot", "priority": 3},
        "resources": {
            "instanceCount": 2,
            "instanceType": "Standard_ND96asr_v4",
            "shmSize": "64g",
            "properties": {"p": {"q": None}},
        },
        "services": {"s": {"jobServiceType": "Weird", "port": 1, "properties": {"k": "v"}, "status": "up"}},
        "tags": {"t": "v"},
        "properties": {"p": "q"},
        "parentJobName": "run",
    }
}


def test_a_full_body_is_rendered_back_unchanged() -> None:
    read = jobs.from_rest(FULL)
    assert read.body() == FULL
    assert read.job is not None
    assert read.job.nodes == 2
    assert read.job.limits == jobs.Limits(timeout=300)
    carried = {finding.where for finding in read.findings}
    assert "properties.inputs.a.description" in carried
    assert "properties.services.s.jobServiceType" in carried


def test_what_is_changed_in_the_job_is_rendered_and_what_is_carried_stays() -> None:
    read = jobs.from_rest(FULL)
    assert read.job is not None
    told = read.with_job(read.job.model_copy(update={"nodes": 4})).body()["properties"]
    assert told["resources"]["instanceCount"] == 4
    assert told["inputs"]["a"]["description"] == "only the wire has it"


@pytest.mark.parametrize("kind", ["AutoML", "Spark", None])
def test_a_body_of_another_kind_is_a_finding(kind: str | None) -> None:
    read = jobs.from_rest({"properties": {"jobType": kind}})
    assert read.job is None
    assert [finding.code for finding in read.findings] == ["body-kind"]
    with pytest.raises(ValueError, match="no command job"):
        read.body()


def test_a_body_without_a_command_is_a_finding() -> None:
    read = jobs.from_rest({"properties": {"jobType": "Command", "environmentId": "e"}})
    assert read.job is None
    assert [(finding.code, finding.where) for finding in read.findings] == [("key-missing", "command")]


@pytest.mark.parametrize("told", [{}, {"trial": 3}, {"searchSpace": {"a": ["gamma", []]}}, {"limits": {"timeout": 3}}])
def test_a_broken_body_of_a_sweep_is_a_finding(told: dict[str, Any]) -> None:
    read = jobs.from_rest({"properties": {"jobType": "Sweep", **told}})
    assert read.other is None
    assert read.findings


@pytest.mark.parametrize("case", sweep_cases.ACCEPTED)
def test_the_body_of_a_sweep_comes_back_as_it_was(case: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    told = {**sweep_cases.BASE, **(yaml.safe_load(sweep_cases.ACCEPTED[case]) or {})}
    file.write_text(yaml.safe_dump({key: value for key, value in told.items() if value is not None}))
    given = json.loads(json.dumps(jobs.render(planned(file)[0].enriched, jobs.Refs(environment="azureml:e:1"))))
    read = jobs.from_rest(given)
    assert isinstance(read.other, jobs.Sweep), read.findings
    assert read.body() == given
    carried = {".".join(finding.where.split(".")[:3]) for finding in read.findings}
    assert not [where for where in carried if where.split(".")[1] in ("searchSpace", "objective", "limits")]
    assert {where for where in carried if "trial" in where} <= {"properties.trial.environmentId"}  # an id, made short


@pytest.mark.parametrize("case", {**pipeline_cases.ACCEPTED, **other_step_cases.ACCEPTED})
def test_the_body_of_a_pipeline_comes_back_as_it_was(case: str, tmp_path: Path) -> None:
    pipeline_cases.folder(tmp_path)
    other_step_cases.folder(tmp_path)
    file = tmp_path / "pipeline.yml"
    file.write_text(f"type: pipeline\n{({**pipeline_cases.ACCEPTED, **other_step_cases.ACCEPTED})[case]}")
    given = json.loads(json.dumps(jobs.render(planned(file)[0].enriched, jobs.Refs(environment="azureml:e:1"))))
    read = jobs.from_rest(given)
    assert isinstance(read.other, jobs.Pipeline), read.findings
    assert read.body() == given


OTHERS: dict[str, tuple[type, dict[str, Any]]] = {
    "environment": (
        jobs.Environment,
        {"image": "x:1", "condaFile": "dependencies: [a]", "osType": "Linux", "isAnonymous": True, "tags": {"a": "b"}},
    ),
    "build": (jobs.Environment, {"build": {"contextUri": "https://x/y/", "dockerfilePath": "D"}, "description": "d"}),
    "code": (jobs.Code, {"codeUri": "https://x/y", "isAnonymous": False, "properties": {"hash": "1"}}),
    "cluster": (
        jobs.Target,
        {
            "computeType": "AmlCompute",
            "properties": {"vmSize": "S", "scaleSettings": {"maxNodeCount": 3}, "osType": "L"},
        },
    ),
    "cluster-answered": (jobs.Target, {"computeType": "AmlCompute", "provisioningState": "Creating"}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_the_body_of_what_a_job_needs_comes_back_as_it_was(case: str) -> None:
    kind, properties = OTHERS[case]
    given = {"name": "n", "properties": properties}
    read = jobs.from_rest(given)
    assert isinstance(read.other, kind)
    assert read.body() == given


@pytest.mark.parametrize("case", parity_cases.ACCEPTED)
def test_a_body_of_ours_comes_back_as_it_was(case: str, tmp_path: Path) -> None:
    parity_cases.folder(tmp_path)
    path = tmp_path / "job.yml"
    path.write_text(parity_cases.text(parity_cases.ACCEPTED[case]), encoding="utf-8")
    (job,) = jobs.load(path).jobs
    assert isinstance(job, jobs.Job)
    told = json.loads(json.dumps(jobs.body(job, jobs.Refs(environment="azureml:e:1"))))
    read = jobs.from_rest(told)
    assert read.job is not None, read.findings
    assert read.body() == told


def examples() -> list[Path]:
    """Published request examples beside the job files that AMLSTACK_CORPUS names; none without it."""
    folder = os.environ.get("AMLSTACK_CORPUS")
    return sorted((Path(folder).parent / "rest").glob("*.json")) if folder else []


# Asked for by AMLSTACK_CORPUS; without it there is nothing to run, and nothing to skip.
if EXAMPLES := examples():

    @pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.name)
    def test_a_published_example_is_rendered_back_unchanged(file: Path) -> None:
        told = json.loads(file.read_text(encoding="utf-8"))
        sent = told["parameters"]
        answers = [each["body"] for each in told.get("responses", {}).values() if "body" in each]
        for given in (sent.get("body") or sent["parameters"], *answers):
            assert jobs.from_rest(given).body() == given
