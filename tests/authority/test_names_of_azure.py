"""Zones, service tags, hosts of clouds, resource providers and policy aliases equal those of a second public source."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import date
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from amlstack.base.paths import PROJECT
from amlstack.provider.arm import sign_in
from amlstack.sandbox.kinds.machine_learning import managed_network
from amlstack.sandbox.protocol import addresses
from infra import resource_types
from infra.network import plan
from policies import azure_policy, config

DNS = (
    "MicrosoftDocs/azure-docs 42655f0, articles/private-link/private-endpoint-dns.md, Government and China; dfs and "
    "registry of Government from a later version of the page, read on 2026-11-24"
)
AVM = "Azure/bicep-registry-modules 0020210, avm/ptn/network/private-link-private-dns-zones/main.bicep"
ACR = "the Chinese edition of the same page; it is absent from the English one"
ZONES = {
    AVM: (
        "privatelink.api.azureml.ms privatelink.notebooks.azure.net privatelink.blob.core.windows.net "
        "privatelink.file.core.windows.net privatelink.dfs.core.windows.net privatelink.vaultcore.azure.net "
        "privatelink.azurecr.io"
    ),
    DNS: (
        "privatelink.api.ml.azure.us privatelink.notebooks.usgovcloudapi.net privatelink.blob.core.usgovcloudapi.net "
        "privatelink.file.core.usgovcloudapi.net privatelink.dfs.core.usgovcloudapi.net "
        "privatelink.vaultcore.usgovcloudapi.net privatelink.azurecr.us privatelink.api.ml.azure.cn "
        "privatelink.notebooks.chinacloudapi.cn privatelink.blob.core.chinacloudapi.cn "
        "privatelink.file.core.chinacloudapi.cn privatelink.dfs.core.chinacloudapi.cn privatelink.vaultcore.azure.cn"
    ),
    ACR: "privatelink.azurecr.cn",
}
"""Source → private DNS zones."""

TAGS = [
    "AzureActiveDirectory",
    "AzureContainerRegistry",
    "AzureFrontDoor.FirstParty",
    "AzureMachineLearning",
    "AzureMonitor",
    "AzureResourceManager",
    "BatchNodeManagement",
    "Internet",
    "MicrosoftContainerRegistry",
    "Storage",
    "VirtualNetwork",
]
"""MicrosoftDocs/azure-docs 0006b73, articles/virtual-network/service-tags-overview.md."""

CLOUDS = {
    "public": (
        "management.azure.com",
        "login.microsoftonline.com",
        "core.windows.net",
        "vault.azure.net",
        "azurecr.io",
    ),
    "usgovernment": (
        "management.usgovcloudapi.net",
        "login.microsoftonline.us",
        "core.usgovcloudapi.net",
        "vault.usgovcloudapi.net",
        "azurecr.us",
    ),
    "china": (
        "management.chinacloudapi.cn",
        "login.chinacloudapi.cn",
        "core.chinacloudapi.cn",
        "vault.azure.cn",
        "azurecr.cn",
    ),
}
"""Resource manager, sign-in, suffixes of storage, vaults and registries: Azure/azure-cli 004224f,
src/azure-cli-core/azure/cli/core/cloud.py."""

PROVIDERS = {
    "MicrosoftDocs/azure-docs 004ec53, azure-resource-manager/management/azure-services-resource-providers.md": (
        "Authorization Compute ContainerRegistry Insights KeyVault MachineLearningServices ManagedIdentity Network "
        "OperationalInsights Resources Storage"
    ),
    "Azure/azure-rest-api-specs 6868967, specification/quota/resource-manager/Microsoft.Quota": "Quota",
}
"""Source → namespaces of resource providers, without ``Microsoft.``."""

COMPUTE = "Microsoft.MachineLearningServices/workspaces/computes/"
ALZ = "Azure/Enterprise-Scale 7351fb4, src/resources/Microsoft.Authorization/policyDefinitions/Deny-MachineLearning-"
ALIASES = {
    "computeType": f"{ALZ}Compute-VmSize.json",
    "vmSize": f"{ALZ}Compute-VmSize.json",
    "subnet.id": f"{ALZ}Compute-SubnetId.json",
    "remoteLoginPortPublicAccess": f"{ALZ}ComputeCluster-RemoteLoginPortPublicAccess.json",
    "scaleSettings.maxNodeCount": f"{ALZ}ComputeCluster-Scale.json",
    "scaleSettings.minNodeCount": f"{ALZ}ComputeCluster-Scale.json",
    "scaleSettings.nodeIdleTimeBeforeScaleDown": f"{ALZ}ComputeCluster-Scale.json",
    "disableLocalAuth": "Azure/azure-policy 2528349, policyDefinitions/Machine Learning/DisableLocalAuth_Audit.json",
    "enableNodePublicIp": "MicrosoftDocs/azure-ai-docs a953fb2, articles/ai-foundry/how-to/azure-policy.md, as "
    "`enableNodePublicIP`; Azure Policy takes aliases in any letter case",
}
"""Alias of a compute → a published definition that uses it."""


def source(pattern: str, *paths: str) -> set[str]:
    """The matches of a pattern in tracked files outside tests and examples; in all files where no paths are given."""
    command = ["git", "-C", str(PROJECT), "grep", "-IohE", "--untracked", pattern, "--", *(paths or ("*.py", "*.md"))]
    found = subprocess.run([*command, ":!tests", ":!examples"], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def of_azure_ai_ml() -> set[tuple[str, ...]]:
    """Resource manager, sign-in and audience of each cloud in the installed azure-ai-ml, read without importing it."""
    file = metadata.distribution("azure-ai-ml").locate_file("azure/ai/ml/_azure_environments.py")
    names = ("RESOURCE_MANAGER_ENDPOINT", "ACTIVE_DIRECTORY_ENDPOINT", "AML_RESOURCE_ID")
    pattern = r".*?".join(rf'{name}: "([^"]+?)/?"' for name in names)
    return set(re.findall(pattern, Path(str(file)).read_text("utf-8"), re.DOTALL))


def test_every_private_dns_zone_is_one_of_a_second_source() -> None:
    known = {zone for zones in ZONES.values() for zone in zones.split()}
    assert {zone for kinds in plan.ZONES.values() for zones in kinds.values() for zone in zones} == known
    assert source(r"privatelink\.[a-z]+(\.[a-z]+)+") <= known


def test_every_service_tag_is_one_of_a_second_source() -> None:
    rules = (*plan.OUTBOUND, plan.NODE_MANAGEMENT, plan.NO_INTERNET)
    named = {rule.peer.removesuffix(".{region}") for rule in rules}
    assert named | set(managed_network._TAGS) == set(TAGS)


@pytest.mark.parametrize("cloud", sign_in.CLOUDS, ids=lambda cloud: cloud.name)
def test_hosts_of_a_cloud_are_those_of_the_azure_cli_and_of_azure_ai_ml(cloud: sign_in.Cloud) -> None:
    manager, authority, storage, vault, registry = CLOUDS[cloud.name]
    assert (urlsplit(cloud.endpoint).netloc, cloud.authority) == (manager, authority)
    assert (cloud.endpoint, f"https://{cloud.authority}", cloud.ml_audience) in of_azure_ai_ml()
    zones = plan.ZONES[cloud.name]
    assert zones["blob"] == (f"privatelink.blob.{storage}",)
    assert zones["registry"] == (f"privatelink.{registry}",)
    if cloud is sign_in.PUBLIC:
        assert (authority, f".blob.{storage}", f".{vault}") == (addresses.LOGIN, addresses.BLOB, addresses.VAULT)


def test_every_suffix_of_a_cloud_in_the_source_is_one_of_the_azure_cli() -> None:
    known = {host for hosts in CLOUDS.values() for host in hosts}
    assert source(r"\bcore\.(windows|usgovcloudapi|chinacloudapi)\.[a-z]+", "*.py") <= known
    assert source(r"\bvault\.(azure|usgovcloudapi)\.[a-z]+", "*.py") <= known
    assert source(r"\bazurecr\.[a-z]{2}\b", "*.py") <= known
    assert source(r"\blogin\.(microsoftonline|chinacloudapi)\.[a-z]+", "*.py") <= known
    assert source(r"\bmanagement\.(azure|usgovcloudapi|chinacloudapi)\.[a-z]+", "*.py") <= known


def test_every_resource_provider_is_one_of_a_second_source() -> None:
    known = {f"Microsoft.{name}" for names in PROVIDERS.values() for name in names.split()}
    named = source(r"\bMicrosoft\.[A-Z][A-Za-z]+")
    # As recorded: a workspace's vault is answered in letters of its own, what is below a cluster by its old name.
    assert named == known | {"Microsoft.Keyvault", "Microsoft.BatchAI"}
    registered = next(
        line
        for line in (PROJECT / "docs/how-to/azure.md").read_text("utf-8").splitlines()
        if "az provider register" in line
    )
    for provider in resource_types.PROVIDERS.values():
        assert provider.removeprefix("Microsoft") in registered


def test_every_alias_of_an_exported_definition_is_one_of_a_published_definition() -> None:
    said = {"node-ceiling": {"nodes": 4}, "cluster-budget": {"gpus": 8}}
    made = json.dumps(azure_policy.definitions(config.read(said), on=date(2026, 7, 1), version="1.0.0"))
    used = set(re.findall(rf"{re.escape(COMPUTE)}([\w.]+)", made))
    assert used == set(ALIASES)
