"""The body of a run that is submitted again: what the service wrote is left out, and what is set is there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from amlstack.cli.workspace.job_search import job_of_body
from amlstack.cli.workspace.submission import NoSettingError, body_of
from tests.support.rows import for_each

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
DECLARED: dict[str, Any] = {
    "jobType": "Command",
    "command": "python train.py --lr ${{inputs.lr}}",
    "computeId": f"{WORKSPACE}/computes/gpu",
    "environmentId": "azureml://registries/azureml/environments/acpt/versions/1",
    "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 8},
    "resources": {"instanceCount": 2, "shmSize": "64g"},
    "inputs": {
        "lr": {"jobInputType": "literal", "value": "0.1"},
        "data": {"jobInputType": "uri_folder", "uri": "azureml://datastores/d/paths/p/", "mode": "Download"},
    },
    "outputs": {"model": {"jobOutputType": "uri_folder"}},
    "services": {"board": {"jobServiceType": "TensorBoard"}},
    "tags": {"team": "a"},
}


def a_run() -> Any:
    written = {
        "status": "Completed",
        "displayName": "brave_ant_1",
        "isArchived": False,
        "properties": {"amlstack.owner": "train/dev"},
        "parameters": {},
        "services": {**DECLARED["services"], "Tracking": {}, "Studio": {}},
        "outputs": {**DECLARED["outputs"], "default": {"uri": "azureml://datastores/a/ExperimentRun/dcid.fit-1"}},
        "tags": {"team": "a", "amlstack.keptFor": "x"},
    }
    return job_of_body(WORKSPACE, {"name": "fit-1", "properties": {**DECLARED, **written}})


def test_without_changes_it_is_what_was_declared() -> None:
    assert body_of(a_run(), []) == {"properties": DECLARED}


SET: dict[str, dict[str, Any]] = {
    "inputs.lr=0.2": {"inputs": {**DECLARED["inputs"], "lr": {"jobInputType": "literal", "value": "0.2"}}},
    "inputs.data=azureml:mnist:1": {
        "inputs": {**DECLARED["inputs"], "data": {**DECLARED["inputs"]["data"], "uri": "azureml:mnist:1"}}
    },
    "environment_variables.A=b=c": {"environmentVariables": {"A": "b=c"}},
    "tags.why=more": {"tags": {"team": "a", "why": "more"}},
    "instance_count=4": {"resources": {"instanceCount": 4, "shmSize": "64g"}},
    "resources.instance_count=4": {"resources": {"instanceCount": 4, "shmSize": "64g"}},
    "timeout=3600": {"limits": {"jobLimitsType": "Command", "timeout": "PT3600S"}},
    "compute=other": {"computeId": f"{WORKSPACE}/computes/other"},
    "display_name=mine": {"displayName": "mine"},
}


@for_each("change", SET)
def test_a_setting_is_changed_and_nothing_else(change: str) -> None:
    assert body_of(a_run(), [change]) == {"properties": DECLARED | SET[change]}


@for_each(
    "change, says",
    [
        ("inputs.rl=1", "no input `rl`. There are `lr`, `data`."),
        ("instance_cuont=1", "Did you mean `instance_count`?"),
        ("instance_count=0", "a whole number of nodes, got `0`"),
        ("timeout=soon", "a whole number of seconds"),
        ("command=ls", "There are `compute`, "),
        ("inputs.lr", "is no NAME=VALUE"),
    ],
)
def test_what_cannot_be_set_is_said(change: str, says: str) -> None:
    with pytest.raises(NoSettingError, match=re.escape(says)):
        body_of(a_run(), [change])
