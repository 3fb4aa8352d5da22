"""A workspace that is secure by default and has a customer-managed key, over its life."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from tests.support.stack.small_jobs import store_of

if TYPE_CHECKING:
    from tests.support.engine_result import Result
    from tests.support.running import MakeStack, Sandbox

pytestmark = pytest.mark.engine

CLUSTER = {"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}}
LOCKED = {"storage-lock", "key-vault-lock", "registry-lock"}
SECURE = {"name": "ws-secure", "locks": True, "encryption": "metadata", "image_build_compute": "a100"}
EDITED = {
    "name": "ws-secure",
    "locks": True,
    "encryption": "other",
    "public_network": {"allow": ["198.51.100.7/32", "203.0.113.0/24"]},
    "storage": {"soft_delete_days": 30, "infrastructure_encryption": False},
    "diagnostics": {"categories": ["RunEvent"]},
}


def changed(result: Result) -> dict[str, str]:
    """Name → operation of whatever does not stay as it is; replacements have several."""
    return {urn.rsplit("::", 1)[-1]: "+".join(ops) for urn, ops in result.ops.items() if ops != ("same",)}


def test_a_secure_workspace_over_its_life(stack: MakeStack, sandbox: Sandbox) -> None:
    one = stack(PROJECT, sandbox=sandbox)
    one.set("amlstack:location", "westeurope").set("amlstack:workspace", SECURE).set("amlstack:protect", "false")
    one.set("amlstack:resource_group", "rg-secure").set("amlstack:clusters", [CLUSTER])
    assert set(changed(one.up(preview=True).ok()).values()) == {"create"}
    made = one.resources()
    storage, workspace = made["storage"]["inputs"], made["workspace"]["inputs"]
    assert storage["encryption"]["requireInfrastructureEncryption"] is True
    assert storage["networkRuleSet"] == {"defaultAction": "Deny", "bypass": "AzureServices", "ipRules": []}
    assert made["storage-blobs"]["inputs"]["deleteRetentionPolicy"] == {"enabled": True, "days": 7}
    assert made["registry"]["inputs"]["sku"]["name"] == "Premium"
    assert made["workspace-diagnostics"]["inputs"]["workspaceId"].endswith("/log-ws-secure")
    assert workspace["identity"]["userAssignedIdentities"] == [workspace["primaryUserAssignedIdentity"]]
    assert made.keys() >= LOCKED

    assert workspace["encryption"]["keyVaultProperties"] == {
        "keyVaultArmId": made["key-vault"]["id"],
        "keyIdentifier": made["key-metadata"]["outputs"]["keyUriWithVersion"],
    }
    identity = workspace["encryption"]["identity"]["userAssignedIdentity"]  # whose own answer says `resourcegroups`
    assert identity.lower() == made["workspace-identity"]["id"].lower()
    role = made["workspace-key-vault-crypto-service-encryption-user-on-key-vault"]["inputs"]
    assert role["scope"] == made["key-vault"]["id"].lstrip("/")

    # Another key of the same vault is an update; a key that goes, or comes, is another workspace.
    updated = ("storage", "storage-blobs", "key-vault", "registry", "workspace", "workspace-diagnostics")
    edited = changed(one.set("amlstack:workspace", EDITED).up().ok())
    assert edited == {**dict.fromkeys(updated, "update"), "key-metadata": "delete", "key-other": "create"}
    rules = one.resources()["storage"]["inputs"]["networkRuleSet"]["ipRules"]
    assert [rule["iPAddressOrRange"] for rule in rules] == ["198.51.100.7", "203.0.113.0/24"]
    assert one.preview("--refresh").ok().changes == {}
    keyless = {key: value for key, value in EDITED.items() if key != "encryption"}
    assert one.set("amlstack:workspace", keyless).preview().ok().op("workspace", "Workspace") == "replace"

    # What is locked is deleted by nobody; a stack's own locks go before what they are on, and before the roles on it.
    lock = one.resources()["storage-lock"]
    one.pulumi("state", "delete", "--yes", lock["urn"], "--target-dependents", "--stack", one.name).ok()
    assert "ScopeLocked" in one.destroy().failed().output
    with store_of(sandbox.home) as store:
        assert store.resources.delete(lock["id"].lower())
    one.destroy().ok()
    assert one.resources() == {}
