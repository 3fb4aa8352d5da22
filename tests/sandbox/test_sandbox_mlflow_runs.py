"""Requests of autologging, loggers of frameworks and ``mlflow.register_model`` beyond a job's own metrics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox import contract
from amlstack.sandbox.planes.mlflow import app
from amlstack.sandbox.planes.mlflow.runs import matches
from amlstack.sandbox.store.store import job_folder
from tests.support.rows import for_each

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager


def call(manager: Manager, method: str, what: str, /, **fields: Any) -> Any:
    """The answer's body; anything but success fails the test."""
    path = f"/mlflow/v1.0{manager.workspace}/api/2.0/mlflow/{what}"
    reply = app.answer(manager.context, method, path, fields if method == "GET" else {}, fields)
    assert reply.status == 200, reply.body
    return reply.body


def job(manager: Manager, name: str = "job", experiment: str = "exp") -> str:
    properties = {"jobType": "Command", "experimentName": experiment}
    return manager.store.jobs.add(manager.workspace, name, {"properties": properties}).id


def nested(manager: Manager, parent: str, name: str = "fold 1", **more: Any) -> str:
    """As ``mlflow.start_run(nested=True)`` asks for it."""
    tags = [{"key": "mlflow.parentRunId", "value": parent}, {"key": "mlflow.user", "value": "root"}]
    fields = {"experiment_id": "whatever", "start_time": 5000, "run_name": name, "tags": tags, **more}
    return str(call(manager, "POST", "runs/create", **fields)["run"]["info"]["run_id"])


def pairs(listed: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["key"]: each["value"] for each in listed}


def test_a_nested_run_is_logged_to_and_ended_apart_from_its_job(manager: Manager) -> None:
    job(manager)
    run = nested(manager, "job")
    values = [{"key": "acc", "value": value, "timestamp": 6000, "step": step} for step, value in enumerate((0.5, 0.75))]
    call(manager, "POST", "runs/log-batch", run_id=run, metrics=values, params=[{"key": "fold", "value": "1"}], tags=[])
    call(manager, "POST", "runs/set-tag", run_id=run, key="mlflow.note", value="n")
    call(manager, "POST", "runs/set-tag", run_id=run, key="wrong", value="n")
    call(manager, "POST", "runs/delete-tag", run_id=run, key="wrong")
    updated = call(manager, "POST", "runs/update", run_id=run, status="FINISHED", end_time=9000)["run_info"]

    fields = call(manager, "GET", "runs/get", run_id=run)["run"]

    assert fields["info"] == updated
    assert (updated["status"], updated["start_time"], updated["end_time"]) == ("FINISHED", 5000, 9000)
    assert (updated["run_name"], updated["experiment_id"]) == (
        "fold 1",
        contract.experiment_id(manager.workspace, "exp"),
    )
    assert pairs(fields["data"]["params"]) == {"fold": "1"}
    assert pairs(fields["data"]["metrics"]) == {"acc": 0.75}
    tags = pairs(fields["data"]["tags"])
    assert (tags["mlflow.parentRunId"], tags["mlflow.note"], tags["mlflow.runName"]) == ("job", "n", "fold 1")
    assert "wrong" not in tags
    history = call(manager, "GET", "metrics/get-history", run_id=run, metric_key="acc", max_results="1")
    assert ([each["value"] for each in history["metrics"]], history["next_page_token"]) == ([0.5], "1")
    above = call(manager, "GET", "runs/get", run_id="job")["run"]
    assert (above["info"]["status"], above["data"]["metrics"]) == ("RUNNING", [])


def test_a_run_within_a_nested_run_belongs_to_the_job_and_goes_with_it(manager: Manager) -> None:
    key = job(manager)
    inner = nested(manager, nested(manager, "job"), "inner")
    fields = call(manager, "GET", "runs/get", run_id=inner)["run"]
    folder = job_folder(manager.store.home, key)
    assert fields["info"]["artifact_uri"] == (folder / "runs" / inner / "artifacts").as_uri()
    call(manager, "POST", "runs/log-metric", run_id=inner, key="loss", value=1)

    manager.store.jobs.move(key, "Failed")
    assert call(manager, "GET", "runs/get", run_id=inner)["run"]["info"]["status"] == "FAILED"

    assert manager.call("DELETE", f"{manager.workspace}/jobs/job")[0] == 200
    assert manager.store.resources.of_type("mlflow/runs") == ()
    assert manager.store.database.all("SELECT * FROM metrics") == []


