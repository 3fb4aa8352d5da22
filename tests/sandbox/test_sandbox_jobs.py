"""Job records: taken only when everything they name is there, then fixed but for their labels."""

# ruff: noqa: E501 - one line per row of a table reads best

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.images.environments import Chosen, Declared, OwnStandIn
from amlstack.sandbox.files import environments
from amlstack.sandbox.planes import run_history
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.scale import QUERY, RehearsalScale
from tests.support.sandbox.sandbox_client import CURATED, cluster, job

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager


@pytest.fixture
def gpu(manager: Manager) -> str:
    path = f"{manager.workspace}/computes/gpu"
    manager.call("PUT", path, cluster())
    return path


def put(manager: Manager, name: str, body: dict[str, Any]) -> tuple[int, Any]:
    return manager.call("PUT", f"{manager.workspace}/jobs/{name}", body)


def test_a_taken_job_answers_with_its_status_and_the_services_defaults(manager: Manager, gpu: str) -> None:
    status, answer = put(manager, "one", job(gpu))

    assert status == 201
    properties = answer["properties"]
    assert (properties["status"], properties["experimentName"]) == ("Starting", "Default")
    resources = {key: value for key, value in properties["resources"].items() if value is not None}
    assert resources == {"instanceCount": 1, "shmSize": "2g"}
    assert (properties["displayName"], properties["isArchived"]) == ("one", False)
    assert properties["services"]["Studio"]["jobServiceType"] == "Studio"
    assert manager.store.jobs["one"].body == job(gpu), "what is stored is what was asked, byte for byte"


def test_a_scale_is_kept_beside_the_body(manager: Manager, gpu: str) -> None:
    status, answer = manager.call("PUT", f"{manager.workspace}/jobs/one", job(gpu), **{QUERY: "2x3"})

    assert status == 201
    assert "scale" not in str(answer)
    assert manager.store.jobs["one"].body == job(gpu)
    assert manager.store.scales.of("one") == RehearsalScale(2, 3)
    status, error = manager.call("PUT", f"{manager.workspace}/jobs/two", job(gpu), **{QUERY: "many"})
    assert (status, error["code"]) == (400, "InvalidQueryParameterValue")


SPARK = {"sparkJobEntryType": "SparkJobPythonEntry", "file": "main.py"}
CHANGES = [
    ("command", {"command": "python other.py"}),
    ("experimentName", {"experimentName": "other"}),
    ("environmentVariables", {"environmentVariables": {"A": "1"}}),
    ("distribution", {"distribution": {"distributionType": "PyTorch"}}),
    ("resources", {"resources": {"instanceCount": 2}}),
    ("limits", {"limits": {"jobLimitsType": "Command", "timeout": "PT5M"}}),
    ("environmentId", {"environmentId": CURATED.replace("/1", "/2")}),
]


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_a_job_that_exists_cannot_be_changed(manager: Manager, gpu: str, name: str, change: dict[str, Any]) -> None:
    put(manager, "one", job(gpu))

    status, error = put(manager, "one", job(gpu, **change))

    assert status == 400
    assert error["code"] == "JobPropertyImmutable"
    assert error["message"] == (
        f"Only description, tags, displayName, properties, and isArchived can be updated. Changed: {name}."
    )
    assert manager.store.jobs["one"].body == job(gpu)


def test_a_put_that_writes_the_defaults_out_changes_nothing(manager: Manager, gpu: str) -> None:
    put(manager, "one", job(gpu))

    status, _ = put(manager, "one", job(gpu, experimentName="Default", resources={"instanceCount": 1, "shmSize": "2g"}))

    assert status == 200


def test_labels_can_be_put_and_are_stored_before_they_are_answered(manager: Manager, gpu: str) -> None:
    put(manager, "one", job(gpu, tags={"a": "1"}))

    labels: dict[str, Any] = {"tags": {"b": "2"}, "displayName": "One", "description": "d", "isArchived": True}
    status, answer = put(manager, "one", job(gpu, **labels))

    assert status == 200
    assert {name: answer["properties"][name] for name in labels} == labels
    stored = manager.store.jobs["one"].properties
    assert {name: stored.get(name) for name in labels} == labels


def test_a_job_is_called_after_its_workspace_in_that_ones_letters(manager: Manager, gpu: str) -> None:
    path = manager.workspace.replace("space-1", "SPACE-1") + "/jobs/one"

    assert manager.call("PUT", path, job(gpu))[1]["id"] == f"{manager.workspace}/jobs/one"


