"""docs/reference/edits.md is true: the real engine previews an edit of every row and plans that."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from amlstack.sandbox.azure_native import shape
from amlstack.sandbox.protocol.entra import SUBSCRIPTION, TENANT
from infra import properties
from infra.settings import read_file
from infra.settings.model.cluster import Cluster
from policies.checks.size import SINGLE_NODE_TAG
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from tests.support.running import MakeStack, Sandbox

SIZE = "Standard_ND96asr_v4"
NETWORK = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-network/providers/Microsoft.Network/virtualNetworks/vnet"
SUBNET = f"{NETWORK}/subnets/"
EDITED = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-edits"
IDENTITIES = "providers/Microsoft.ManagedIdentity/userAssignedIdentities"
KEY = f"ssh-rsa {'A' * 100}"
SSH = {"user": "operator", "public_key": KEY}

CLUSTERS: dict[tuple[str, ...], tuple[dict[str, Any], dict[str, Any]]] = {
    ("location",): ({}, {"location": "northeurope"}),
    ("identity",): ({}, {"identity": "system"}),
    ("description",): ({"description": "One."}, {"description": "Two."}),
    ("disable_local_auth",): ({"disable_local_auth": True}, {"disable_local_auth": False}),
    ("size",): ({}, {"size": "Standard_ND96amsr_A100_v4"}),
    ("priority",): ({}, {"priority": "low_priority"}),
    ("subnet",): ({"subnet": f"{SUBNET}one"}, {"subnet": f"{SUBNET}two"}),
    ("node_public_ip",): ({}, {"node_public_ip": False}),
    ("isolated_network",): ({}, {"isolated_network": True}),
    ("ssh", "user"): ({"ssh": SSH}, {"ssh": {**SSH, "user": "another"}}),
    ("ssh", "public_key"): ({"ssh": SSH}, {"ssh": {**SSH, "public_key": KEY.replace("A", "B")}}),
    ("ssh", "public_access"): ({"ssh": SSH}, {"ssh": {**SSH, "public_access": True}}),
    ("nodes", "min"): ({}, {"nodes": {"min": 1, "max": 2}}),
    ("nodes", "max"): ({}, {"nodes": {"max": 3}}),
    ("nodes", "idle"): ({}, {"nodes": {"max": 2, "idle": "PT1H"}}),
    ("tags",): ({}, {"tags": {"team": "vision"}}),
    ("single_node_jobs",): ({}, {"single_node_jobs": True}),
}
MORE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "administrator-added": ({"disable_local_auth": False}, {"ssh": SSH}, "replace"),
    "subnet-added": ({}, {"subnet": f"{SUBNET}one"}, "replace"),
    "identity-in-place": (
        {"identity_change": "in_place"},
        {"identity_change": "in_place", "identity": "none"},
        "update",
    ),
    "in-place-from-now-on": ({}, {"identity_change": "in_place"}, "same"),
    "default-written-out": ({}, {"nodes": {"min": 0, "max": 2, "idle": "PT10M"}, "priority": "dedicated"}, "same"),
}
ADDED: list[dict[str, Any]] = [
    {"name": "full", "size": "Standard_NC96ads_A100_v4", "nodes": {"min": 1, "max": 8, "idle": "PT1H"},
     "priority": "low_priority", "single_node_jobs": True, "location": "northeurope", "subnet": f"{SUBNET}one",
     "node_public_ip": False, "description": "For many small jobs.", "tags": {"team": "vision", "cost": "7"}},
    {"name": "given", "identity": {"type": "system", "user_assigned": [f"{EDITED}/{IDENTITIES}/mine"]}},
]  # fmt: skip
"""Clusters that come with the edits: whole ones are judged as they are registered, too."""


@pytest.mark.engine
def test_each_edit_of_a_cluster_is_planned_as_the_table_says_and_judged_as_it_is_registered(
    stack: MakeStack, sandbox: Sandbox
) -> None:
    careful = set(properties.replaced_by())
    expected = {"-".join(row.path).replace("_", "-"): "replace" if row.wire in careful else "update"
                for row in properties.CLUSTER_SETTINGS}  # fmt: skip
    edits = {"-".join(path).replace("_", "-"): edit for path, edit in CLUSTERS.items()}
    assert edits.keys() == expected.keys()
    expected |= {name: operation for name, (_, _, operation) in MORE.items()}
    edits |= {name: (before, after) for name, (before, after, _) in MORE.items()}

    arm = Arm(sandbox.endpoint)
    arm.make_group("rg-network")
    subnets = [
        {"name": name, "properties": {"addressPrefix": f"10.0.{at}.0/24"}} for at, name in enumerate(("one", "two"))
    ]
    network = {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": subnets}
    assert arm.put(NETWORK, {"location": "westeurope", "properties": network}).status == 201
    one = stack(PROJECT, sandbox=sandbox)
    one.set("amlstack:location", "westeurope").set("amlstack:workspace", "ws-edits")
    one.set("amlstack:resource_group", "rg-edits").set("amlstack:protect", "false")
    one.set("amlstack:cluster_defaults", {"size": SIZE, "nodes": {"max": 2}}).set("amlstack:tags", {"cost": "1"})
    one.set("amlstack:clusters", [{"name": name, **before} for name, (before, _) in edits.items()])
    one.up().ok()
    assert one.preview("--refresh").ok().changes == {}

    one.set("amlstack:clusters", [*({"name": name, **after} for name, (_, after) in edits.items()), *ADDED])
    planned = one.preview().ok()

    assert {name: planned.op(name, "Compute") for name in edits} == expected
    # The name is taken until the old cluster is gone.
    ops = [step.op for step in planned.steps("size", "Compute")]
    assert ops.index("delete-replaced") < ops.index("create-replacement")
    settings = read_file(one.settings).settings
    assert settings is not None
    assert {spec.name for spec in settings.clusters} == {*edits, *(added["name"] for added in ADDED)}
    for spec in settings.clusters:
        judged = properties.cluster_properties(
            spec,
            location=spec.location or settings.location,
            tags=settings.tags,
            stack_identity=f"{EDITED}/{IDENTITIES}/id-ws-edits",
        )
        place = {"resourceGroupName": "rg-edits", "workspaceName": "ws-edits", "computeName": spec.name}
        for step in planned.steps(spec.name, "Compute"):
            if step.new:
                assert step.new["inputs"] | {"azureApiVersion": None} == {**place, **judged, "azureApiVersion": None}


OTHER = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-edited/providers"
USER = f"{OTHER}/Microsoft.ManagedIdentity/userAssignedIdentities/"
KEY = "https://kv-edited.vault.azure.net/keys/k"
VAULT = {"keyVaultArmId": f"{OTHER}/Microsoft.KeyVault/vaults/kv-edited", "keyIdentifier": f"{KEY}/{'1' * 32}"}
ENCRYPTED = {"status": "Enabled", "keyVaultProperties": VAULT, "identity": {"userAssignedIdentity": f"{USER}a"}}
WORKSPACES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "workspaceName": ({}, {"workspaceName": "ws-another"}),
    "resourceGroupName": ({}, {"resourceGroupName": "rg-another"}),
    "location": ({}, {"location": "northeurope"}),
    "kind": ({"kind": "Default"}, {"kind": "FeatureStore"}),
    "storageAccount": ({}, {"storageAccount": f"{OTHER}/Microsoft.Storage/storageAccounts/stother"}),
    "keyVault": ({}, {"keyVault": f"{OTHER}/Microsoft.KeyVault/vaults/kv-other"}),
    "hbiWorkspace": ({}, {"hbiWorkspace": True}),
    "enableServiceSideCMKEncryption": ({}, {"enableServiceSideCMKEncryption": True}),
    "encryption.status": ({"encryption": ENCRYPTED}, {"encryption": {**ENCRYPTED, "status": "Disabled"}}),
    "encryption.identity": (
        {"encryption": ENCRYPTED},
        {"encryption": {**ENCRYPTED, "identity": {"userAssignedIdentity": f"{USER}b"}}},
    ),
    "encryption.keyVaultProperties.keyVaultArmId": (
        {"encryption": ENCRYPTED},
        {"encryption": {**ENCRYPTED, "keyVaultProperties": {**VAULT, "keyVaultArmId": f"{OTHER}/other"}}},
    ),
    "encryption.keyVaultProperties.keyIdentifier": (
        {"encryption": ENCRYPTED},
        {"encryption": {**ENCRYPTED, "keyVaultProperties": {**VAULT, "keyIdentifier": f"{KEY}/{'2' * 32}"}}},
    ),
    "friendlyName": ({}, {"friendlyName": "Another name"}),
    "description": ({}, {"description": "Another one."}),
    "tags": ({}, {"tags": {"team": "vision"}}),
    "publicNetworkAccess": ({}, {"publicNetworkAccess": "Disabled"}),
    "applicationInsights": ({}, {"applicationInsights": f"{OTHER}/Microsoft.Insights/components/other"}),
    "containerRegistry": ({}, {"containerRegistry": f"{OTHER}/Microsoft.ContainerRegistry/registries/other"}),
    "identity": ({}, {"identity": {"type": "UserAssigned", "userAssignedIdentities": [f"{USER}a"]}}),
    "primaryUserAssignedIdentity": ({}, {"primaryUserAssignedIdentity": f"{USER}a"}),
    "systemDatastoresAuthMode": ({}, {"systemDatastoresAuthMode": "Identity"}),
    "imageBuildCompute": ({}, {"imageBuildCompute": "builder"}),
    "serverlessComputeSettings": ({}, {"serverlessComputeSettings": {"serverlessComputeNoPublicIP": True}}),
    "managedNetwork": ({}, {"managedNetwork": {"isolationMode": "AllowInternetOutbound"}}),
    "enableDataIsolation": ({}, {"enableDataIsolation": True}),
    "v1LegacyMode": ({}, {"v1LegacyMode": True}),
    "serviceManagedResourcesSettings": (
        {}, {"serviceManagedResourcesSettings": {"cosmosDb": {"collectionsThroughput": 400}}}
    ),
    "sku": ({}, {"sku": {"name": "Basic"}}),
}  # fmt: skip


@pytest.mark.engine
def test_each_edit_of_a_workspace_is_planned_as_the_table_says(stack: MakeStack, sandbox: Sandbox) -> None:
    expected = {row.wire: "replace" if row.replaces else "update" for row in properties.WORKSPACE_SETTINGS}
    assert WORKSPACES.keys() == expected.keys()
    names = {wire: wire.replace(".", "-").lower()[-28:] for wire in WORKSPACES}
    one = stack("workspaces_edited", sandbox=sandbox)
    one.set("subscription", SUBSCRIPTION).set("tenant", TENANT)
    one.set(
        "workspaces", {names[wire]: before for wire, (before, _) in WORKSPACES.items()} | {"kept": {"protected": True}}
    )
    one.up().ok()
    assert one.preview().ok().changes == {}

    one.set(
        "workspaces", {names[wire]: after for wire, (_, after) in WORKSPACES.items()} | {"kept": {"protected": True}}
    )
    planned = one.preview().ok()
    assert {wire: planned.op(names[wire]) for wire in WORKSPACES} == expected

    # What would be replaced is refused while it is protected, as it is on every stack but `sandbox`.
    one.set("workspaces", {names[wire]: before for wire, (before, _) in WORKSPACES.items()}
            | {"kept": {"protected": True, "location": "northeurope"}})  # fmt: skip
    assert "kept" in "\n".join(one.preview().failed().errors)


@pytest.fixture(scope="module")
def models() -> Any:
    """azure-ai-ml's classes of the wire, as the REST API's specification has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from azure.ai.ml._restclient.arm_ml_service import models

    return models


