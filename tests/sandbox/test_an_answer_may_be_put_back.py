"""A PUT takes what a GET answered, for every kind: what only answers have is ignored, as the resource manager does."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox import kinds
from tests.support.sandbox.sandbox_client import ROOT, cluster, job

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

HERE, GLOBAL = {"location": "eastus"}, {"location": "global"}
AUTH = "/providers/Microsoft.Authorization"
RULE = {
    "name": "out",
    "properties": {
        "access": "Allow",
        "protocol": "Tcp",
        "direction": "Outbound",
        "priority": 100,
        "sourceAddressPrefix": "*",
        "sourcePortRange": "*",
        "destinationAddressPrefix": "*",
        "destinationPortRange": "443",
    },
}
SUBNET = {"name": "a", "properties": {"addressPrefix": "10.0.0.0/24"}}
BLOBS = f"{ROOT}{AUTH}/roleDefinitions/ba92f5b4-2d11-453d-a403-e96b0029c9fe"
DENY = {
    "mode": "All",
    "policyRule": {"if": {"field": "type", "equals": "x"}, "then": {"effect": "deny"}},
}
COMPONENT = {"type": "command", "name": "e", "command": "true", "environment": "azureml:e:1"}
LOGS = [{"category": "AuditEvent", "enabled": True}]
LIFE = {
    "name": "old",
    "type": "Lifecycle",
    "definition": {
        "filters": {"blobTypes": ["blockBlob"]},
        "actions": {"version": {"delete": {"daysAfterCreationGreaterThan": 30}}},
    },
}


def version(path: str) -> dict[str, str]:
    """The api-version of a type whose namespace has several; empty for the others."""
    found = {"diagnosticSettings": "2021-05-01-preview", "locks": "2020-05-01"}.get(path.split("/")[-2])
    return {"api-version": found} if found else {}


MOVING = {"etag", "lastModifiedTime", "modifiedOn", "nextVersion", "systemData", "updatedOn"}
"""Keys that every write changes, and the time that a component's next version is called after."""


def still(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: still(inner) for key, inner in value.items() if key not in MOVING}
    return [still(inner) for inner in value] if isinstance(value, list) else value