def test_a_logger_makes_its_experiment_and_a_run_of_its_own(manager: Manager) -> None:
    identity = call(manager, "POST", "experiments/create", name="lightning_logs")["experiment_id"]
    assert call(manager, "GET", "experiments/get", experiment_id=identity)["experiment"]["name"] == "lightning_logs"
    run = call(manager, "POST", "runs/create", experiment_id=identity, tags=[])["run"]["info"]
    assert (run["experiment_id"], run["status"], run["lifecycle_stage"]) == (identity, "RUNNING", "active")
    names = [each["name"] for each in call(manager, "POST", "experiments/search", max_results=10)["experiments"]]
    assert names == ["lightning_logs"]


def test_runs_are_found_by_what_they_logged(manager: Manager) -> None:
    job(manager)
    runs = [nested(manager, "job", f"run {number}", start_time=1000 * number) for number in (1, 2, 3)]
    for number, run in enumerate(runs, 1):
        call(manager, "POST", "runs/log-metric", run_id=run, key="val/loss", value=number / 10)
        call(manager, "POST", "runs/log-parameter", run_id=run, key="lr", value=str(number))
    call(manager, "POST", "runs/delete", run_id=runs[2])

    def found(**fields: Any) -> list[str]:
        answer = call(manager, "POST", "runs/search", experiment_ids=[experiment], **fields)
        return [run["info"]["run_name"] for run in answer["runs"]]

    experiment = contract.experiment_id(manager.workspace, "exp")
    below = "tags.mlflow.parentRunId = 'job'"
    assert found(filter=below) == ["run 2", "run 1"]
    assert found(filter=f"{below} and metrics.`val/loss` < 0.15") == ["run 1"]
    assert found(filter=below, order_by=["metrics.`val/loss` ASC"]) == ["run 1", "run 2"]
    assert found(filter="params.lr IN ('2', '3')") == ["run 2"]
    assert found(filter=below, max_results=1) == ["run 2"]
    assert found(filter=below, run_view_type="DELETED_ONLY") == ["run 3"]
    call(manager, "POST", "runs/restore", run_id=runs[2])
    assert found(filter="attributes.run_name LIKE 'run %'") == ["run 3", "run 2", "run 1"]


def test_a_models_files_are_noted_with_the_run_and_listed(manager: Manager) -> None:
    key = job(manager)
    for path in ("model", "second"):
        call(manager, "POST", "runs/log-model", run_id="job", model_json=json.dumps({"artifact_path": path}))
    tags = pairs(call(manager, "GET", "runs/get", run_id="job")["run"]["data"]["tags"])
    assert [each["artifact_path"] for each in json.loads(tags["mlflow.log-model.history"])] == ["model", "second"]
    folder = job_folder(manager.store.home, key) / "artifacts" / "model"
    folder.mkdir(parents=True)
    (folder / "MLmodel").write_text("flavors\n")
    assert call(manager, "GET", "artifacts/list", run_id="job")["files"] == [{"path": "model", "is_dir": True}]
    assert call(manager, "GET", "artifacts/list", run_id="job", path="model")["files"] == [
        {"path": "model/MLmodel", "is_dir": False, "file_size": 8}
    ]


def test_a_registered_model_is_the_workspaces_model(manager: Manager) -> None:
    job(manager)
    call(manager, "POST", "registered-models/create", name="net", tags=[{"key": "team", "value": "a"}])
    for number in ("1", "2"):
        source = f"file:///artifacts/model{number}"
        made = call(manager, "POST", "model-versions/create", name="net", source=source, run_id="job")["model_version"]
        assert (made["name"], made["version"], made["status"], made["run_id"]) == ("net", number, "READY", "job")
    asked = {"name": "net", "version": "2"}
    assert call(manager, "GET", "model-versions/get", **asked)["model_version"]["source"] == "file:///artifacts/model2"
    assert call(manager, "GET", "model-versions/get-download-uri", **asked) == {
        "artifact_uri": "file:///artifacts/model2"
    }
    moved = call(manager, "POST", "model-versions/transition-stage", **asked, stage="Production")["model_version"]
    assert moved["current_stage"] == "Production"
    newest = call(manager, "POST", "registered-models/get-latest-versions", name="net")["model_versions"]
    assert {each["current_stage"]: each["version"] for each in newest} == {"None": "1", "Production": "2"}
    of_job = call(manager, "GET", "model-versions/search", filter="run_id = 'job' and name = 'net'")["model_versions"]
    assert [each["version"] for each in of_job] == ["1", "2"]
    no_prompt = "tag.`mlflow.prompt.is_prompt` != 'true'"
    listed = call(manager, "GET", "registered-models/search", filter=no_prompt)["registered_models"]
    assert [each["name"] for each in listed] == ["net"]

    status, listed = manager.call("GET", f"{manager.workspace}/models/net/versions")
    assert status == 200
    assert [each["properties"]["modelUri"] for each in reversed(listed["value"])] == [
        "file:///artifacts/model1",
        "file:///artifacts/model2",
    ]
    body = {"properties": {"modelUri": "azureml://jobs/job/outputs/artifacts/model", "modelType": "mlflow_model"}}
    assert manager.call("PUT", f"{manager.workspace}/models/net/versions/3", body)[0] == 201
    assert call(manager, "GET", "model-versions/get", name="net", version="3")["model_version"]["status"] == "READY"