def test_a_name_is_letter_for_letter_and_one_per_workspace(manager: Manager, gpu: str) -> None:
    assert put(manager, "one", job(gpu))[0] == 201
    assert put(manager, "ONE", job(gpu))[0] == 201


REFERENCES = [
    ({"computeId": "{W}/computes/gpx"}, "UserError", "'{W}/computes/gpx' was not found in the workspace. Did you mean '{W}/computes/gpu'?"),
    ({"codeId": "{W}/codes/abc/versions/1"}, "UserError", "'{W}/codes/abc/versions/1' was not found in the workspace."),
    ({"environmentId": "{W}/environments/e/versions/1"}, "UserError", "was not found in the workspace."),
    ({"environmentId": "azureml:x:1"}, "InvalidRequestContent", "an environment is an ARM id or"),
    ({"environmentId": "azureml://registries/mine/environments/e/versions/1"}, "SandboxNotEmulated", "the registry 'mine'"),
    ({"resources": {"instanceCount": 3}}, "InvalidNodeCount", "The job asks for 3 nodes, but the compute 'gpu' has at most 2"),
    ({"resources": {"instanceCount": 0}}, "InvalidRequestContent", "0 nodes; at least 1 is needed"),
    ({"computeId": None, "resources": {"instanceType": "Standard_ND40rs"}}, "InvalidVmSize", "or 'Standard_ND40rs_v2'?"),
]  # fmt: skip


@pytest.mark.parametrize("environment", ["azureml:mine@latest", "azureml://registries/mine/environments/e/versions/1"])
def test_an_environment_is_taken_where_its_stand_in_lies_beside_the_body(
    manager: Manager, gpu: str, environment: str
) -> None:
    given = Chosen(Declared(environment), OwnStandIn(("tabulate",)))
    environments.write(manager.store.home, "one", {"": given})
    body = job(gpu)
    body["properties"]["environmentId"] = environment
    assert put(manager, "one", body)[0] == 201
    assert put(manager, "two", body)[0] in (400, 501), "what lies beside another job does not count"
    assert environments.environment_of(manager.store, manager.store.jobs["one"]) == given


RETIRED = "AzureML-sklearn-1.0-ubuntu20.04-py38-cpu"


@pytest.mark.parametrize(
    "environment",
    [
        f"azureml:{RETIRED}@latest",
        "azureml:AzureML-x:1",
        "azureml://registries/azureml/environments/x/versions/1",
        f"{{W}}/environments/{RETIRED}/versions/33",
    ],
)
def test_a_retired_or_unknown_curated_name_is_taken(manager: Manager, gpu: str, environment: str) -> None:
    body = job(gpu, environmentId=environment.replace("{W}", manager.workspace))

    assert put(manager, "one", body)[0] == 201


@pytest.mark.parametrize(("change", "code", "part"), REFERENCES)
def test_everything_a_job_names_must_be_there(
    manager: Manager, gpu: str, change: dict[str, Any], code: str, part: str
) -> None:
    change = {
        key: value.replace("{W}", manager.workspace) if isinstance(value, str) else value
        for key, value in change.items()
    }

    _, error = put(manager, "one", job(gpu, **change))

    assert error["code"] == code
    assert part.replace("{W}", manager.workspace) in error["message"]
    assert manager.store.jobs.list() == ()


def test_a_serverless_job_names_its_size_or_leaves_it_to_the_service(manager: Manager) -> None:
    assert put(manager, "one", job(None, resources={"instanceType": "Standard_ND40rs_v2"}))[0] == 201
    assert put(manager, "two", job(None))[0] == 201


def test_another_type_of_job_is_not_emulated(manager: Manager) -> None:
    status, error = put(manager, "one", {"properties": {"jobType": "Spark", "codeId": "c", "entry": SPARK}})

    assert (status, error["code"]) == (501, "SandboxNotEmulated")


def test_a_cancelled_job_stays_as_it_is(manager: Manager, gpu: str) -> None:
    put(manager, "one", job(gpu))
    path = f"{manager.workspace}/jobs/one"

    assert manager.call("POST", f"{path}/cancel", {})[0] == 202
    assert manager.call("POST", f"{path}/cancel", {})[0] == 200
    assert manager.call("GET", path)[1]["properties"]["status"] == "Canceled"
    assert manager.call("POST", f"{manager.workspace}/jobs/two/cancel", {})[1]["message"] == "Job two not found."


