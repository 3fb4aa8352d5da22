"""Components, environments, data, models and datastores answer as Azure was recorded to answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from amlstack.sandbox.service import cloud
from tests.support.sandbox.sandbox_client import cluster, workspace_bodies

if TYPE_CHECKING:
    from tests.support.running import Sandbox
    from tests.support.sandbox.manager import Manager
    from tests.support.sandbox.sandbox_client import Arm

RETIRED = "AzureML-sklearn-1.0-ubuntu20.04-py38-cpu"
COMMAND: dict[str, Any] = {
    "_source": "YAML.COMPONENT",
    "name": "train",
    "type": "command",
    "command": "echo ${{inputs.rate}}",
    "environment": f"azureml:{RETIRED}:33",
    "is_deterministic": True,
    "display_name": "Train",
    "distribution": {"type": "mpi", "process_count_per_instance": 2},
    "compute": "azureml:cpu",
    "resources": {"instance_type": "Standard_D3_v2"},
    "inputs": {
        "rate": {"type": "number", "default": "0.1"},
        "data": {"type": "uri_folder", "optional": True, "mode": "ro_mount"},
    },
    "outputs": {"done": {"type": "boolean", "is_control": True, "early_available": True}},
}
COMPLETED: dict[str, Any] = {
    "name": "train",
    "version": "7",
    "type": "command",
    "command": "echo ${{inputs.rate}}",
    "environment": f"azureml://registries/azureml/environments/{RETIRED}/versions/33",
    "is_deterministic": "True",
    "display_name": "Train",
    "distribution": {"type": "Mpi", "process_count_per_instance": "2"},
    "inputs": {
        "rate": {"type": "number", "default": "0.1", "optional": "False"},
        "data": {"type": "uri_folder", "optional": "True"},
    },
    "outputs": {"done": {"type": "boolean", "is_control": "True", "early_available": "True"}},
    "resources": {"instance_count": "1"},
}


def put_component(manager: Manager, spec: dict[str, Any], name: str = "train", version: str = "7") -> tuple[int, Any]:
    path = f"{manager.workspace}/components/{name}/versions/{version}"
    return manager.call("PUT", path, {"properties": {"componentSpec": spec, "description": "outer"}})


def test_a_specification_comes_back_completed(manager: Manager) -> None:
    status, made = put_component(manager, COMMAND)

    assert status == 201
    assert made["properties"]["componentSpec"] == COMPLETED
    assert made["properties"] | {"componentSpec": None} == {
        "autoDeleteSetting": None,
        "componentSpec": None,
        "description": None,
        "isAnonymous": False,
        "isArchived": False,
        "properties": {},
        "provisioningState": "Succeeded",
        "stage": "Development",
        "tags": {},
    }


def test_the_completed_specification_may_be_put_back(manager: Manager) -> None:
    _, made = put_component(manager, COMMAND)

    assert put_component(manager, made["properties"]["componentSpec"])[0] == 200


def test_a_parallel_components_resources_and_a_pipelines_steps_are_not_shown(manager: Manager) -> None:
    task = {"type": "run_function", "entry_script": "a.py", "environment": f"azureml:{RETIRED}@latest"}
    parallel = {"type": "parallel", "task": task, "resources": {"instance_count": 2}, "error_threshold": 10}
    put_component(manager, COMMAND)
    steps = {"one": {"type": "command", "componentId": f"{manager.workspace}/components/train/labels/default"}}
    whole = {"type": "pipeline", "jobs": steps, "inputs": {"node": {"type": "string", "default": "azureml:cpu"}}}

    shown = put_component(manager, parallel, "score")[1]["properties"]["componentSpec"]
    outer = put_component(manager, whole, "whole")[1]["properties"]["componentSpec"]

    environment = f"azureml://registries/azureml/environments/{RETIRED}/versions/1"
    assert shown == {
        "type": "parallel",
        "version": "7",
        "error_threshold": "10",
        "logging_level": "INFO",
        "retry_settings": {"max_retries": "3", "timeout": "60"},
        "task": {**task, "environment": environment},
    }
    inputs = {"node": {"type": "string", "optional": "False", "default": "cpu"}}
    assert outer == {"type": "pipeline", "version": "7", "is_deterministic": "False", "inputs": inputs}


def test_labels_of_a_component_change_and_nothing_else(manager: Manager) -> None:
    put_component(manager, COMMAND)
    labels = {"display_name": "Other", "description": "new", "tags": {"a": "b"}}

    labelled, answer = put_component(manager, {**COMMAND, **labels})
    refused, error = put_component(manager, {**COMMAND, "command": "true"})

    assert (labelled, refused, error["code"]) == (200, 400, "UserError")
    assert answer["properties"]["componentSpec"] == {**COMPLETED, **labels}
    assert error["message"] == (
        'Failed to update component train since field "command" is immutable, try specifying a new version.'
    )


def test_steps_of_a_pipeline_component_cannot_change(manager: Manager) -> None:
    put_component(manager, COMMAND)
    step = {"type": "command", "componentId": f"{manager.workspace}/components/train/versions/7"}
    spec = {"type": "pipeline", "jobs": {"one": step}}
    put_component(manager, spec, "whole")

    status, error = put_component(manager, {**spec, "jobs": {"two": step}}, "whole")

    assert put_component(manager, spec, "whole")[0] == 200
    assert status == 400
    assert 'since field "jobs" is immutable' in error["message"]


def test_the_service_names_the_versions_of_anonymous_components(manager: Manager) -> None:
    names = []
    other = {**COMMAND["inputs"], "data": {"type": "uri_folder", "mode": "download"}}
    for spec in (COMMAND, COMMAND, {**COMMAND, "name": "other"}, {**COMMAND, "inputs": other}):
        status, made = put_component(manager, spec, "azureml_anonymous", "f00d")
        names.append(made["name"])
        assert status == 201
        assert made["id"].endswith(f"/components/azureml_anonymous/versions/{made['name']}")
        assert manager.call("GET", made["id"])[0] == 200

    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert "f00d" not in names


def test_the_default_version_is_answered_under_its_label(manager: Manager) -> None:
    put_component(manager, {**COMMAND, "outputs": {}})
    component = f"{manager.workspace}/components/train"
    manager.call("PUT", f"{manager.workspace}/computes/gpu", cluster())
    step = {"type": "command", "componentId": f"{component}/versions/azureml_default"}
    pipeline = {"jobType": "Pipeline", "jobs": {"one": step}}
    pipeline["settings"] = {"default_compute": f"{manager.workspace}/computes/gpu"}

    _, shown = manager.call("GET", f"{component}/versions/azureml_default")

    assert (shown["id"], shown["name"]) == (f"{component}/labels/default", "7")
    assert manager.call("PUT", f"{manager.workspace}/jobs/p", {"properties": pipeline})[0] == 201


def test_a_pipeline_that_is_made_of_a_job_has_the_jobs_steps_and_ports(manager: Manager) -> None:
    put_component(manager, {**COMMAND, "outputs": {}})
    manager.call("PUT", f"{manager.workspace}/computes/gpu", cluster())
    steps = {"one": {"type": "command", "componentId": f"{manager.workspace}/components/train/versions/7"}}
    job: dict[str, Any] = {
        "jobType": "Pipeline",
        "jobs": steps,
        "settings": {"default_compute": f"{manager.workspace}/computes/gpu"},
        "inputs": {
            "data": {"jobInputType": "uri_folder", "uri": "azureml://datastores/workspaceblobstore/paths/d/"},
            "rate": {"jobInputType": "literal", "value": "0.1"},
            "word": {"jobInputType": "literal", "value": "x"},
        },
        "outputs": {"best": {"jobOutputType": "uri_folder"}},
    }
    assert manager.call("PUT", f"{manager.workspace}/jobs/p", {"properties": job})[0] == 201
    spec = {"type": "pipeline", "jobs": {}, "sourceJobId": f"{manager.workspace}/jobs/p"}

    made, shown = put_component(manager, dict(spec), "whole")
    again = put_component(manager, dict(spec), "whole")
    unknown = put_component(manager, {**spec, "sourceJobId": f"{manager.workspace}/jobs/q"}, "other")

    assert (made, again[0], unknown[0]) == (201, 200, 400)
    assert "was not found in the workspace" in unknown[1]["message"]
    assert shown["properties"]["componentSpec"] == {
        "type": "pipeline",
        "version": "7",
        "is_deterministic": "False",
        "inputs": {
            "data": {"type": "path", "optional": "False"},
            "rate": {"type": "number", "default": "0.1", "optional": "False"},
            "word": {"type": "string", "default": "x", "optional": "False"},
        },
        "outputs": {"best": {"type": "uri_folder"}},
    }
    given = {"data": {"job_input_type": "uri_folder", "uri": job["inputs"]["data"]["uri"]}}
    step = {"type": "pipeline", "componentId": f"{manager.workspace}/components/whole/versions/7", "inputs": given}
    outer = {"jobType": "Pipeline", "jobs": {"all": step}, "settings": job["settings"]}
    assert manager.call("PUT", f"{manager.workspace}/jobs/outer", {"properties": outer})[0] == 201


def test_outputs_of_a_command_component_have_small_letters(manager: Manager) -> None:
    spec = {**COMMAND, "inputs": {"Rate": {"type": "number"}}, "outputs": {"Best": {"type": "uri_folder"}}}
    shown = put_component(manager, {**spec, "command": "echo"})[1]["properties"]["componentSpec"]
    assert ([*shown["inputs"]], [*shown["outputs"]]) == (["Rate"], ["best"])


@pytest.mark.parametrize(("version", "later"), [("2022-05-01", False), ("2024-10-01", True)])
def test_a_curated_environment_in_a_workspace_is_answered_as_its_own(
    manager: Manager, version: str, *, later: bool
) -> None:
    path = f"{manager.workspace}/environments/{RETIRED}/versions/1"
    reply = cloud.answer_of_a_registry(manager.context, "GET", path, version)
    assert reply is not None
    assert reply.body["id"] == path
    assert reply.body["type"] == "Microsoft.MachineLearningServices/workspaces/environments/versions"
    assert reply.body["systemData"]["createdByType"] == "User"
    assert ("stage" in reply.body["properties"], "autoRebuild" in reply.body["properties"]) == (later, later)


def test_no_data_version_is_anonymous(manager: Manager) -> None:
    data = {
        "dataType": "uri_folder",
        "dataUri": "azureml://datastores/workspaceblobstore/paths/d/",
        "isAnonymous": True,
    }
    path = f"{manager.workspace}/data/d/versions/1"
    assert manager.call("PUT", path, {"properties": data})[1]["properties"]["isAnonymous"] is False


def test_the_next_version_of_a_component_is_a_time(manager: Manager) -> None:
    put_component(manager, COMMAND)

    properties = manager.call("GET", f"{manager.workspace}/components/train")[1]["properties"]

    assert properties["latestVersion"] is None
    assert [len(part) for part in properties["nextVersion"].split("-")] == [4, 2, 2, 2, 2, 2, 7]


CONDA = "channels:\n- conda-forge\ndependencies:\n- python=3.10\n- pip:\n  - numpy\nname: e\n"


def test_an_environment_answers_its_conda_file_as_json(manager: Manager) -> None:
    path = f"{manager.workspace}/environments/e/versions"
    first = {"properties": {"image": "mcr/x:1", "condaFile": CONDA}}
    _, made = manager.call("PUT", f"{path}/1", first)
    manager.call("PUT", f"{path}/2", {"properties": {"image": "mcr/x:1"}})

    back = manager.call("PUT", f"{path}/1", {"properties": made["properties"]})
    _, listed = manager.call("GET", path)
    newest, older = (row["properties"] for row in listed["value"])

    assert made["properties"]["condaFile"] == json.dumps(
        {"channels": ["conda-forge"], "dependencies": ["python=3.10", {"pip": ["numpy"]}], "name": "e"}, indent=2
    )
    assert back[0] == 201, "an environment is made anew by every PUT"
    assert (newest["condaFile"], newest["stage"], newest["properties"]) == ("", "Development", LATEST)
    assert older["properties"] == {"azureml.labels": ""}
    assert manager.call("GET", f"{manager.workspace}/environments/e")[1]["properties"]["description"] == ""


LATEST = {"azureml.labels": "latest"}


def test_an_anonymous_environment_is_logged_and_never_the_latest(manager: Manager) -> None:
    path = f"{manager.workspace}/environments/CliV2AnonymousEnvironment"
    body = {"properties": {"image": "mcr/x:1", "isAnonymous": True}}

    _, made = manager.call("PUT", f"{path}/versions/f00d", body)

    assert (made["properties"]["stage"], made["properties"]["properties"]) == ("Logged", {"azureml.labels": ""})
    assert manager.call("PUT", f"{path}/versions/f00d", {"properties": made["properties"]})[0] == 201
    container = manager.call("GET", path)[1]["properties"]
    assert (container["latestVersion"], container["nextVersion"]) == ("0", "1")


@pytest.mark.parametrize(
    "lost", ["https://127.0.0.1:1/blob/{container}/src/", "https://127.0.0.1:1/blob/space1.blob.x.y/{container}/src/"]
)
def test_the_address_of_a_build_keeps_its_account(manager: Manager, lost: str) -> None:
    _, store = manager.call("GET", f"{manager.workspace}/datastores/workspaceblobstore")
    container = store["properties"]["containerName"]
    body = {"properties": {"build": {"contextUri": lost.replace("{container}", container)}}}

    _, made = manager.call("PUT", f"{manager.workspace}/environments/e/versions/1", body)

    assert made["properties"]["build"]["contextUri"] == f"https://space1.blob.core.windows.net/{container}/src/"


@pytest.mark.parametrize(("kind", "end"), [("uri_folder", "/"), ("mltable", "/"), ("uri_file", "")])
def test_the_address_of_data_has_its_workspace(manager: Manager, kind: str, end: str) -> None:
    path = f"{manager.workspace}/data/d/versions/1"
    body = {"properties": {"dataType": kind, "dataUri": "azureml://datastores/workspaceblobstore/paths/d"}}
    _, made = manager.call("PUT", path, body)

    subscription, group, workspace = (manager.workspace.split("/")[place] for place in (2, 4, 8))
    place = f"subscriptions/{subscription}/resourcegroups/{group}/workspaces/{workspace}"
    assert made["properties"]["dataUri"] == f"azureml://{place}/datastores/workspaceblobstore/paths/d{end}"
    assert manager.call("PUT", path, {"properties": made["properties"]})[0] == 200
    assert manager.call("PUT", path, body)[0] == 200, "the short address is the same place"


@pytest.mark.parametrize("place", ["", "subscriptions/S/resourcegroups/g/workspaces/w/"])
def test_the_address_of_a_model_has_its_workspace(manager: Manager, place: str) -> None:
    body = {"properties": {"modelUri": f"azureml://{place}datastores/workspaceblobstore/paths/m"}}

    _, made = manager.call("PUT", f"{manager.workspace}/models/m/versions/1", body)

    assert "/resourceGroups/" in made["properties"]["modelUri"]
    assert made["properties"]["modelUri"].endswith("/datastores/workspaceblobstore/paths/m")


def test_the_version_of_an_anonymous_component_is_that_of_its_id(manager: Manager) -> None:
    _, made = put_component(manager, {**COMMAND, "version": "f00d"}, "azureml_anonymous", "f00d")

    assert made["properties"]["componentSpec"]["version"] == made["name"]


def test_versions_of_a_model_that_is_not_there_are_not_found(manager: Manager) -> None:
    status, error = manager.call("GET", f"{manager.workspace}/models/none/versions")

    assert (status, error["code"], error["message"]) == (404, "UserError", "The specified resource was not found.")


def test_data_deletes_itself_in_a_managed_datastore_alone(manager: Manager) -> None:
    properties = {"dataType": "uri_folder", "dataUri": "azureml://datastores/workspaceblobstore/paths/d"}
    body = {"properties": {**properties, "autoDeleteSetting": {"condition": "createdGreaterThan", "value": "30d"}}}
    path = f"{manager.workspace}/data/d/versions/1"

    status, error = manager.call("PUT", path, body, **{"api-version": "2023-04-01-preview"})

    assert (status, error["message"]) == (400, "AutoDeleteSetting is only supported for assets in managed datastore.")


def test_datastores_are_listed_newest_first(manager: Manager) -> None:
    _, listed = manager.call("GET", f"{manager.workspace}/datastores")

    own = ["workspaceworkingdirectory", "workspacefilestore", "workspaceartifactstore", "workspaceblobstore"]
    assert sorted(row["name"] for row in listed["value"]) == sorted(own)
    created = [row["systemData"]["createdAt"] for row in listed["value"]]
    assert created == sorted(created, reverse=True)


def test_a_datastore_hands_out_a_signature_or_its_key(arm: Arm) -> None:
    store = f"{arm.make_workspace('keyed', keys=True)}/datastores/workspaceblobstore"
    properties = arm.get(store).body["properties"]

    signature = arm.call("POST", f"{store}/listSecrets", {"expirableSecret": True, "expireAfterHours": 1}).body
    key = arm.call("POST", f"{store}/listSecrets", {}).body

    assert properties["credentials"] == {"credentialsType": "AccountKey"}
    assert (properties["resourceGroup"], properties["serviceDataAccessAuthIdentity"]) == (
        "keyed",
        "WorkspaceSystemAssignedIdentity",
    )
    assert signature["secretsType"] == "Sas"
    assert signature["sasToken"].startswith("?sv=")
    assert signature["sasToken"].endswith("&srt=co&ss=bf&sp=rcuwdl")
    assert key["secretsType"] == "AccountKey"


def test_a_datastore_without_credentials_has_no_secrets(arm: Arm) -> None:
    store = f"{arm.make_workspace('keyless')}/datastores/workspaceblobstore"

    answer = arm.call("POST", f"{store}/listSecrets", {"expirableSecret": True})

    assert arm.get(store).body["properties"]["credentials"] == {"credentialsType": "None"}
    assert answer.error == (400, "UserError", "No secrets for credentials of type None.")


@pytest.mark.parametrize("secret", ["signature", "key"])
def test_a_datastores_secret_opens_its_account(
    sandbox: Sandbox, arm: Arm, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)
    workspace = arm.make_workspace(f"opened{secret}", keys=True)
    store = f"{workspace}/datastores/workspaceblobstore"
    account = f"opened{secret}"
    given = arm.call("POST", f"{store}/listSecrets", {"expirableSecret": secret == "signature"}).body
    credential = given["sasToken"] if secret == "signature" else {"account_name": account, "account_key": given["key"]}

    with BlobServiceClient(f"{arm.url}/blob/{account}", credential=credential) as service:
        container = service.create_container("box")
        container.upload_blob("deep/er/ü file?.bin", b"x" * 9, metadata={"a": "b"})
        assert [blob.name for blob in container.list_blobs(name_starts_with="deep/")] == ["deep/er/ü file?.bin"]
        assert container.download_blob("deep/er/ü file?.bin", offset=1, length=3).readall() == b"xxx"


def test_another_key_opens_no_account(sandbox: Sandbox, arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)
    arm.make_workspace("locked", keys=True)
    credential = {"account_name": "locked", "account_key": "c2VjcmV0"}

    with (
        BlobServiceClient(f"{arm.url}/blob/locked", credential=credential) as service,
        pytest.raises(HttpResponseError) as caught,
    ):
        service.get_blob_client("box", "a").upload_blob(b"1")

    assert caught.value.status_code == 403
    assert "AuthenticationFailed" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "word"),
    [("linux", "Linux"), ("LINUX", "Linux"), ("windows", "Windows")],
)
def test_words_are_taken_in_any_case_and_answered_in_the_services(manager: Manager, given: str, word: str) -> None:
    body = {"properties": {"image": "mcr/x:1", "osType": given}}

    _, made = manager.call("PUT", f"{manager.workspace}/environments/e/versions/1", body)

    assert made["properties"]["osType"] == word


def test_words_of_identities_may_have_other_spaces_and_cases(manager: Manager) -> None:
    path, body = workspace_bodies(manager.workspace.split("/providers/")[0], "space-1")[-1]
    body["identity"] = {"type": "systemassigned"}

    status, made = manager.call("PUT", manager.workspace.split("/providers/")[0] + path, body)

    assert (status, made["identity"]["type"]) == (200, "SystemAssigned")
