"""Existing resources of Azure as the settings and the import file of the stack that takes them over."""

from __future__ import annotations

from typing import Any

from amlstack.cli.stack import adoption
from amlstack.cli.stack.adoption import Estate, ImportFile, read_estate
from amlstack.provider.arm import ArmClient, Response
from infra.names import Names
from infra.settings import Cluster, Workspace

GROUP = "/subscriptions/s/resourceGroups/rg"
PROVIDERS = f"{GROUP}/providers"
WORKSPACE = f"{PROVIDERS}/Microsoft.MachineLearningServices/workspaces/mlw"
STORAGE = f"{PROVIDERS}/Microsoft.Storage/storageAccounts/stgrown"
VAULT = "/subscriptions/s/resourceGroups/rg-other/providers/Microsoft.KeyVault/vaults/kv"
INSIGHTS = f"{PROVIDERS}/Microsoft.Insights/components/appi"
LOGS = f"{PROVIDERS}/Microsoft.OperationalInsights/workspaces/log-grown"
NAMES = Names("s", "rg", "mlw")


class Azure(ArmClient):
    """Answers by id; a list over two pages."""

    def __init__(self, bodies: dict[str, dict[str, Any]]) -> None:
        super().__init__("https://127.0.0.1:1")
        self.bodies = {key.lower(): value for key, value in bodies.items()}

    def request(self, method: str, path: str, api_version: str | None = None, **options: Any) -> Response:
        if path == "https://more":
            return Response(200, {"value": [{"name": "two"}]})
        if path.endswith("/computes"):
            return Response(200, {"value": [{"name": "one"}], "nextLink": "https://more"})
        if path.endswith("/schedules"):
            return Response(200, {"value": []})
        found = self.bodies.get(path.lower())
        return Response(200, found) if found else Response(404, {})


def azure(**more: Any) -> Any:
    workspace = {
        "storageAccount": STORAGE.lower(),
        "keyVault": VAULT,
        "applicationInsights": INSIGHTS,
    }
    return Azure(
        {
            GROUP: {"id": GROUP},
            WORKSPACE: {"id": WORKSPACE, "properties": workspace},
            STORAGE: {"id": STORAGE},
            INSIGHTS: {"id": INSIGHTS, "properties": {"WorkspaceResourceId": LOGS}},
            LOGS: {"id": LOGS},
            **more,
        }
    )


def test_an_estate_is_read_with_ids_in_the_service_s_letters_and_all_pages() -> None:
    found = read_estate(azure(), NAMES)
    assert found.parts == {"storage": STORAGE, "key_vault": VAULT, "insights": INSIGHTS, "logs": LOGS}
    assert [one["name"] for one in found.computes] == ["one", "two"]
    assert read_estate(Azure({}), NAMES) == Estate(None, None)


def test_the_settings_of_an_estate_are_those_under_which_nothing_differs() -> None:
    found = read_estate(azure(), NAMES)
    assert adoption.differs(found, NAMES, adopted=True)
    settings = adoption.workspace_settings(found, NAMES)
    assert settings["storage"] == {"name": "stgrown"}
    assert settings["key_vault"] == {"existing": VAULT}, "in another resource group it is somebody else's"
    assert settings["registry"] == {"absent": True}
    spec = Workspace.model_validate(settings)
    named = Names(
        "s",
        "rg",
        "mlw",
        elsewhere={"key_vault": str(spec.key_vault.existing)},
        called={"storage": "stgrown", "insights": "appi", "logs": "log-grown"},
        without=frozenset({"registry"}),
    )
    assert not adoption.differs(found, named, adopted=True)
    assert adoption.differs(found, named, adopted=False)
    file = ImportFile()
    file.workspace(found, named, "mlw")
    assert file.ids == [GROUP, STORAGE, LOGS, INSIGHTS, WORKSPACE]


def test_a_cluster_becomes_settings_that_the_model_takes() -> None:
    subnet = f"{PROVIDERS}/Microsoft.Network/virtualNetworks/v/subnets/default"
    user = f"{PROVIDERS}/Microsoft.ManagedIdentity/userAssignedIdentities/i"
    aml = {
        "vmSize": "STANDARD_ND96ASR_V4",
        "vmPriority": "LowPriority",
        "subnet": {"id": subnet},
        "enableNodePublicIp": False,
        "scaleSettings": {"minNodeCount": 1, "maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": "PT120S"},
    }
    body = {
        "name": "gpu",
        "location": "West Europe",
        "tags": {"team": "a"},
        "identity": {"type": "SystemAssigned,UserAssigned", "userAssignedIdentities": {user: {}}},
        "properties": {"computeType": "AmlCompute", "computeLocation": "northeurope", "properties": aml},
    }
    settings = adoption.cluster_settings(body, "westeurope")
    assert settings == {
        "name": "gpu",
        "adopted": True,
        "size": "Standard_ND96asr_v4",
        "nodes": {"min": 1, "max": 4, "idle": "PT120S"},
        "priority": "low_priority",
        "subnet": subnet,
        "node_public_ip": False,
        "location": "northeurope",
        "identity": {"user_assigned": [user], "type": "system"},
        "tags": {"team": "a"},
    }
    assert Cluster.model_validate(settings).identity.kind == "system"
    assert adoption.is_cluster(body)
    assert not adoption.is_cluster({"properties": {"computeType": "ComputeInstance"}})


def test_a_cluster_may_be_called_like_a_part_or_a_parent() -> None:
    file = ImportFile()
    file.clusters({"clusters": "/1", "storage": "/2"})
    resources = file.content["resources"]
    assert len({one["name"] for one in resources}) == len(resources)
    assert [one["logicalName"] for one in resources] == ["clusters", "clusters", "storage"]
