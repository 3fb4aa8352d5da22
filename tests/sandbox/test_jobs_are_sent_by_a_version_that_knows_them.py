"""An api-version refuses keys that it does not know; the provider sends a job by one that knows them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider import runs
from amlstack.provider.arm import API_VERSION
from amlstack.sandbox.kinds.machine_learning import jobs, schedules
from amlstack.sandbox.protocol import allowances, typecheck
from amlstack.sandbox.protocol.refusals import Refused
from tests.support.rows import for_each
from tests.support.sandbox.sandbox_client import CURATED, job

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager


def sweep(**more: Any) -> dict[str, Any]:
    trial = {"command": "python train.py", "environmentId": CURATED}
    objective = {"goal": "Maximize", "primaryMetric": "m"}
    properties = {"jobType": "Sweep", "trial": trial, "objective": objective, "searchSpace": {"lr": ["choice", [[1]]]}}
    return {"properties": {**properties, "samplingAlgorithm": {"samplingAlgorithmType": "Grid"}, **more}}


OUTPUT = {"jobOutputType": "uri_folder", "assetName": "a", "assetVersion": "3"}
BEYOND = {
    ("QueueSettingsArgs", "priority"): job("c", queueSettings={"jobTier": "Standard", "priority": 1}),
    ("JobResourceConfigurationArgs", "locations"): job("c", resources={"locations": ["westus"]}),
    ("JobResourceConfigurationArgs", "maxInstanceCount"): job("c", resources={"maxInstanceCount": 4}),
    ("SweepJobArgs", "resources"): sweep(resources={"instanceCount": 2}),
    ("RandomSamplingAlgorithmArgs", "logbase"): sweep(
        samplingAlgorithm={"samplingAlgorithmType": "Random", "logbase": "e"}
    ),
    ("UriFolderJobOutputArgs", "assetVersion"): job("c", outputs={"o": OUTPUT}),
    ("PyTorchArgs", "Ray"): job("c", distribution={"distributionType": "Ray", "port": 6379}),
}
"""A body for each word that the default api-version does not know."""


def test_there_is_a_body_for_each_word_that_only_some_versions_know() -> None:
    rows = {(row.owner, row.name) for row in allowances.PROPERTIES if row.versions is not None}
    rows |= {(row.beside, row.value) for row in allowances.VARIANTS if row.versions is not None}
    others = {row for row in rows if row[1] == "assetVersion"} - {("UriFolderJobOutputArgs", "assetVersion")}
    others |= {row for row in rows if row[1] == "autoDeleteSetting"}  # of data, which no job's body is
    assert rows - others == set(BEYOND)


@for_each("word", BEYOND)
def test_a_word_is_refused_where_it_is_not_known_and_sent_where_it_is(word: tuple[str, str]) -> None:
    body = BEYOND[word]
    with pytest.raises(Refused, match=rf"the api-version '{API_VERSION}'.*These have it: 20\d\d") as caught:
        typecheck.check(jobs.KIND, body, API_VERSION)
    assert (caught.value.status, caught.value.code) == (400, "InvalidRequestContent")
    assert typecheck.check(jobs.KIND, body, runs.version_for(body["properties"])) == body


@for_each("word", BEYOND)
def test_a_schedule_is_sent_by_a_version_that_knows_its_job(word: tuple[str, str]) -> None:
    action = {"actionType": "CreateJob", "jobDefinition": BEYOND[word]["properties"]}
    trigger = {"triggerType": "Cron", "expression": "0 1 * * *"}
    body = {"properties": {"action": action, "trigger": trigger}}
    with pytest.raises(Refused, match="api-version"):
        typecheck.check(schedules.KIND, body, API_VERSION)
    assert typecheck.check(schedules.KIND, body, runs.version_for(body["properties"]))


@pytest.mark.parametrize("body", [job("c"), job("c", resources={"instanceCount": 2}), sweep()])
def test_any_other_job_is_sent_by_the_default(body: dict[str, Any]) -> None:
    assert runs.version_for(body["properties"]) == API_VERSION
    typecheck.check(jobs.KIND, body, API_VERSION)


def test_the_sandbox_names_the_versions_that_would_take_it(manager: Manager) -> None:
    body = BEYOND["QueueSettingsArgs", "priority"]
    status, error = manager.call("PUT", f"{manager.workspace}/jobs/one", body, **{"api-version": "2023-10-01"})
    assert (status, error["target"]) == (400, "properties.queueSettings.priority")
    assert "2025-01-01-preview" in error["message"]
    assert manager.call("GET", f"{manager.workspace}/jobs/one")[0] == 404
