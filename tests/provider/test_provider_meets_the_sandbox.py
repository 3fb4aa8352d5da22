"""Provider and sandbox, written apart from each other, over the wire that both take Azure's to be."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from azure.core.credentials import AccessToken
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import ContainerClient

from amlstack.provider.arm import ArmClient
from tests.support.provider.provider_wire import Log, Wire, job_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Sandbox

pytestmark = pytest.mark.tools

IMAGE = "mcr.microsoft.com/azureml/minimal-ubuntu22.04-py39-cpu-inference:latest"
VERSIONS = {
    "": "2024-03-01",
    "Microsoft.Storage": "2024-01-01",
    "Microsoft.KeyVault": "2024-11-01",
    "Microsoft.Insights": "2020-02-02",
}


@pytest.fixture
def arm(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> ArmClient:
    """In place of the fake of the other tests."""
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)
    return ArmClient(sandbox.endpoint.url)


@pytest.fixture
def workspace(arm: ArmClient, sandbox: Sandbox) -> str:
    name = f"meet{uuid4().hex[:8]}"
    group = f"/subscriptions/{sandbox.endpoint.subscription}/resourceGroups/{name}"
    needs: dict[str, tuple[str, dict[str, Any]]] = {
        "storageAccount": (
            f"Microsoft.Storage/storageAccounts/{name}",
            {"kind": "StorageV2", "sku": {"name": "Standard_LRS"}},
        ),
        "keyVault": (
            f"Microsoft.KeyVault/vaults/{name}-vault",
            {"properties": {"tenantId": sandbox.endpoint.tenant, "sku": {"family": "A", "name": "standard"}}},
        ),
        "applicationInsights": (
            f"Microsoft.Insights/components/{name}",
            {"kind": "web", "properties": {"Application_Type": "web"}},
        ),
    }
    workspace = f"{group}/providers/Microsoft.MachineLearningServices/workspaces/{name}"
    properties = {key: f"{group}/providers/{path}" for key, (path, _) in needs.items()}
    scale = {"minNodeCount": 0, "maxNodeCount": 1}
    cluster = {"vmSize": "Standard_ND96isr_H100_v5", "vmPriority": "Dedicated", "scaleSettings": scale}
    resources: tuple[tuple[str, dict[str, Any]], ...] = (
        (group, {}),
        *((f"{group}/providers/{path}", body) for path, body in needs.values()),
        (workspace, {"identity": {"type": "SystemAssigned"}, "properties": properties}),
        (f"{workspace}/computes/rdma", {"properties": {"computeType": "AmlCompute", "properties": cluster}}),
    )
    for path, body in resources:
        namespace = path.rpartition("/providers/")[2].split("/", 1)[0] if "/providers/" in path else ""
        arm.finish(arm.put(path, {"location": "eastus", **body}, VERSIONS.get(namespace, "2025-12-01")))
    return workspace


@pytest.fixture
def wire(arm: ArmClient) -> Iterator[Wire]:
    made = Wire()
    yield made
    made.stop()


def test_code_environment_and_run_live_as_against_azure(
    wire: Wire, arm: ArmClient, workspace: str, tmp_path: Path, log: Log
) -> None:
    wire.plugin.host._log = lambda severity, message, urn, *, ephemeral=False: log.entries.append(("messages", message))  # type: ignore[method-assign]
    code = tmp_path / "code"
    code.mkdir()
    (code / "wait.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    (code / "empty.txt").write_text("")
    snapshot = wire.snapshot()
    snapshot.up({"workspace": workspace, "path": str(code)})
    assert arm.get(snapshot.id).body["properties"]["codeUri"].endswith("/code")
    again = wire.snapshot()
    again.up({"workspace": workspace, "path": str(code)})
    assert again.id == snapshot.id

    environment = wire.environment()
    environment.up({"workspace": workspace, "name": "small", "body": {"image": IMAGE}})
    environment.refresh()
    assert environment.id

    def inputs(**changes: Any) -> dict[str, Any]:
        properties = {
            "command": "python wait.py",
            "codeId": snapshot.id,
            "environmentId": f"{workspace}/environments/small/labels/latest",
            "computeId": f"{workspace}/computes/rdma",
            "tags": {"team": "vision", "old": "1"},
            **changes.pop("properties", {}),
        }
        wanted = {"workspace": workspace, "codeHash": snapshot.inputs["hash"], "wait": "started", **changes}
        return job_inputs(properties=properties, **wanted)

    job = wire.job()
    job.up(inputs())
    assert job.outputs["status"] == "Running"
    assert job.outputs["environmentId"] == environment.id
    assert job.outputs["services"]

    assert job.up(inputs(properties={"tags": {"team": "speech"}, "displayName": "two"})) == "update"
    record = arm.get(job.outputs["jobId"]).body["properties"]
    assert record["displayName"] == "two"
    assert record["tags"]["team"] == "speech"
    removed = "old" not in record["tags"]
    assert removed != any("old stay on" in message for _, message in log.entries), "removed, or reported to stay"

    wire.restart()
    adopted = wire.job()
    assert adopted.up(inputs()) == "create"
    assert adopted.id == job.id
    adopted.remove()
    assert arm.get(job.outputs["jobId"]).body["properties"]["status"] == "Canceled"


CODE = {
    "train.py": b"print(1)\n" * 1000,
    "copy/of/train.py": b"print(1)\n" * 1000,
    "data.bin": bytes(range(256)) * 50_000,
}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, int]]:
    """Of each request that puts a blob: its name and the bytes of its body. Nothing of earlier uploads is known."""
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    found: list[tuple[str, int]] = []
    real = RequestsTransport.send

    def send(self: RequestsTransport, request: Any, **options: Any) -> Any:
        if request.method == "PUT" and "/blob/" in request.url:
            found.append(
                (request.url.partition("?")[0].rpartition("/code/")[2], int(request.headers["Content-Length"]))
            )
        return real(self, request, **options)

    monkeypatch.setattr(RequestsTransport, "send", send)
    return found


def folder(path: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def stored(arm: ArmClient, code_id: str) -> dict[str, bytes]:
    """The files of a code version."""
    uri = arm.get(code_id).body["properties"]["codeUri"]  # under Azure's own name of the account
    account, _, place = uri.removeprefix("https://").partition(".blob.core.windows.net:443/")
    container, _, name = f"{arm.endpoint}/blob/{account}/{place}".rpartition("/")
    credential = AccessToken(arm.token("https://storage.azure.com"), 2**40)
    with ContainerClient.from_container_url(
        container, credential=Mock(spec=["get_token"], get_token=Mock(return_value=credential))
    ) as there:
        return {
            blob.name.removeprefix(f"{name}/"): there.download_blob(blob.name).readall()
            for blob in there.list_blobs(name_starts_with=f"{name}/")
        }


def test_the_bytes_of_a_content_are_sent_once_for_all_snapshots(
    wire: Wire, arm: ArmClient, workspace: str, tmp_path: Path, sent: list[tuple[str, int]]
) -> None:
    code = folder(tmp_path / "code", CODE)
    first, second = wire.snapshot(), wire.snapshot()
    first.up({"workspace": workspace, "path": str(code)})
    assert stored(arm, first.id) == CODE
    content = len(CODE["train.py"]) + len(CODE["data.bin"])
    assert content <= sum(size for _, size in sent) < content + 4096, "and a list of blocks"

    sent.clear()
    changed = folder(code, {"train.py": b"print(2)\n" * 1000})
    second.up({"workspace": workspace, "path": str(changed)})
    assert second.id != first.id
    assert stored(arm, second.id) == {**CODE, "train.py": b"print(2)\n" * 1000}
    assert {name: size for name, size in sent if size} == {"train.py": 9000}


def test_a_content_that_may_not_be_read_where_it_lies_is_sent_again(
    wire: Wire,
    arm: ArmClient,
    workspace: str,
    tmp_path: Path,
    sent: list[tuple[str, int]],
) -> None:
    code = folder(tmp_path / "code", CODE)
    wire.snapshot().up({"workspace": workspace, "path": str(code)})
    folder(code, {"new.py": b"x = 1\n"})
    real = ArmClient.token
    sent.clear()
    again = wire.snapshot()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArmClient, "token", lambda self, audience: real(self, "https://ml.azure.com"))
        again.up({"workspace": workspace, "path": str(code)})
    assert stored(arm, again.id) == {**CODE, "new.py": b"x = 1\n"}
    assert sum(size for _, size in sent) >= len(CODE["train.py"]) + len(CODE["data.bin"])


def test_a_source_with_another_content_is_not_taken(
    wire: Wire, arm: ArmClient, workspace: str, tmp_path: Path, sent: list[tuple[str, int]]
) -> None:
    code = folder(tmp_path / "code", CODE)
    wire.snapshot().up({"workspace": workspace, "path": str(code)})
    sources = next(iter((tmp_path / "cache/uploads").iterdir()))
    head, _, body = sources.read_bytes().partition(b"\n")
    ((uri, names),) = json.loads(body)
    body = json.dumps([[uri, dict(zip(names, reversed(names.values()), strict=True))]]).encode()
    version = head.split(b" ")[0]
    sources.write_bytes(version + b" " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    folder(code, {"new.py": b"x = 1\n"})
    sent.clear()
    again = wire.snapshot()
    again.up({"workspace": workspace, "path": str(code)})
    assert stored(arm, again.id) == {**CODE, "new.py": b"x = 1\n"}
    assert sum(size for _, size in sent) >= len(CODE["data.bin"])