def made(manager: Manager) -> dict[str, str]:
    """Type → id of one resource of each kind that a client makes, beside those of the manager's workspace."""
    workspace = manager.workspace
    group = workspace.partition("/providers/")[0]
    _, whole = manager.call("GET", workspace)
    account, vault = (whole["properties"][key] for key in ("storageAccount", "keyVault"))
    identity = f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/id-1"
    network = f"{group}/providers/Microsoft.Network"
    logs = f"{group}/providers/Microsoft.OperationalInsights/workspaces/logs"
    zone, policies = f"{network}/privateDnsZones/privatelink.blob.core.windows.net", f"{ROOT}{AUTH}"
    endpoint = {
        "subnet": {"id": f"{network}/virtualNetworks/net/subnets/a"},
        "privateLinkServiceConnections": [
            {"name": "one", "properties": {"privateLinkServiceId": account, "groupIds": ["blob"]}}
        ],
    }
    zones = [{"name": "blob", "properties": {"privateDnsZoneId": zone}}]
    found: dict[str, str] = {}

    def put(path: str, body: dict[str, Any]) -> None:
        status, answer = manager.call("PUT", path, copy.deepcopy(body), **version(path))
        assert status in {200, 201, 202}, (path, answer)
        manager.settle()

    put(identity, HERE)
    principal = manager.call("GET", identity)[1]["properties"]["principalId"]
    put(
        f"{identity}/federatedIdentityCredentials/ci-1",
        {"properties": {"issuer": "https://token", "subject": "s", "audiences": ["a"]}},
    )
    put(f"{account}/blobServices/default", {"properties": {"isVersioningEnabled": True}})
    put(f"{account}/blobServices/default/containers/box", {"properties": {"publicAccess": "None"}})
    put(f"{account}/fileServices/default/shares/share", {"properties": {"shareQuota": 100}})
    put(f"{account}/managementPolicies/default", {"properties": {"policy": {"rules": [LIFE]}}})
    put(f"{vault}/keys/k", {"properties": {"kty": "RSA", "keySize": 2048}})
    put(logs, {**HERE, "properties": {"sku": {"name": "PerGB2018"}}})
    put(
        f"{vault}/providers/Microsoft.Insights/diagnosticSettings/d",
        {"properties": {"workspaceId": logs, "logs": LOGS}},
    )
    put(f"{network}/networkSecurityGroups/nsg", {**HERE, "properties": {"securityRules": [RULE]}})
    put(
        f"{network}/virtualNetworks/net",
        {**HERE, "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": [SUBNET]}},
    )
    put(f"{network}/virtualNetworks/net/subnets/b", {"properties": {"addressPrefix": "10.0.1.0/24"}})
    put(zone, GLOBAL)
    put(
        f"{zone}/virtualNetworkLinks/one",
        {**GLOBAL, "properties": {"virtualNetwork": {"id": f"{network}/virtualNetworks/net"}}},
    )
    put(f"{network}/privateEndpoints/pe", {**HERE, "properties": endpoint})
    put(f"{network}/privateEndpoints/pe/privateDnsZoneGroups/default", {"properties": {"privateDnsZoneConfigs": zones}})
    put(
        workspace,
        {
            **HERE,
            "identity": {"type": "SystemAssigned,UserAssigned", "userAssignedIdentities": {identity: {}}},
            "properties": {
                **{
                    key: whole["properties"][key]
                    for key in ("storageAccount", "keyVault", "applicationInsights", "containerRegistry")
                },
                "managedNetwork": {"isolationMode": "AllowInternetOutbound"},
                "primaryUserAssignedIdentity": identity,
            },
        },
    )
    put(
        f"{workspace}/outboundRules/host",
        {
            "properties": {
                "type": "PrivateEndpoint",
                "category": "UserDefined",
                "destination": {"serviceResourceId": account, "subresourceTarget": "file"},
            }
        },
    )
    put(
        f"{workspace}/computes/gpu",
        {
            **cluster(),
            "identity": {"type": "SystemAssigned"},
            "tags": {"team": "a"},
        },
    )
    put(
        f"{workspace}/datastores/own",
        {
            "properties": {
                "datastoreType": "AzureBlob",
                "accountName": "space1",
                "containerName": "box",
                "credentials": {"credentialsType": "None"},
            }
        },
    )
    file = manager.store.blobs.fresh()
    file.write_bytes(b"x")
    manager.store.blobs.put("space1", "box", "src/a.py", file)
    put(f"{workspace}/codes/abc/versions/1", {"properties": {"codeUri": "https://127.0.0.1:1/blob/space1/box/src"}})
    put(f"{workspace}/environments/e/versions/1", {"properties": {"image": "mcr/x:1"}})
    put(f"{workspace}/components/e/versions/1", {"properties": {"componentSpec": COMPONENT}})
    put(
        f"{workspace}/data/d/versions/1",
        {"properties": {"dataType": "uri_folder", "dataUri": "azureml://datastores/workspaceblobstore/paths/d"}},
    )
    put(
        f"{workspace}/models/m/versions/1",
        {"properties": {"modelUri": "azureml://datastores/workspaceblobstore/paths/m"}},
    )
    put(f"{workspace}/jobs/one", job(f"{workspace}/computes/gpu"))
    put(
        f"{workspace}/schedules/nightly",
        {
            "properties": {
                "trigger": {"triggerType": "Cron", "expression": "0 2 * * *", "timeZone": "UTC"},
                "action": {"actionType": "CreateJob", "jobDefinition": job(f"{workspace}/computes/gpu")["properties"]},
            }
        },
    )
    put(f"{policies}/policyDefinitions/d", {"properties": DENY})
    put(
        f"{policies}/policySetDefinitions/s",
        {"properties": {"policyDefinitions": [{"policyDefinitionId": f"{policies}/policyDefinitions/d"}]}},
    )
    put(
        f"{group}{AUTH}/policyAssignments/a",
        {"properties": {"policyDefinitionId": f"{policies}/policySetDefinitions/s"}},
    )
    put(
        f"{account}{AUTH}/roleAssignments/7a2c1a53-2f0f-4f5e-9f6a-1d3f4a2b5c6d",
        {"properties": {"roleDefinitionId": BLOBS, "principalId": principal, "principalType": "ServicePrincipal"}},
    )
    put(f"{group}{AUTH}/locks/keep", {"properties": {"level": "CanNotDelete"}})
    registry = str(whole["properties"]["containerRegistry"])
    manager.call("PATCH", registry, {"sku": {"name": "Premium"}})
    put(f"{registry}/replications/westus", {"location": "westus"})
    for kind in kinds.ALL:
        if not kind.read_only and (rows := manager.store.resources.of_type(kind.type)):
            found[kind.type] = max(rows, key=lambda row: row.created).id
    _, shown = manager.call("GET", account)
    connection = shown["properties"]["privateEndpointConnections"][0]
    found[connection["type"]] = connection["id"]
    found["Microsoft.MachineLearningServices/workspaces/jobs"] = f"{workspace}/jobs/one"
    return found


def test_a_put_of_what_a_get_answered_changes_nothing(manager: Manager) -> None:
    found = made(manager)
    wrong: dict[str, Any] = {}
    for kind, path in found.items():
        _, before = manager.call("GET", path, **version(path))
        status, answer = manager.call("PUT", path, copy.deepcopy(before), **version(path))
        manager.settle()
        _, after = manager.call("GET", path, **version(path))
        if status not in {200, 201, 202}:
            wrong[kind] = answer["message"]
        elif still(before) != still(after):
            wrong[kind] = before, after
    assert wrong == {}
    assert {kind.type for kind in kinds.ALL if not kind.read_only} == found.keys()


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (("properties", "properties"), "allocationStates"),
        (("properties", "properties"), "scaleSetting"),
        (("properties",), "allocationState"),
        ((), "vmSize"),
        ((), "disableLocalAuth"),
        (("identity",), "principal"),
    ],
)
def test_what_is_neither_an_input_nor_an_answer_there_is_refused(
    manager: Manager, place: tuple[str, ...], name: str
) -> None:
    body: dict[str, Any] = {**cluster(), "identity": {"type": "SystemAssigned"}}
    at = body
    for step in place:
        at = at[step]
    at[name] = "x"

    status, answer = manager.call("PUT", f"{manager.workspace}/computes/gpu", body)

    assert (status, answer["code"]) == (400, "InvalidRequestContent")
    assert f"has no property '{name}'" in answer["message"]


def test_what_only_answers_have_is_ignored_whatever_it_says(manager: Manager) -> None:
    body = cluster()
    body["properties"] |= {"provisioningErrors": None, "isAttachedCompute": True}
    body["properties"]["properties"] |= {"allocationState": "Resizing", "currentNodeCount": 64}

    assert manager.call("PUT", f"{manager.workspace}/computes/gpu", body)[0] == 201
    manager.settle()

    _, found = manager.call("GET", f"{manager.workspace}/computes/gpu")
    assert found["properties"]["isAttachedCompute"] is False
    assert found["properties"]["properties"]["currentNodeCount"] == 0
