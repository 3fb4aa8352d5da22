"""An Azure ML estate that no stack of ours has made: group, storage, vault, insights, registry and workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.cli.sandbox_arm import connect

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.provider.arm import ArmClient
    from tests.support.running import Sandbox

GROUP = "rg-platform"
WORKSPACE = "mlw-platform"
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "Microsoft.Storage/storageAccounts/stplatform01": (
        "2024-01-01",
        {"kind": "StorageV2", "sku": {"name": "Standard_GRS"}, "properties": {"allowSharedKeyAccess": False}},
    ),
    "Microsoft.KeyVault/vaults/kv-platform-01": (
        "2024-11-01",
        {
            "properties": {
                "tenantId": "0a3c1f6e-52b0-4f59-9d0e-7d1c5a4b2e10",
                "sku": {"family": "A", "name": "standard"},
                "enableRbacAuthorization": True,
                "accessPolicies": [],
            }
        },
    ),
    "Microsoft.OperationalInsights/workspaces/log-platform": ("2023-09-01", {"properties": {"retentionInDays": 90}}),
    "Microsoft.Insights/components/appi-platform": (
        "2020-02-02",
        {"kind": "web", "properties": {"Application_Type": "web"}},
    ),
    "Microsoft.ContainerRegistry/registries/crplatform01": ("2023-07-01", {"sku": {"name": "Premium"}}),
}
"""Path below the group's ``providers`` → API version and body without the location."""


def client(sandbox: Sandbox) -> ArmClient:
    """Azure Resource Manager of a sandbox."""
    return connect(sandbox.endpoint)


def make(sandbox: Sandbox, subscription: str, *, registry: bool = True) -> str:
    """Make the estate; the id of its workspace."""
    arm = client(sandbox)
    group = f"/subscriptions/{subscription}/resourceGroups/{GROUP}"
    arm.put(group, {"location": "westeurope"}, "2024-03-01")
    for path, (version, body) in PARTS.items():
        if registry or "registries" not in path:
            arm.finish(arm.put(f"{group}/providers/{path}", {"location": "westeurope", **body}, version))
    storage, vault, _, insights, images = (f"{group}/providers/{path}" for path in PARTS)
    properties = {"storageAccount": storage, "keyVault": vault, "applicationInsights": insights}
    body = {
        "location": "westeurope",
        "identity": {"type": "SystemAssigned"},
        "tags": {"owner": "platform"},
        "properties": {**properties, **({"containerRegistry": images} if registry else {}), "description": "Not ours."},
    }
    workspace = f"{group}/providers/Microsoft.MachineLearningServices/workspaces/{WORKSPACE}"
    arm.finish(arm.put(workspace, body))
    return workspace


def bodies(home: Path) -> dict[str, tuple[dict[str, Any], float]]:
    """Id → body of every resource of a sandbox, and when it was changed."""
    from tests.support.stack.small_jobs import store_of

    with store_of(home) as store:
        return {row.id: (row.body, row.changed) for row in store.resources.all()}
