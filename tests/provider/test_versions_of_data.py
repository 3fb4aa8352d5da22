"""A version of a data asset against the sandbox: registered, adopted, labelled, refused, kept; azure-ai-ml sees it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider.arm import ArmClient
from tests.support.provider.provider_wire import Refused, Resource, Wire
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Sandbox

BODY: dict[str, Any] = {
    "dataType": "uri_folder",
    "dataUri": "azureml://datastores/workspaceblobstore/paths/raw",
    "tags": {"a": "b"},
}


def answered(workspace: str) -> str:
    """The address of the data as Azure answers it: with its workspace, and with a slash behind a folder."""
    _, subscription, _, group, *_, name = workspace.removeprefix("/").split("/")
    place = f"subscriptions/{subscription}/resourcegroups/{group}/workspaces/{name}"
    return str(BODY["dataUri"]).replace("azureml://", f"azureml://{place}/") + "/"


@pytest.fixture
def arm(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> ArmClient:
    """In place of the fake of the other tests."""
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)
    return ArmClient(sandbox.endpoint.url)


@pytest.fixture
def workspace(sandbox: Sandbox, tmp_path: Path) -> str:
    """A workspace of the test's own, in a sandbox for all of them."""
    name = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:10]
    return Arm(sandbox.endpoint).make_workspace(f"space{name}")


@pytest.fixture
def data(arm: ArmClient) -> Iterator[Resource]:
    wire = Wire()
    yield Resource(wire, "amlstack:data:Version", "raw")
    wire.stop()


def test_a_version_is_registered_labelled_and_kept(arm: ArmClient, workspace: str, data: Resource) -> None:
    def inputs(**more: Any) -> dict[str, Any]:
        return {"workspace": workspace, "name": "raw", "version": "1", "body": {**BODY, **more}}

    def there() -> dict[str, Any]:
        properties: dict[str, Any] = arm.get(data_id).body["properties"]
        return properties

    data_id = f"{workspace}/data/raw/versions/1"
    data.up(inputs())
    assert (data.id, there()["dataUri"]) == (data_id, answered(workspace))
    data.up(inputs(tags={"c": "d"}, description="Words."))
    assert (there()["tags"], there()["description"]) == ({"c": "d"}, "Words.")
    data.up(inputs(tags={"c": "d"}))
    assert there()["description"] == ""
    data.refresh()
    assert data.id == data_id

    with pytest.raises(Refused, match=r"raw:1 is registered with dataUri .* Write another `version`"):
        data.up(inputs(dataUri="azureml://datastores/workspaceblobstore/paths/other"))
    with pytest.raises(Refused, match="dataType"):
        data.up(inputs(dataType="uri_file"))
    data.remove()
    assert there()["dataUri"] == answered(workspace)


@pytest.mark.parametrize("long", [False, True])
def test_a_version_that_says_the_same_is_adopted_and_restored(
    arm: ArmClient, workspace: str, data: Resource, *, long: bool
) -> None:
    data_id = f"{workspace}/data/raw/versions/1"
    place = workspace.removeprefix("/").replace("resourceGroups", "resourcegroups")
    place = place.replace("/providers/Microsoft.MachineLearningServices", "")
    uri = BODY["dataUri"].replace("azureml://", f"azureml://{place}/") if long else BODY["dataUri"]
    theirs = {"dataType": "uri_folder", "dataUri": uri, "isArchived": True}
    arm.put(data_id, {"properties": theirs})
    inputs = {"workspace": workspace, "name": "raw", "version": "1", "body": BODY}
    data.up(inputs)
    properties = arm.get(data_id).body["properties"]
    assert (data.id, properties["isArchived"], properties["tags"]) == (data_id, False, {"a": "b"})
    assert properties["dataUri"] == answered(workspace)


def test_a_version_that_says_something_else_is_refused(arm: ArmClient, workspace: str, data: Resource) -> None:
    data_id = f"{workspace}/data/raw/versions/1"
    arm.put(data_id, {"properties": {**BODY, "dataUri": "https://example.org/raw/"}})
    with pytest.raises(Refused, match="a registered version never changes"):
        data.up({"workspace": workspace, "name": "raw", "version": "1", "body": BODY})
    assert arm.get(data_id).body["properties"]["dataUri"] == "https://example.org/raw/"
