"""Data of this machine in a datastore: the real provider and azure-ai-ml's own upload, both against the sandbox."""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from azure.core.credentials import AccessToken
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import ContainerClient

from amlstack.provider.arm import ArmClient
from tests.support import azure_ai_ml
from tests.support.provider.provider_wire import Wire
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Sandbox

pytestmark = pytest.mark.tools  # azure-ai-ml uploads too

FILES = {"a.csv": b"1,2\n" * 3000, "deep/b.csv": b"1,2\n" * 3000, "deep/c.bin": b"\0" * 10, "skipped.tmp": b"x"}
UPLOADED = {name: content for name, content in FILES.items() if not name.endswith(".tmp")} | {".amlignore": b"*.tmp\n"}


@pytest.fixture
def arm(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ArmClient:
    """In place of the fake of the other tests."""
    for name, value in {**sandbox.environ, "AMLSTACK_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    return ArmClient(sandbox.endpoint.url)


@pytest.fixture
def workspace(sandbox: Sandbox, tmp_path: Path) -> str:
    """A workspace of the test's own, in a sandbox for all of them."""
    name = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:10]
    return Arm(sandbox.endpoint).make_workspace(f"space{name}")


@pytest.fixture
def wire(arm: ArmClient) -> Iterator[Wire]:
    made = Wire()
    yield made
    made.stop()


@pytest.fixture
def container(arm: ArmClient, workspace: str) -> Iterator[ContainerClient]:
    """The container of the workspace's default datastore."""
    properties = arm.get(f"{workspace}/datastores/workspaceblobstore").body["properties"]
    url = f"{arm.endpoint}/blob/{properties['accountName']}/{properties['containerName']}"
    token = AccessToken(arm.token("https://storage.azure.com"), 2**40)
    credential = Mock(spec=["get_token"], get_token=Mock(return_value=token))
    with ContainerClient.from_container_url(url, credential=credential) as client:
        yield client


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for name, content in {**FILES, ".amlignore": b"*.tmp\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of each request that writes: its address, without a signature."""
    found: list[str] = []
    real = RequestsTransport.send

    def send(self: RequestsTransport, request: Any, **options: Any) -> Any:
        if request.method == "PUT" and "/blob/" in request.url:
            found.append(request.url.partition("?")[0])
        return real(self, request, **options)

    monkeypatch.setattr(RequestsTransport, "send", send)
    return found


def by_azure_ai_ml(container: ContainerClient, path: Path) -> str:
    """The address that azure-ai-ml gives an input after it has uploaded it, its storage client on this container."""
    artifacts = azure_ai_ml.module("_artifacts._artifact_utilities")
    storage = azure_ai_ml.module("_artifacts._blob_storage_helper")
    client = storage.BlobStorageClient("", "https://account.blob.core.windows.net", "container")
    client.container_client = container
    scope = Mock(subscription_id="s", resource_group_name="g", workspace_name="w")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(artifacts, "get_datastore_info", lambda *_, **__: {})
        patch.setattr(artifacts, "get_storage_client", lambda *_, **__: client)
        return str(artifacts._upload_and_generate_remote_uri(scope, Mock(), path, show_progress=False))


def stored(container: ContainerClient, uri: str) -> dict[str, bytes]:
    prefix = uri.partition("/paths/")[2]
    return {
        name.removeprefix(f"{prefix}/"): container.download_blob(name).readall()
        for name in container.list_blob_names(name_starts_with=prefix)
    }


def test_both_upload_to_one_place_and_take_what_the_other_uploaded(
    wire: Wire, workspace: str, container: ContainerClient, data: Path, written: list[str]
) -> None:
    ours = wire.data()
    ours.up({"workspace": workspace, "path": str(data)})
    assert stored(container, ours.outputs["uri"]) == UPLOADED
    assert (ours.outputs["files"], ours.outputs["bytes"]) == (4, sum(map(len, UPLOADED.values())))
    assert written
    written.clear()

    assert by_azure_ai_ml(container, data) == ours.outputs["uri"]
    assert written == [], "azure-ai-ml found it complete"

    file = data / "a.csv"
    theirs = by_azure_ai_ml(container, file)
    written.clear()
    taken = wire.data()
    taken.up({"workspace": workspace, "path": str(file)})
    assert (taken.outputs["uri"], written) == (theirs, [])


def test_an_upload_without_its_mark_is_made_again_and_one_that_is_gone_too(
    wire: Wire, workspace: str, container: ContainerClient, data: Path, written: list[str]
) -> None:
    ours = wire.data()
    ours.up({"workspace": workspace, "path": str(data)})
    container.get_blob_client(ours.outputs["indicator"]).set_blob_metadata({})
    written.clear()
    again = wire.data()
    again.up({"workspace": workspace, "path": str(data)})
    assert (again.id, bool(written)) == (ours.id, True)
    again.refresh()
    assert again.id == ours.id

    container.delete_blob(ours.outputs["indicator"])
    again.refresh()
    assert again.id == ""


def test_the_bytes_of_a_content_are_sent_once(
    wire: Wire, workspace: str, container: ContainerClient, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    real = RequestsTransport.send

    def send(self: RequestsTransport, request: Any, **options: Any) -> Any:
        if request.method == "PUT" and "/blob/" in request.url:
            sent.append(int(request.headers.get("Content-Length", 0)))
        return real(self, request, **options)

    monkeypatch.setattr(RequestsTransport, "send", send)
    first = wire.data()
    first.up({"workspace": workspace, "path": str(data)})
    assert len(FILES["a.csv"]) <= sum(sent) < len(FILES["a.csv"]) + 100, "two files of one content"
    sent.clear()
    (data / "new.csv").write_bytes(b"3,4\n")
    second = wire.data()
    second.up({"workspace": workspace, "path": str(data)})
    assert second.id != first.id
    assert stored(container, second.outputs["uri"]) == {**UPLOADED, "new.csv": b"3,4\n"}
    assert sum(sent) < 100


def test_a_datastore_that_is_not_there_is_an_answer(wire: Wire, workspace: str, data: Path) -> None:
    with pytest.raises(Exception, match="the workspace has no datastore elsewhere"):
        wire.data().up({"workspace": workspace, "path": str(data), "datastore": "elsewhere"})
