"""Requests of MLflow's client to the tracking service while a job runs, and their results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox import contract
from amlstack.sandbox.planes.mlflow import app
from amlstack.sandbox.store.store import job_folder

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager
    from tests.support.sandbox.sandbox_client import Arm


def call(manager: Manager, method: str, what: str, /, **fields: Any) -> tuple[int, Any]:
    path = f"/mlflow/v1.0{manager.workspace}/api/2.0/mlflow/{what}"
    reply = app.answer(manager.context, method, path, fields if method == "GET" else {}, fields)
    return reply.status, reply.body


@pytest.fixture
def run(manager: Manager) -> str:
    properties = {"jobType": "Command", "experimentName": "exp", "tags": {"team": "a"}}
    return manager.store.jobs.add(manager.workspace, "run", {"properties": properties}).id


def test_metrics_are_kept_in_order_and_a_trials_wake_the_scheduler(manager: Manager, run: str) -> None:
    assert call(manager, "POST", "runs/log-metric", run_id=run, key="loss", value=0.5, step=1, timestamp=5000)[0] == 200
    assert not manager.context.wake.is_set()
    manager.store.family.add(run, "sweep", "0")
    batch = [{"key": "loss", "value": 0.25, "step": 2}, {"key": "odd", "value": "NaN"}]
    assert call(manager, "POST", "runs/log-batch", run_id=run, metrics=batch)[0] == 200
    assert manager.context.wake.is_set()

    assert manager.store.metrics.values(run, "loss") == (0.5, 0.25)
    first = manager.store.metrics.of(run, "loss")[0]
    assert (first.step, first.at) == (1, 5.0)
    assert math.isnan(manager.store.metrics.of(run, "odd")[0].value)
    assert manager.store.metrics.values(run, "odd") == ()
    history = call(manager, "GET", "metrics/get-history", run_id=run, metric_key="loss")[1]["metrics"]
    assert [each["value"] for each in history] == [0.5, 0.25]


def test_a_run_shows_what_was_logged_and_keeps_its_own_status(manager: Manager, run: str) -> None:
    call(manager, "POST", "runs/log-batch", run_id=run, params=[{"key": "lr", "value": "0.1"}])
    call(manager, "POST", "runs/log-parameter", run_id=run, key="layers", value=2)
    call(manager, "POST", "runs/set-tag", run_id=run, key="note", value="b")
    call(manager, "POST", "runs/set-tag", run_id=run, key="mlflow.user", value="me")
    call(manager, "POST", "runs/update", run_id=run, status="FINISHED")

    fields = call(manager, "GET", "runs/get", run_id=run)[1]["run"]

    assert (fields["info"]["status"], fields["info"]["run_id"]) == ("RUNNING", "run")
    assert manager.store.jobs[run].properties["properties"]["mlflow.status"] == "FINISHED"
    assert {each["key"]: each["value"] for each in fields["data"]["params"]} == {"lr": "0.1", "layers": "2"}
    assert {each["key"]: each["value"] for each in fields["data"]["tags"]} == {"team": "a", "note": "b"}
    manager.store.jobs.move(run, "Completed")
    assert call(manager, "GET", "runs/get", run_id=run)[1]["run"]["info"]["status"] == "FINISHED"


def test_a_run_has_the_experiment_that_its_processes_are_given(manager: Manager, run: str) -> None:
    variables = contract.tracking_variables(manager.store, manager.store.jobs[run], "exp")
    fields = call(manager, "GET", "runs/get", run_id=run)[1]["run"]
    assert fields["info"]["experiment_id"] == variables["AZUREML_EXPERIMENT_ID"]
    by_name = call(manager, "GET", "experiments/get-by-name", experiment_name="exp")[1]["experiment"]
    assert by_name["experiment_id"] == variables["AZUREML_EXPERIMENT_ID"]
    by_id = call(manager, "GET", "experiments/get", experiment_id=by_name["experiment_id"])[1]["experiment"]
    assert by_id == by_name


def test_a_run_shows_the_data_that_it_read_once_each(manager: Manager, run: str) -> None:
    iris = {"dataset": {"name": "iris", "digest": "1", "source_type": "local", "source": "{}"}}
    for _ in range(2):
        assert call(manager, "POST", "runs/log-inputs", run_id=run, datasets=[iris])[0] == 200
    assert call(manager, "GET", "runs/get", run_id=run)[1]["run"]["inputs"] == {"dataset_inputs": [iris]}


def test_what_a_run_logs_as_files_lies_beside_its_outputs(manager: Manager, run: str) -> None:
    fields = call(manager, "GET", "runs/get", run_id=run)[1]["run"]
    assert fields["info"]["artifact_uri"] == (job_folder(manager.store.home, run) / "artifacts").as_uri()


REFUSED: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("GET", "runs/get", {"run_id": "none"}, 404, "RESOURCE_DOES_NOT_EXIST"),
    ("POST", "runs/log-metric", {"run_id": "run", "key": "loss", "value": "much"}, 400, "INVALID_PARAMETER_VALUE"),
    ("POST", "runs/log-metric", {"run_id": "run"}, 400, "INVALID_PARAMETER_VALUE"),
    ("POST", "runs/log-inputs", {"run_id": "run", "datasets": [{"dataset": {}}]}, 400, "INVALID_PARAMETER_VALUE"),
    ("POST", "traces", {}, 501, "NOT_IMPLEMENTED"),
    ("POST", "registered-models/alias", {"name": "m"}, 501, "NOT_IMPLEMENTED"),
    ("POST", "runs/set-tag", {"run_id": "run", "value": "no key"}, 400, "INVALID_PARAMETER_VALUE"),
    ("POST", "runs/delete-tag", {"run_id": "run", "key": "none"}, 404, "RESOURCE_DOES_NOT_EXIST"),
    ("POST", "runs/log-model", {"run_id": "run", "model_json": "no json"}, 400, "INVALID_PARAMETER_VALUE"),
    ("POST", "runs/create", {"tags": [{"key": "mlflow.parentRunId", "value": "none"}]}, 404, "RESOURCE_DOES_NOT_EXIST"),
    ("POST", "experiments/create", {"name": "exp"}, 400, "RESOURCE_ALREADY_EXISTS"),
    ("POST", "registered-models/create", {"name": "a b"}, 400, "INVALID_PARAMETER_VALUE"),
    ("POST", "model-versions/create", {"name": "none", "source": "file:///m"}, 404, "RESOURCE_DOES_NOT_EXIST"),
    ("GET", "artifacts/list", {"run_id": "run", "path": "../.."}, 400, "INVALID_PARAMETER_VALUE"),
]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row[1]}-{row[4]}")
def test_a_refusal_has_mlflows_shape(
    manager: Manager, run: str, row: tuple[str, str, dict[str, Any], int, str]
) -> None:
    method, name, fields, status, code = row
    seen, body = call(manager, method, name, **fields)
    assert (seen, body["error_code"]) == (status, code)
    assert manager.store.metrics.of(run) == ()


def test_a_jobs_own_token_is_accepted_at_the_tracking_uri(arm: Arm) -> None:
    workspace = arm.make_workspace("tracked")
    path = f"/mlflow/v1.0{workspace}/api/2.0/mlflow/runs/get"

    assert arm.get(path, run_id="none").body["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    arm.token = "none"
    assert arm.get(path, run_id="none").status == 401
