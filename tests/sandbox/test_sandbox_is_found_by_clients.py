"""Microsoft's clients find the sandbox: the cloud's addresses, the tenant, the whole subscription."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli import sandbox_env
from amlstack.cli.sandbox_env import Tool
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol.addresses import by_name
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.server.daemon import Endpoint
from amlstack.sandbox.service import cloud
from tests.support.rows import for_each
from tests.support.sandbox.sandbox_client import Arm, cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.sandbox.manager import Manager

BASE = "https://127.0.0.1:4711"
ENDPOINTS = "/metadata/endpoints"


def test_the_clouds_addresses_are_one_object_or_a_list_as_the_api_version_has_it() -> None:
    one = cloud.answer(BASE, ENDPOINTS, {"api-version": "2022-09-01"})

    assert cloud.answer(BASE, ENDPOINTS, {"api-version": "2019-05-01"}) == [one]
    assert (one["resourceManager"], one["authentication"]["loginEndpoint"]) == (BASE, BASE)
    # azure-ai-ml makes the audience of Azure ML of what follows the portal's second label.
    assert one["portal"].split(".", 2)[2] == "com/"


def test_no_address_of_the_cloud_leads_to_azure() -> None:
    one = cloud.cloud(BASE)
    del one["portal"], one["suffixes"], one["authentication"]
    assert {value for key, value in one.items() if key != "name" and not value.startswith(BASE)} == set()


def test_the_addresses_are_refused_without_an_api_version() -> None:
    with pytest.raises(Refused, match="api-version"):
        cloud.answer(BASE, ENDPOINTS, {})


@pytest.mark.parametrize("tenant", [entra.TENANT, "common", "organizations"])
def test_a_tenant_says_where_its_tokens_are(tenant: str) -> None:
    found = cloud.answer(BASE, f"/{tenant}/v2.0/.well-known/openid-configuration", {})
    assert found["token_endpoint"] == f"{BASE}/{entra.TENANT}/oauth2/v2.0/token"


def test_a_client_secret_is_as_good_as_the_assertion() -> None:
    form = {"client_id": entra.CLIENT, "scope": f"{BASE}/.default"}
    status, answer = entra.token_answer("key", "word", entra.TENANT, {**form, "client_secret": "word"})
    assert (status, entra.audience_of("key", answer["access_token"])) == (200, BASE)
    status, answer = entra.token_answer("key", "word", entra.TENANT, {**form, "client_secret": "wörd"})
    assert (status, answer["error"]) == (401, "invalid_client")


def test_a_person_signs_in_with_a_name_and_the_token_as_password(manager: Manager) -> None:
    form = {"client_id": entra.CLIENT, "scope": f"{BASE}/.default", "grant_type": "password", "username": "ada"}
    status, answer = entra.token_answer("key", "word", entra.TENANT, {**form, "password": "word"})
    tokens = {"User": answer["access_token"], "Application": entra.issue("key", BASE)}

    def put(who: str, tag: str) -> dict[str, str]:
        entra.check_bearer("key", f"Bearer {tokens[who]}", [BASE])
        body = {"properties": {"image": "mcr.microsoft.com/azureml/x", "tags": {"a": tag}}}
        data = manager.call("PUT", f"{manager.workspace}/environments/e/versions/1", body)[1]["systemData"]
        return {name: value for name, value in data.items() if "By" in name}

    assert (status, put("User", "1")) == (200, {
        "createdBy": "ada", "createdByType": "User", "lastModifiedBy": "ada", "lastModifiedByType": "User",
    })  # fmt: skip
    changed = put("Application", "2")
    assert (changed["createdByType"], changed["lastModifiedByType"]) == ("User", "Application")
    job = {"jobType": "Command", "command": "x", "environmentId": f"{manager.workspace}/environments/e/versions/1"}
    for label in ("first", "second"):
        entra.check_bearer("key", f"Bearer {tokens['User']}", [BASE])
        body = {"properties": {**job, "displayName": label}}
        assert manager.call("PUT", f"{manager.workspace}/jobs/j", body)[1]["systemData"]["createdByType"] == "User"
    entra.check_bearer("key", f"Bearer {tokens['Application']}", [BASE])


def test_a_wrong_password_is_refused() -> None:
    form = {"client_id": entra.CLIENT, "grant_type": "password", "username": "ada", "password": "wörd"}
    status, answer = entra.token_answer("key", "word", entra.TENANT, form)
    assert (status, answer["error"]) == (400, "invalid_grant")


def test_a_subscription_lists_what_lies_in_it(manager: Manager) -> None:
    manager.call("PUT", f"{manager.workspace}/computes/gpu", cluster())
    root = manager.workspace.partition("/resourceGroups/")[0]

    status, answer = manager.call("GET", f"{root}/providers/Microsoft.MachineLearningServices/workspaces")
    assert (status, [each["id"] for each in answer["value"]]) == (200, [manager.workspace])
    assert "properties" in answer["value"][0]

    status, answer = manager.call("GET", f"{root}/resources")
    listed = {each["type"]: each for each in answer["value"]}
    assert (status, "Microsoft.MachineLearningServices/workspaces" in listed) == (200, True)
    assert not [kind for kind, each in listed.items() if "/computes" in kind or "properties" in each]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("resourceType eq 'microsoft.machinelearningservices/WORKSPACES'", 1),
        ("resourceGroup eq 'rg' and resourceType eq 'Microsoft.MachineLearningServices/workspaces'", 1),
        ("name eq 'none'", 0),
    ],
)
def test_all_resources_can_be_filtered(manager: Manager, condition: str, found: int) -> None:
    root = manager.workspace.partition("/resourceGroups/")[0]
    status, answer = manager.call("GET", f"{root}/resources", **{"$filter": condition})
    assert (status, len(answer["value"])) == (200, found)


def test_a_filter_that_is_not_known_is_refused_by_name(manager: Manager) -> None:
    root = manager.workspace.partition("/resourceGroups/")[0]
    status, error = manager.call("GET", f"{root}/resources", **{"$filter": "tagName eq 'x'"})
    assert (status, "tagName eq 'x'" in error["message"]) == (501, True)


def test_a_provider_has_its_types_with_their_api_versions(manager: Manager) -> None:
    root = manager.workspace.partition("/resourceGroups/")[0]
    status, answer = manager.call("GET", f"{root}/providers/microsoft.storage")
    assert (status, answer["registrationState"]) == (200, "Registered")
    accounts = next(each for each in answer["resourceTypes"] if each["resourceType"] == "storageAccounts")
    assert accounts["apiVersions"] == sorted(accounts["apiVersions"], reverse=True)
    status, error = manager.call("GET", f"{root}/providers/Microsoft.Storag")
    assert (status, error["code"]) == (404, "InvalidResourceNamespace")
    assert "Did you mean 'Microsoft.Storage'" in error["message"]


def test_a_provider_is_registered_before_anything_of_it_is_made(manager: Manager) -> None:
    root = manager.workspace.partition("/resourceGroups/")[0]
    provider = f"{root}/providers/Microsoft.ManagedIdentity"
    identity = f"{root}/resourceGroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/own-identity"
    body = {"location": "westeurope"}

    status, answer = manager.call("POST", f"{provider}/unregister")
    assert (status, answer["registrationState"]) == (200, "Unregistering")
    assert manager.call("GET", provider)[1]["registrationState"] == "Unregistered"
    status, error = manager.call("PUT", identity, body)
    assert (status, error["code"]) == (409, "MissingSubscriptionRegistration")
    assert "must be registered to use namespace 'Microsoft.ManagedIdentity'" in error["message"]
    assert error["details"] == [{**error["details"][0], "code": error["code"], "target": "Microsoft.ManagedIdentity"}]

    status, answer = manager.call("POST", f"{provider}/register")
    assert (status, answer["registrationState"]) == (200, "Registering")
    assert manager.call("GET", provider)[1]["registrationState"] == "Registered"
    assert manager.call("PUT", identity, body)[0] == 201
    status, error = manager.call("POST", f"{provider}/unregister")
    assert (status, error["code"]) == (409, "Conflict"), "it has a resource now"
    assert manager.call("POST", f"{root}/providers/Microsoft.Authorization/unregister")[0] == 501


def test_a_name_that_azure_gives_once_is_taken_or_free(manager: Manager) -> None:
    root = manager.workspace.partition("/resourceGroups/")[0]
    path = f"{root}/providers/Microsoft.Storage/checkNameAvailability"
    accounts = f"{root}/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts"
    (taken,) = (row["name"] for row in manager.call("GET", accounts)[1]["value"])

    found = [manager.call("POST", path, {"name": name})[1] for name in ("stfree", taken, "No-Name")]

    assert [each["nameAvailable"] for each in found] == [True, False, False]
    assert [each.get("reason") for each in found] == [None, "AlreadyExists", "AccountNameInvalid"]


def test_subscriptions_and_tenant_are_listed_for_who_has_a_token_alone(arm: Arm) -> None:
    listed = arm.get("/subscriptions").body["value"]
    assert {each["subscriptionId"] for each in listed} == set(entra.SUBSCRIPTIONS)
    assert [each["tenantId"] for each in arm.get("/tenants").body["value"]] == [entra.TENANT]
    arm.token = ""
    assert arm.get("/subscriptions").error[0] == 401


def endpoint(folder: Path) -> Endpoint:
    words = {name: name for name in ("tenant", "client", "subscription", "cloud")}
    files = {name: folder / "it's" / name for name in ("ca", "bundle", "token")}
    return Endpoint(home=folder, url=BASE, pid=1, started=1, **files, **words)


@for_each("tool", [tool for tool in Tool if tool not in (Tool.SHELL, Tool.NOTEBOOK)])
def test_the_lines_for_a_shell_set_what_they_print(tool: Tool, tmp_path: Path) -> None:
    lines = [each for each in sandbox_env.lines(endpoint(tmp_path), tool) if each.startswith("export ")]
    printed = subprocess.run(["sh", "-c", "\n".join([*lines, "env -0"])], capture_output=True, text=True, check=True)
    environ = dict(each.split("=", 1) for each in printed.stdout.split("\0") if each)
    assert environ["AZURE_FEDERATED_TOKEN_FILE"] == str(tmp_path / "it's" / "token")
    address = by_name(BASE) if tool is Tool.STATE else BASE
    assert environ["ARM_CLOUD_METADATA_URL"].startswith(f"{address}{ENDPOINTS}?")


def test_a_notebook_gets_python(tmp_path: Path) -> None:
    (first, *rest) = sandbox_env.lines(endpoint(tmp_path), Tool.NOTEBOOK)
    environ: dict[str, Any] = {}
    exec("\n".join(rest), {"os": type("os", (), {"environ": environ})})
    assert (first, environ["AZURE_AUTHORITY_HOST"]) == ("import os", BASE)
