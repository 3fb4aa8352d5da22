"""No name in a request leads out of the place that it names: it is refused, and nothing is kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.contract import RefusedError
from amlstack.sandbox.files.storage import Location, Storage, grant
from amlstack.sandbox.protocol import entra, requests
from amlstack.sandbox.protocol.refusals import Refused
from tests.support.sandbox.raw_exchange import raw
from tests.support.sandbox.sandbox_client import ML, ROOT, job

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import Store
    from tests.support.sandbox.manager import Manager
    from tests.support.sandbox.sandbox_client import Arm

WRONG = {
    "..": "..",
    ".. encoded": "%2e%2e",
    "a slash": "a%2F..%2Fb",
    "a backslash": "..%5C..%5Cb",
    "a plain backslash": "a\\b",
    "NUL": "a%00b",
    "a line break": "a%0d%0ab",
    "no UTF-8": "%ff",
}
WORKSPACE = f"{ROOT}/resourceGroups/bad/providers/{ML}/w"
QUERY = "?api-version=2024-03-01"
wrong = pytest.mark.parametrize("word", WRONG.values(), ids=WRONG.keys())


@wrong
@pytest.mark.parametrize(
    "path",
    [
        f"{ROOT}/resourceGroups/@",
        f"{WORKSPACE}/datastores/@",
        f"{WORKSPACE}/codes/@/versions/1",
        f"{WORKSPACE}/jobs/@",
        f"/history/v1.0{WORKSPACE}/runs/@/details",
        "/artifacts/@/user_logs/std_log_process_00.txt",
        "/artifacts/job/user_logs/@",
        "/vault/@/keys/key",
        "/mlflow/v2.0/@",
    ],
)
def test_a_name_in_a_path_is_refused_when_it_leads_elsewhere(arm: Arm, path: str, word: str) -> None:
    method = "PUT" if path.startswith(ROOT) else "GET"
    body = b'{"location": "eastus"}' if method == "PUT" else None

    status, answer, _ = raw(arm, method, path.replace("@", word) + QUERY, body, Content_Type="application/json")

    assert (status, answer["error"]["code"]) == (400, "InvalidUri"), answer


@wrong
@pytest.mark.parametrize("account", ["bad", "bad.dfs.core.windows.net"])
@pytest.mark.parametrize("path", ["@/name", "box/folder/@/name"])
def test_a_blobs_name_is_refused_when_it_leads_elsewhere(arm: Arm, account: str, path: str, word: str) -> None:
    encoded = "..%2F.." if "%2F" in word else word  # a blob's name may hold slashes, so long as it stays

    status, answer, headers = raw(arm, "PUT", f"/blob/{account}/{path.replace('@', encoded)}", b"x")

    assert (status, headers["x-ms-error-code"]) == (400, "InvalidUri"), answer
    if ".dfs." in account:
        assert answer["error"]["code"] == "InvalidUri"
    else:
        assert b"<Code>InvalidUri</Code>" in answer


@pytest.mark.parametrize("name", ["/etc/passwd", "%2Fetc%2Fpasswd"])
def test_an_absolute_name_of_a_blob_is_refused(arm: Arm, name: str) -> None:
    assert raw(arm, "PUT", f"/blob/bad/box/{name}", b"x")[0] == 400


def test_a_file_is_not_renamed_from_a_name_that_leads_elsewhere(arm: Arm) -> None:
    arm.make_workspace("renames")
    token = arm.login(arm.endpoint.token.read_text(), audience="https://storage.azure.com")
    signed = {"Authorization": f"Bearer {token}"}
    assert raw(arm, "PUT", "/blob/renames/box?restype=container", b"", **signed)[0] == 201
    for name in ("/box/%2e%2e/a", "/box/a%5Cb", "/box/a%00b"):
        status, answer, _ = raw(
            arm, "PUT", "/blob/renames.dfs.core.windows.net/box/b", b"", x_ms_rename_source=name, **signed
        )
        assert (status, answer["error"]["code"]) == (400, "InvalidUri")


def test_a_signature_for_one_container_renames_nothing_out_of_another(arm: Arm) -> None:
    arm.make_workspace("renames")
    token = arm.login(arm.endpoint.token.read_text(), audience="https://storage.azure.com")
    signed = {"Authorization": f"Bearer {token}"}
    for container in ("mine", "theirs"):
        assert raw(arm, "PUT", f"/blob/renames/{container}?restype=container", b"", **signed)[0] == 201
    assert raw(arm, "PUT", "/blob/renames/theirs/a", b"1", x_ms_blob_type="BlockBlob", **signed)[0] == 201
    key = (Path(arm.endpoint.token).parent / "key").read_text()

    path = f"/blob/renames.dfs.core.windows.net/mine/b?{grant(key, 'renames', 'mine', 'rcwd')}"
    status, answer, _ = raw(arm, "PUT", path, b"", x_ms_rename_source="/theirs/a", Authorization="")

    assert (status, answer["error"]["code"]) == (403, "AuthorizationPermissionMismatch")
    assert raw(arm, "GET", "/blob/renames/theirs/a", **signed)[0] == 200


@pytest.mark.parametrize("name", ["..", "a/b", "a\\b", "a\0b"])
@pytest.mark.parametrize("key", ["accountName", "containerName"])
def test_a_datastore_leads_to_a_container_and_nowhere_else(manager: Manager, key: str, name: str) -> None:
    place = {"accountName": "account", "containerName": "box", key: name}
    properties = {"datastoreType": "AzureBlob", "credentials": {"credentialsType": "None"}, **place}

    status, error = manager.call("PUT", f"{manager.workspace}/datastores/store", {"properties": properties})

    assert status == 400
    assert f"properties.{key}" in error["message"]
    assert manager.call("GET", f"{manager.workspace}/datastores/store")[0] == 404


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("data", "azureml://datastores/workspaceblobstore/paths/../x"),
        ("data", "azureml://datastores/workspaceblobstore/paths/a/%2e%2e/x"),
        ("data", "azureml://datastores/workspaceblobstore/paths/a\\..\\x"),
        ("data", "azureml://datastores/workspaceblobstore/paths/a%00"),
        ("data", "https://account.blob.core.windows.net/box/../x"),
        ("..", "azureml://datastores/workspaceblobstore/paths/x"),
        ("a/b", "azureml://datastores/workspaceblobstore/paths/x"),
    ],
)
@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_a_jobs_data_and_its_folders_lead_nowhere_else(manager: Manager, kind: str, name: str, uri: str) -> None:
    port = {"jobInputType" if kind == "inputs" else "jobOutputType": "uri_folder", "uri": uri}

    status, error = manager.call("PUT", f"{manager.workspace}/jobs/job", job(None, **{kind: {name: port}}))

    assert status == 400
    assert f"properties.{kind}.{name}" in error["message"]
    assert manager.call("GET", f"{manager.workspace}/jobs/job")[0] == 404


def test_names_that_stay_are_taken_as_they_are() -> None:
    assert requests.addresses_read("/subscriptions/a%20b/x..y/...") == "/subscriptions/a b/x..y/..."
    for name in ("a/b", "a//b", "", "a/", "..a/b..", "größe", "a:b@c"):
        assert requests.check_name(name) == name
    requests.check_uri("/home/me/../data", "here")  # files of this machine are as their user says
    with pytest.raises(Refused):
        requests.check_name("a/../b")


def test_a_location_that_leads_out_of_its_folder_is_not_mounted(store: Store, tmp_path: Path) -> None:
    storage = Storage(store, "")

    with pytest.raises(RefusedError, match="leads out of"):
        storage.mount(Location("account", "box", "../../../../x"))

    assert not any(path.name == "x" for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, "AuthenticationFailed"),
        ({"tenant": "11111111-2222-3333-4444-555555555555"}, "InvalidAuthenticationTokenTenant"),
        ({"seconds": -1}, "ExpiredAuthenticationToken"),
        ({"audience": "https://graph.microsoft.com"}, "InvalidAuthenticationTokenAudience"),
        ({"key": "another"}, "InvalidAuthenticationToken"),
        ({"unsigned": True}, "InvalidAuthenticationToken"),
    ],
    ids=["none", "another tenant's", "expired", "another audience's", "another key's", "unsigned"],
)
def test_what_no_good_token_comes_with_is_refused_and_stores_nothing(arm: Arm, change: Any, code: str) -> None:
    arm.make_workspace("tokens")
    good = {
        "Authorization": f"Bearer {arm.login(arm.endpoint.token.read_text(), audience='https://storage.azure.com')}"
    }
    assert raw(arm, "PUT", "/blob/tokens/box?restype=container", b"", **good)[0] in {201, 409}
    key = (Path(arm.endpoint.token).parent / "key").read_text()
    words = {key: value for key, value in change.items() if key in {"tenant", "seconds"}}
    doors = {
        f"{ROOT}/resourceGroups/nobody{QUERY}": arm.url,
        "/blob/tokens/box/name": "https://storage.azure.com",
        "/blob/tokens.dfs.core.windows.net/box/name?resource=file": "https://storage.azure.com",
    }
    for path, audience in doors.items():
        token = entra.issue(change.get("key", key), change.get("audience", audience), **words)
        if "unsigned" in change:
            token = token.rpartition(".")[0] + "."
        given = {"Authorization": f"Bearer {token}" if change else "", "x_ms_blob_type": "BlockBlob"}
        status, answer, headers = raw(arm, "PUT", path, b'{"location": "eastus"}', **given)
        assert status in {401, 403}, answer
        assert ("x-ms-error-code" in headers) is path.startswith("/blob/")  # the resource manager has none
        if path.startswith(ROOT):
            assert (status, answer["error"]["code"]) == (401, code)
            assert "Bearer authorization_uri=" in headers["WWW-Authenticate"]
    assert arm.get(f"{ROOT}/resourceGroups/nobody").status == 404
    assert raw(arm, "GET", "/blob/tokens/box/name", **good)[0] == 404


def test_xml_with_entities_or_of_no_utf8_is_refused(arm: Arm) -> None:
    arm.make_workspace("entities")
    token = arm.login(arm.endpoint.token.read_text(), audience="https://storage.azure.com")
    signed = {"Authorization": f"Bearer {token}"}
    assert raw(arm, "PUT", "/blob/entities/box?restype=container", b"", **signed)[0] == 201
    bomb = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a [<!ENTITY b "c">]><BlockList>&b;</BlockList>'

    for text in (bomb.encode("utf-16"), bomb.replace("utf-16", "utf-8").encode(), b"\xff", b"<BlockList>", b""):
        status, answer, _ = raw(arm, "PUT", "/blob/entities/box/name?comp=blocklist", text, **signed)
        assert (status, re.findall(rb"<Code>(\w+)</Code>", answer)) == (400, [b"InvalidXmlDocument"])
    assert raw(arm, "GET", "/blob/entities/box/name", **signed)[0] == 404