def test_what_azure_updates_in_place_is_what_its_request_for_updates_takes(models: Any) -> None:
    taken = {field for part in (models.WorkspaceUpdateParameters, models.WorkspacePropertiesUpdateParameters)
             for field in wire_names(part)} - {"properties"}  # fmt: skip
    in_place = {row.wire.split(".")[0] for row in properties.WORKSPACE_SETTINGS if not (row.replaces or row.refused)}
    assert in_place == taken - set(properties.OTHER_KINDS)
    assert wire_names(models.ScaleSettingsInformation) == {"scaleSettings"}
    careful = {
        row.wire.rpartition(".")[0].rpartition(".")[2] for row in properties.CLUSTER_SETTINGS if not row.replaces
    }
    assert careful - {"", "tags", "properties"} == {"scaleSettings"}


def test_every_input_of_a_workspace_is_in_the_table_or_named_beside_it() -> None:
    row, _ = shape.find("azure-native:machinelearningservices:Workspace")
    known = {each.wire.split(".")[0] for each in properties.WORKSPACE_SETTINGS}
    assert known | set(properties.UNKNOWN) | set(properties.OTHER_KINDS) == row.inputs


def test_every_property_of_a_cluster_is_set_constant_or_refused_by_name(models: Any) -> None:
    known = {each.wire for each in properties.CLUSTER_SETTINGS} | set(properties.CLUSTER_REPLACED_BY)
    for model, above in ((models.AmlCompute, "properties"), (models.AmlComputeProperties, "properties.properties")):
        for name in wire_names(model, written=True):
            path = f"{above}.{name}"
            covered = any(each == path or each.startswith(f"{path}.") for each in known)
            assert covered or name in Cluster.refused or name == "properties", path
    assert f"tags.{SINGLE_NODE_TAG}" in known


def wire_names(model: Any, *, written: bool = False) -> set[str]:
    """Names on the wire of a model's fields; with ``written`` of those that a request may have."""
    fields = {name: field for kind in reversed(model.__mro__) for name, field in vars(kind).items()
              if type(field).__name__ == "_RestField"}  # fmt: skip
    return {
        field._rest_name_input or name
        for name, field in fields.items()
        if not (written and field._visibility == ["read"])
    }
