"""Code and environments: uploads by a SAS, versions that never change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, ContainerClient

from amlstack.sandbox.contract import RefusedError
from amlstack.sandbox.files import storage
from amlstack.sandbox.store.store import Store
from tests.support.sandbox.refusals import status_and_code

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.running import Sandbox
    from tests.support.sandbox.manager import Manager
    from tests.support.sandbox.sandbox_client import Arm

FILES = {"train.py": b"print(1)", "deep/er/ü file?.bin": os.urandom(70_000), "empty": b""}


@pytest.fixture
def trusted(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Microsoft's clients trust the sandbox, as they do under its variables."""
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)


def pending(arm: Arm, workspace: str, name: str) -> dict[str, Any]:
    answer = arm.call("POST", f"{workspace}/codes/{name}/versions/1/startPendingUpload", {})
    assert answer.status == 200
    return dict(answer.body["blobReferenceForConsumption"])


def upload(reference: dict[str, Any], **options: Any) -> str:
    with ContainerClient.from_container_url(reference["credential"]["sasUri"], **options) as container:
        for name, data in FILES.items():
            container.upload_blob(f"src/{name}", data, metadata={"from": "test"})
        found = {blob.name: blob.size for blob in container.list_blobs()}
        assert found == {f"src/{name}": len(data) for name, data in FILES.items()}
        for name, data in FILES.items():
            assert container.download_blob(f"src/{name}").readall() == data
    return f"{reference['blobUri']}/src"


@pytest.mark.parametrize(
    "options", [{}, {"max_single_put_size": 1000, "max_block_size": 16_000, "max_single_get_size": 9_999}]
)
@pytest.mark.usefixtures("trusted")
def test_azures_own_client_uploads_code_that_becomes_a_version(
    sandbox: Sandbox, arm: Arm, tmp_path: Path, options: dict[str, Any]
) -> None:
    workspace = arm.make_workspace(f"code-{len(options)}")
    uri = upload(pending(arm, workspace, "abc"), **options)
    body = {"properties": {"codeUri": uri, "properties": {"hash_sha256": "cafe"}}}

    made = arm.put(f"{workspace}/codes/abc/versions/1", body)

    assert made.status == 201
    shown = arm.get(f"{workspace}/codes/abc/versions/1").body["properties"]["codeUri"]
    account, _, rest = uri.partition("/blob/")[2].partition("/")
    assert shown == f"https://{account}.blob.core.windows.net:443/{rest}", "as azure-ai-ml downloads it"
    other = arm.get(f"{workspace}/codes/never-seen/versions", hash="cafe", hashVersion="202208").body["value"]
    assert [row["id"] for row in other] == [f"{workspace}/codes/abc/versions/1"], "the hash is looked up in all names"
    assert arm.get(f"{workspace}/codes/never-seen/versions", hash="babe").body == {"value": []}
    store = Store(sandbox.home)
    code = storage.Storage(store, workspace)
    for form, address in {"here": uri, "Azure": shown}.items():
        code.fetch(code.locate(address, "The code"), tmp_path / form, "The code")
    store.close()
    for form in ("here", "Azure"):
        assert (tmp_path / form / "deep/er/ü file?.bin").read_bytes() == FILES["deep/er/ü file?.bin"]


@pytest.mark.usefixtures("trusted")
def test_a_missing_blob_has_azures_error_code(arm: Arm) -> None:
    reference = pending(arm, arm.make_workspace("missing"), "abc")
    with ContainerClient.from_container_url(reference["credential"]["sasUri"]) as container:
        assert container.get_blob_client("nope").exists() is False
        with pytest.raises(HttpResponseError) as caught:
            container.download_blob("nope")

    assert status_and_code(caught.value) == (404, "BlobNotFound")


@pytest.mark.usefixtures("trusted")
def test_a_second_upload_of_the_same_name_meets_the_first(arm: Arm) -> None:
    reference = pending(arm, arm.make_workspace("twice"), "abc")
    with ContainerClient.from_container_url(reference["credential"]["sasUri"]) as container:
        container.upload_blob("a", b"1")
        with pytest.raises(HttpResponseError) as caught:
            container.upload_blob("a", b"2")
        container.upload_blob("a", b"3", overwrite=True)
        container.get_blob_client("a").set_blob_metadata({"done": "yes"})

        assert status_and_code(caught.value) == (409, "BlobAlreadyExists")
        assert container.get_blob_client("a").get_blob_properties().metadata == {"done": "yes"}
        assert container.download_blob("a").readall() == b"3"


