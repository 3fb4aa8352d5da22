"""Provider and sandbox, written apart from each other, over the wire that both take Azure's to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider.arm import ArmClient
from tests.support.provider.provider_wire import Log, Wire, job_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Sandbox

IMAGE = "mcr.microsoft.com/azureml/minimal-ubuntu22.04-py39-cpu-inference:latest"
VERSIONS = {
    "": "2024-03-01",
    "Microsoft.Storage": "2024-01-01",
    "Microsoft.KeyVault": "2024-11-01",
    "Microsoft.Insights": "2020-02-02",
}


@pytest.fixture
def arm(own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> ArmClient:
    """In place of the fake of the other tests."""
    for name, value in own_sandbox.environ.items():
        monkeypatch.setenv(name, value)
    return ArmClient(own_sandbox.endpoint.url)


@pytest.fixture
def workspace(arm: ArmClient, own_sandbox: Sandbox) -> str:
    group = f"/subscriptions/{own_sandbox.endpoint.subscription}/resourceGroups/meet"
    needs: dict[str, tuple[str, dict[str, Any]]] = {
        "storageAccount": (
            "Microsoft.Storage/storageAccounts/meet",
            {"kind": "StorageV2", "sku": {"name": "Standard_LRS"}},
        ),
        "keyVault": (
            "Microsoft.KeyVault/vaults/meet-vault",
            {"properties": {"tenantId": own_sandbox.endpoint.tenant, "sku": {"family": "A", "name": "standard"}}},
        ),
        "applicationInsights": (
            "Microsoft.Insights/components/meet",
            {"kind": "web", "properties": {"Application_Type": "web"}},
        ),
    }
    workspace = f"{group}/providers/Microsoft.MachineLearningServices/workspaces/meet"
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
    made = Wire("")
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
    assert removed != any("old stay on" in message for _, message in log.entries), "removed, or said to stay"

    wire.restart()
    adopted = wire.job()
    assert adopted.up(inputs()) == "create"
    assert adopted.id == job.id
    adopted.remove()
    assert arm.get(job.outputs["jobId"]).body["properties"]["status"] == "Canceled"
