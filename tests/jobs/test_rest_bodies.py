"""A command job's REST body is read into a job and rendered back unchanged, whatever no field has a place for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import parity_cases
import pytest

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


@pytest.mark.parametrize("kind", ["Sweep", "Pipeline", None])
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
    return sorted((Path(folder).parent / "rest").glob("Job__CommandJob__*.json")) if folder else []


# Asked for by AMLSTACK_CORPUS; without it there is nothing to run, and nothing to skip.
if EXAMPLES := examples():

    @pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.name)
    def test_a_published_example_is_rendered_back_unchanged(file: Path) -> None:
        told = json.loads(file.read_text(encoding="utf-8"))
        for given in (told["parameters"]["body"], told["responses"]["200"]["body"]):
            assert jobs.from_rest(given).body() == given