@pytest.mark.parametrize(("nodes", "expected"), [((), "Canceled"), ((0,), "CancelRequested")])
def test_a_cancelled_job_ends_at_once_when_it_has_no_nodes_yet(
    manager: Manager, gpu: str, nodes: tuple[int, ...], expected: str
) -> None:
    manager.context = dataclasses.replace(manager.context, scheduled=True)
    put(manager, "one", job(gpu))
    manager.store.jobs.set_nodes("one", nodes)

    manager.call("POST", f"{manager.workspace}/jobs/one/cancel", {})

    assert manager.store.jobs["one"].status == expected
    assert manager.context.wake.is_set()


def test_a_job_with_a_runner_is_only_asked_to_end(manager: Manager, gpu: str) -> None:
    put(manager, "one", job(gpu))
    manager.store.jobs.set_runner("one", 1, 1)

    manager.call("POST", f"{manager.workspace}/jobs/one/cancel", {})

    row = manager.store.jobs["one"]
    assert (row.status, row.cancel_requested) == ("CancelRequested", True)
    assert manager.context.wake.is_set()


def test_deleting_a_job_is_refused_while_it_runs_and_gone_is_gone(manager: Manager, gpu: str) -> None:
    put(manager, "one", job(gpu))
    path = f"{manager.workspace}/jobs/one"

    status, error = manager.call("DELETE", path)
    assert status == 409
    assert error["code"] == "JobIsActive"
    manager.call("POST", f"{path}/cancel", {})
    assert [manager.call("DELETE", path)[0] for _ in range(2)] == [200, 204]
    assert manager.call("GET", path)[1]["message"] == "Job one not found."


def test_the_list_shows_what_is_not_archived(manager: Manager, gpu: str) -> None:
    put(manager, "one", job(gpu))
    put(manager, "old", job(gpu, isArchived=True))

    views = {
        view: [row["name"] for row in manager.call("GET", f"{manager.workspace}/jobs", listViewType=view)[1]["value"]]
        for view in ("ActiveOnly", "ArchivedOnly", "All")
    }

    assert views == {"ActiveOnly": ["one"], "ArchivedOnly": ["old"], "All": ["one", "old"]}


def patch(manager: Manager, body: Any, experiment: str = "Default") -> Any:
    path = f"/history/v1.0{manager.workspace}/experiments/{experiment}/runs/one"
    return run_history.answer(manager.context, "PATCH", path, body).body


def test_run_history_merges_labels_and_archives(manager: Manager, gpu: str) -> None:
    put(manager, "one", job(gpu, tags={"a": "1", "b": "2"}))

    answer = patch(manager, {"tags": {"b": "3"}, "displayName": "One", "description": "d", "hidden": True})

    assert (answer["tags"], answer["displayName"], answer["hidden"]) == ({"a": "1", "b": "3"}, "One", True)
    properties = manager.call("GET", f"{manager.workspace}/jobs/one")[1]["properties"]
    assert (properties["tags"], properties["isArchived"]) == ({"a": "1", "b": "3"}, True)


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"tag": {}}, "a run has no editable property 'tag'. Did you mean 'tags'?"),
        ({"tags": {"a": 1}}, "'tags.a': expected str, got int"),
        ({"displayName": None}, "'displayName': expected str, got NoneType"),
    ],
)
def test_run_history_takes_labels_only(manager: Manager, gpu: str, body: Any, part: str) -> None:
    put(manager, "one", job(gpu))

    with pytest.raises(Refused) as refused:
        patch(manager, body)

    assert part in refused.value.message


def test_run_history_knows_a_run_by_its_experiment(manager: Manager, gpu: str) -> None:
    put(manager, "one", job(gpu, experimentName="night"))

    assert patch(manager, {}, "night")["runId"] == "one"
    with pytest.raises(Refused) as refused:
        patch(manager, {}, "Default")
    assert refused.value.status == 404


def test_the_logs_of_a_run_have_signed_addresses(manager: Manager, gpu: str) -> None:
    from amlstack.sandbox.store.store import job_folder

    put(manager, "one", job(gpu))
    folder = job_folder(manager.store.home, "one") / "user_logs"
    folder.mkdir(parents=True)
    (folder / "std_log_process_00.txt").write_text("epoch 1")
    path = f"/history/v1.0{manager.workspace}/runs/one/details"

    files = run_history.answer(manager.context, "GET", path, None).body["logFiles"]

    address, _, sig = files["user_logs/std_log_process_00.txt"].partition("?sig=")
    local = address.removeprefix(manager.context.base)
    assert run_history.artifact(manager.context, local, {"sig": sig}).read_text() == "epoch 1"
    with pytest.raises(Refused):
        run_history.artifact(manager.context, local.replace("std_log", "../std_log"), {"sig": sig})