@pytest.mark.parametrize(
    ("case", "status", "error"),
    [
        ("expired", 403, "AuthenticationFailed"),
        ("forged", 403, "AuthenticationFailed"),
        ("other container", 403, "AuthenticationFailed"),
        ("read only", 403, "AuthorizationPermissionMismatch"),
        ("nothing", 401, "NoAuthenticationInformation"),
        ("shared key", 403, "KeyBasedAuthenticationNotPermitted"),
    ],
)
@pytest.mark.usefixtures("trusted")
def test_who_may_not_write_is_refused_with_the_services_words(arm: Arm, case: str, status: int, error: str) -> None:
    arm.make_workspace("refused")
    key = (arm.endpoint.token.parent / "key").read_text()
    credentials: dict[str, Callable[[], Any]] = {
        "expired": lambda: storage.grant(key, "refused", "box", "racwl", hours=-1),
        "forged": lambda: storage.grant("another key", "refused", "box", "racwl"),
        "other container": lambda: storage.grant(key, "refused", "chest", "racwl"),
        "read only": lambda: storage.grant(key, "refused", "box", "rl"),
        "nothing": lambda: None,
        "shared key": lambda: {"account_name": "refused", "account_key": "c2VjcmV0"},
    }

    with (
        BlobServiceClient(f"{arm.url}/blob/refused", credential=credentials[case]()) as service,
        pytest.raises(HttpResponseError) as caught,
    ):
        service.get_blob_client("box", "a").upload_blob(b"1")

    assert status_and_code(caught.value) == (status, error)