FACTS: dict[str, dict[str, Any]] = {
    "attributes": {"status": "FINISHED", "start_time": 5},
    "tags": {"a.b": "x"},
    "params": {"lr": "0.1"},
    "metrics": {"loss": 0.5},
}


@for_each(
    "text, expected",
    [
        ("", True),
        ("status = 'FINISHED'", True),
        ("attribute.start_time >= 5 AND metrics.loss != 0.4", True),
        ("tags.a.b = 'x' and params.lr = \"0.1\"", True),
        ("tags.\"a.b\" ILIKE 'X%'", True),
        ("tags.`a.b` LIKE 'X%'", False),
        ("metrics.none < 1", False),
        ("tags.none != 'x'", False),
        ("status NOT IN ('FAILED', 'KILLED')", True),
        ("params.lr = '0.1' and metrics.loss > 0.5", False),
    ],
)
def test_a_filter_is_read(text: str, *, expected: bool) -> None:
    assert matches(text, FACTS) is expected


@pytest.mark.parametrize("text", ["loss", "metrics.loss <", "status = 'A' or status = 'B'", "nobody = 'x'"])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(app.MlflowRefused):
        matches(text, FACTS)


def test_a_logged_model_is_made_filled_and_finished_among_its_runs_files(manager: Manager) -> None:
    key = job(manager)
    made = call(
        manager,
        "POST",
        "logged-models",
        experiment_id="1",
        name="./model",
        source_run_id="job",
        params=[{"key": "lr", "value": "0.1"}],
        tags=[{"key": "kind", "value": "cnn"}, {"key": "wrong", "value": "1"}],
    )["model"]
    name, artifacts = (
        made["info"]["model_id"],
        job_folder(manager.store.home, key) / "artifacts",
    )
    assert (made["info"]["status"], made["info"]["artifact_uri"]) == (
        "LOGGED_MODEL_PENDING",
        (artifacts / "model").as_uri(),
    )
    call(manager, "POST", f"logged-models/{name}/params", params=[{"key": "epochs", "value": "2"}])
    call(manager, "PATCH", f"logged-models/{name}/tags", tags=[{"key": "kind", "value": "vit"}])
    call(manager, "DELETE", f"logged-models/{name}/tags/wrong")
    call(manager, "POST", "runs/outputs", run_id="job", models=[{"model_id": name, "step": 0}])
    call(manager, "PATCH", f"logged-models/{name}", status="LOGGED_MODEL_READY")
    model = call(manager, "GET", f"logged-models/{name}")["model"]
    assert model["info"]["status"] == "LOGGED_MODEL_READY"
    assert (pairs(model["data"]["params"]), pairs(model["info"]["tags"])) == (
        {"lr": "0.1", "epochs": "2"},
        {"kind": "vit"},
    )
    assert call(manager, "POST", "logged-models/search", experiment_ids=["1"])["models"] == [model]
    (artifacts / "model").mkdir(parents=True)
    again = call(manager, "POST", "logged-models", experiment_id="1", name="model", source_run_id="job")["model"]
    assert again["info"]["artifact_uri"].startswith((artifacts / "model").as_uri() + "/m-")
    # A client that has begun no run names none.
    experiment = call(manager, "GET", "runs/get", run_id="job")["run"]["info"]["experiment_id"]
    alone = call(manager, "POST", "logged-models", experiment_id=experiment, name="alone")["model"]
    assert alone["info"]["artifact_uri"] == (artifacts / "alone").as_uri()
    other = call(manager, "POST", "logged-models", experiment_id="other", name="alone")["model"]
    assert other["info"]["artifact_uri"] == (manager.store.home / "sandbox/models/alone").as_uri()
    call(manager, "DELETE", f"logged-models/{name}")
    path = f"/mlflow/v1.0{manager.workspace}/api/2.0/mlflow/logged-models/{name}"
    assert app.answer(manager.context, "GET", path, {}, {}).status == 404
