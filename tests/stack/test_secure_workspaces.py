"""A workspace that is secure by default, over its life, and one with a customer-managed key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from tests.support.engine_result import Result
    from tests.support.harness import Stack
    from tests.support.running import MakeStack, Sandbox

pytestmark = pytest.mark.engine

PROGRAM = """\
from infra import program

program.main()
"""
CLUSTER = {"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}}
LOCKED = {"storage-lock", "key-vault-lock", "registry-lock"}


def declared(one: Stack, workspace: object, *, group: str) -> Stack:
    one.set("amlstack:location", "westeurope").set("amlstack:workspace", workspace)
    return one.set("amlstack:resource_group", group).set("amlstack:clusters", [CLUSTER])


def changed(result: Result) -> dict[str, str]:
    """Name → operation of whatever does not stay as it is; replacements have several."""
    return {urn.rsplit("::", 1)[-1]: "+".join(ops) for urn, ops in result.ops.items() if ops != ("same",)}


def test_the_sandbox_stack_has_none_of_it(stack: MakeStack, sandbox: Sandbox) -> None:
    one = declared(stack(PROGRAM, sandbox=sandbox, name="sandbox"), "ws-plain", group="rg-amlstack-test")
    planned = one.preview().ok()
    kinds = {step.type.rpartition(":")[2] for step in planned.planned}
    assert kinds.isdisjoint({"ManagementLockByScope", "DiagnosticSetting", "BlobServiceProperties", "Key"})
    assert len([step for step in planned.planned if step.type.endswith(":RoleAssignment")]) == 3


def test_a_secure_workspace_over_its_life(stack: MakeStack, sandbox: Sandbox) -> None:
    one = declared(stack(PROJECT, sandbox=sandbox), "ws-secure", group="rg-secure").set("amlstack:protect", "false")
    one.set("amlstack:workspace", {"name": "ws-secure", "locks": True, "image_build_compute": "a100"})
    planned = one.preview().ok()
    assert set(changed(planned).values()) == {"create"}
    one.up().ok()
    made = one.resources()
    storage, workspace = made["storage"]["inputs"], made["workspace"]["inputs"]
    assert storage["encryption"]["requireInfrastructureEncryption"] is True
    assert storage["networkRuleSet"] == {"defaultAction": "Deny", "bypass": "AzureServices", "ipRules": []}
    assert made["storage-blobs"]["inputs"]["deleteRetentionPolicy"] == {"enabled": True, "days": 7}
    assert made["registry"]["inputs"]["sku"]["name"] == "Premium"
    assert made["workspace-diagnostics"]["inputs"]["workspaceId"].endswith("/log-ws-secure")
    assert workspace["identity"]["userAssignedIdentities"] == [workspace["primaryUserAssignedIdentity"]]
    assert made.keys() >= LOCKED
    assert one.up().ok().changes == {}

    one.refresh().ok()
    assert one.preview().ok().changes == {}
    one.set(
        "amlstack:workspace",
        {
            "name": "ws-secure",
            "locks": True,
            "public_network": {"allow": ["198.51.100.7/32", "203.0.113.0/24"]},
            "storage": {"soft_delete_days": 30, "infrastructure_encryption": False},
            "diagnostics": {"categories": ["RunEvent"]},
        },
    )
    edited = changed(one.preview().ok())
    assert edited == dict.fromkeys(
        ("storage", "storage-blobs", "key-vault", "registry", "workspace", "workspace-diagnostics"), "update"
    )
    assert changed(one.up().ok()) == edited
    rules = one.resources()["storage"]["inputs"]["networkRuleSet"]["ipRules"]
    assert [rule["iPAddressOrRange"] for rule in rules] == ["198.51.100.7", "203.0.113.0/24"]
    assert one.up().ok().changes == {}
    # Locks go before what they are on, and before the roles on it.
    one.destroy().ok()


def test_what_is_locked_is_deleted_by_nobody(stack: MakeStack, sandbox: Sandbox) -> None:
    one = declared(stack(PROJECT, sandbox=sandbox), "ws-locked", group="rg-locked").set("amlstack:protect", "false")
    one.set("amlstack:workspace", {"name": "ws-locked", "locks": ["storage"]}).up().ok()
    made = one.resources()
    lock = made["storage-lock"]["urn"]
    one.pulumi("state", "delete", "--yes", lock, "--target-dependents", "--stack", one.name).ok()  # the keeper too
    refused = one.destroy().failed()
    assert "ScopeLocked" in refused.output


ENCRYPTED = {"name": "ws-key", "encryption": "metadata", "public_network": True}


def test_a_customer_managed_key_over_its_life(stack: MakeStack, sandbox: Sandbox) -> None:
    one = declared(stack(PROJECT, sandbox=sandbox), ENCRYPTED, group="rg-key").set("amlstack:protect", "false")
    planned = one.preview().ok()
    assert planned.op("key-metadata", "Key") == "create"
    one.up().ok()
    made = one.resources()
    encryption = made["workspace"]["inputs"]["encryption"]
    assert encryption["keyVaultProperties"] == {
        "keyVaultArmId": made["key-vault"]["id"],
        "keyIdentifier": made["key-metadata"]["outputs"]["keyUriWithVersion"],
    }
    identity = encryption["identity"]["userAssignedIdentity"]  # whose own answer says `resourcegroups`
    assert identity.lower() == made["workspace-identity"]["id"].lower()
    role = made["workspace-key-vault-crypto-service-encryption-user-on-key-vault"]["inputs"]
    assert role["scope"] == made["key-vault"]["id"].lstrip("/")
    assert one.up().ok().changes == {}
    one.refresh().ok()
    assert one.preview().ok().changes == {}

    # Another key of the same vault is an update; a key that goes, or comes, is another workspace.
    rotated = changed(one.set("amlstack:workspace.encryption", "other").up().ok())
    assert rotated["workspace"] == "update"
    assert rotated["key-other"] == "create"
    one.set("amlstack:workspace.encryption", None)
    assert one.preview().ok().op("workspace", "Workspace") == "replace"
    one.set("amlstack:workspace.encryption", "other").set("amlstack:protect", "true").up().ok()
    one.set("amlstack:workspace.encryption", None)
    refused = one.preview().failed()
    assert "protect" in refused.output
    one.set("amlstack:workspace.encryption", "other").set("amlstack:protect", "false").up().ok()
    one.destroy().ok()