def test_bytes_that_changed_on_the_way_are_refused(arm: Arm) -> None:
    import urllib.request

    reference = pending(arm, arm.make_workspace("digest"), "abc")
    address, _, query = reference["credential"]["sasUri"].partition("?")
    headers = {"x-ms-blob-type": "BlockBlob", "Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}

    answer = arm.send(urllib.request.Request(f"{address}/a?{query}", b"not empty", headers, method="PUT"))

    assert (answer.status, answer.headers["x-ms-error-code"]) == (400, "Md5Mismatch")


def put_blob(manager: Manager, container: str, name: str) -> None:
    file = manager.store.blobs.fresh()
    file.write_bytes(b"x")
    manager.store.blobs.put("space1", container, name, file)


CODE_URIS = [
    ("https://127.0.0.1:1/blob/space1/box/src", 201, ""),
    ("https://127.0.0.1:2/blob/space1/box/src/", 201, ""),
    ("https://space1.blob.core.windows.net/box/src", 201, ""),
    ("https://127.0.0.1:1/blob/space1/box/src/a.py", 400, "is a file; a code asset is a folder"),
    ("https://127.0.0.1:1/blob/space1/box/sr", 400, "there are no files at"),
    ("https://127.0.0.1:1/blob/other/box/src", 400, "is no https blob folder of the workspace's storage account"),
    ("http://127.0.0.1:1/blob/space1/box/src", 400, "is no https blob folder"),
    (None, 400, "the required property is missing"),
]


@pytest.mark.parametrize(("uri", "status", "part"), CODE_URIS)
def test_a_code_version_is_a_folder_that_holds_something(
    manager: Manager, uri: str | None, status: int, part: str
) -> None:
    put_blob(manager, "box", "src/a.py")

    seen, answer = manager.call("PUT", f"{manager.workspace}/codes/abc/versions/1", {"properties": {"codeUri": uri}})

    assert seen == status, answer
    assert part in answer.get("message", "")


def test_versions_never_change_but_their_labels_do(manager: Manager) -> None:
    path = f"{manager.workspace}/environments/acpt/versions/1"
    body = {"properties": {"image": "mcr/x:1", "condaFile": "a: b"}}
    assert manager.call("PUT", path, body)[0] == 201

    again, _ = manager.call("PUT", path, body)
    labelled, answer = manager.call("PUT", path, {"properties": {**body["properties"], "tags": {"team": "a"}}})
    changed, error = manager.call("PUT", path, {"properties": {"image": "mcr/x:2", "condaFile": "a: b"}})

    assert (again, labelled, answer["properties"]["tags"]) == (201, 201, {"team": "a"})
    assert changed == 409
    assert error["message"] == "The specified environment acpt:1 is already registered and cannot be changed."
    assert manager.call("GET", path)[1]["properties"]["image"] == "mcr/x:1"


def test_an_environment_needs_something_to_run_in(manager: Manager) -> None:
    _, error = manager.call("PUT", f"{manager.workspace}/environments/e/versions/1", {"properties": {"condaFile": "x"}})

    assert "either 'image' or 'build'" in error["message"]


ASSETS: dict[str, dict[str, Any]] = {
    "environments": {"image": "mcr/x:1"},
    "components": {"componentSpec": {"type": "command", "name": "e", "command": "true", "environment": "azureml:e:1"}},
    "models": {"modelUri": "azureml://datastores/workspaceblobstore/paths/m"},
}


def versions(manager: Manager, word: str, *names: str) -> str:
    """Registers versions of one asset in this order; the container's id."""
    for name in names:
        status, answer = manager.call(
            "PUT", f"{manager.workspace}/{word}/e/versions/{name}", {"properties": dict(ASSETS[word])}
        )
        assert status == 201, answer
    return f"{manager.workspace}/{word}/e"


def listed(manager: Manager, path: str, **query: str) -> list[str]:
    status, answer = manager.call("GET", path, **query)
    assert status == 200, answer
    return [row["name"] for row in answer["value"]]


@pytest.mark.parametrize("word", ASSETS)
def test_the_newest_version_is_found_by_its_time(manager: Manager, word: str) -> None:
    asset = versions(manager, word, "7", "3", "5")

    assert listed(manager, f"{asset}/versions", **{"$orderBy": "createdtime desc", "$top": "1"}) == ["5"]
    assert listed(manager, f"{asset}/versions", **{"$top": "2"}) == ["5", "3"]


@pytest.mark.parametrize("word", ["environments", "models"])
def test_a_container_counts_its_versions(manager: Manager, word: str) -> None:
    asset = versions(manager, word, "10", "9", "dev")
    properties = manager.call("GET", asset)[1]["properties"]
    assert (properties["latestVersion"], properties["nextVersion"]) == ("dev", "11")

    back = dict(properties.items())
    status, answer = manager.call("PUT", asset, {"properties": {**back, "description": "mine"}})
    assert (status, answer["properties"]["description"]) == (200, "mine"), "what a GET gave may come back"
    stored = manager.store.resources.get(asset)
    assert stored is not None
    assert not {"latestVersion", "nextVersion"} & set(stored.body["properties"])


@pytest.mark.parametrize("word", ASSETS)
def test_archived_assets_leave_the_lists(manager: Manager, word: str) -> None:
    asset = versions(manager, word, "1", "2")
    version = f"{asset}/versions/2"
    body = {"properties": {**ASSETS[word], "isArchived": True}}
    assert manager.call("PUT", version, body)[0] in {200, 201}
    assert listed(manager, f"{asset}/versions") == ["1"]
    assert listed(manager, f"{asset}/versions", **{"$orderBy": "createdtime desc", "$top": "1"}) == ["1"]
    assert listed(manager, f"{asset}/versions", listViewType="ArchivedOnly") == ["2"]
    assert listed(manager, f"{asset}/versions", listViewType="All") == ["2", "1"]
    assert manager.call("GET", version)[0] == 200, "what is archived can still be used"

    manager.call("PUT", asset, {"properties": {"isArchived": True}})
    assert listed(manager, f"{manager.workspace}/{word}") == []
    assert listed(manager, f"{asset}/versions") == []
    assert listed(manager, f"{manager.workspace}/{word}", listViewType="All") == ["e"]
    manager.call("PUT", asset, {"properties": {"isArchived": False}})
    assert listed(manager, f"{manager.workspace}/{word}") == ["e"]
    assert listed(manager, f"{asset}/versions") == ["1"]


def test_what_a_crash_cut_off_is_swept_and_blobs_stay(store: Store) -> None:
    whole, half = store.blobs.fresh(), store.blobs.fresh()
    whole.write_bytes(b"x")
    half.write_bytes(b"y")
    blob = store.blobs.put("a", "c", "n", whole)

    assert store.blobs.sweep() == 1
    assert blob.path.read_bytes() == b"x"
    assert not half.exists()


def test_a_blob_name_that_climbs_out_of_its_folder_is_refused(store: Store, tmp_path: Path) -> None:
    file = store.blobs.fresh()
    file.write_bytes(b"x")
    store.blobs.put("a", "c", "src/../../../evil", file)

    with pytest.raises(RefusedError, match="leads out of its folder"):
        storage.Storage(store, "/w").fetch(storage.Location("a", "c", "src"), tmp_path / "target", "The code")
