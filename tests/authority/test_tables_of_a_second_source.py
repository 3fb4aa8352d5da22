"""Roles, families of quota, sizes, prices and api-versions equal those that a second public source has.

`tables/sources.csv` names repository, commit and path of each table. What differs is listed here with what is known of
it; nothing else may differ.
"""

from __future__ import annotations

import re
import subprocess

from amlstack.base import api_versions
from amlstack.base.paths import PROJECT
from amlstack.catalog import environments, resources, sizes
from amlstack.catalog.files import rows
from amlstack.sandbox.protocol import addresses
from tests.support.catalog.second_source import TABLES, table

RENAMED = {
    # Azure changed the name of a role; its id stays.
    "Arc machine Administrator Login": "Virtual Machine Administrator Login",
    "Arc machine Contributor": "Virtual Machine Contributor",
    "Arc machine User Login": "Virtual Machine User Login",
    "Cognitive Services Data Reader (Preview)": "Cognitive Services Data Reader",
    "IPAM Pool Contributor": "IPAM Pool User",
    "Kubernetes Agentless Operator": "Defender Kubernetes API Access",
    "Managed Applications Reader": "Managed Application Publisher Operator",
    "Role Based Access Control Administrator (Preview)": "Role Based Access Control Administrator",
    "Security Administrator": "Security Admin",
    "VM Scanner Operator": "Defender Agentless VM Scan",
    "Web PubSub Service Owner (Preview)": "Web PubSub Service Owner",
    "Web PubSub Service Reader (Preview)": "Web PubSub Service Reader",
}
ROLES_DIFFER = {
    # One module names the administrator's id so; another module, and Azure's list, name it the administrator.
    ("App Compliance Automation Reader", "0f37683f-2463-46b6-9ce7-9b788b988ba2"),
}
FAMILIES_DIFFER = {
    # Of virtual machines; Azure ML's quota has another name for them (the table ml_families).
    "ND96isr_H100_v5": "standardNDv5H100Family",
}
PRICES_DIFFER = {
    # Azure raised it: 8.82 in Karpenter's table of 2026-06-18.
    ("NCC40ads_H100_v5", "eastus2"): 8.82,
}
MEMORY_DIFFERS = {
    # Microsoft's page of the series says 1900 GiB, the interface that SkyPilot reads says 1800.
    "ND96amsr_A100_v4": 1900,
}


def test_every_table_names_repository_commit_and_path() -> None:
    named = {row["table"] for row in table("sources")}
    assert named == {file.stem for file in TABLES.glob("*.csv")} - {"sources"}
    for row in table("sources"):
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", row["repository"])
        assert re.fullmatch(r"[0-9a-f]{40}", row["commit"])
        assert row["path"]


def test_names_and_ids_of_built_in_roles() -> None:
    built_in = resources.built_in()
    known = {(row["name"], row["id"]) for row in table("roles")} - ROLES_DIFFER
    assert {pair for pair in known if built_in.get(RENAMED.get(pair[0], pair[0])) != pair[1]} == set()
    assert len(known) > 250


def test_families_of_quota() -> None:
    found = {name: row["family"] for row in table("families") for name in row["sizes"].split()}
    of_ours = {name: size.family for name in found if (size := sizes.get(f"Standard_{name}")) is not None}
    assert of_ours == found | FAMILIES_DIFFER
    assert len(found) > 350


def test_families_of_the_quota_of_azure_ml() -> None:
    for row in table("ml_families"):
        for name in row["sizes"].split():
            size = sizes.get(f"Standard_{name}")
            assert size is not None
            # The page writes the first letter small; Azure answers it as the recorded usages below.
            assert (size.family or "").casefold() == row["family"].casefold(), name
    ours = {size.family for size in sizes.all_sizes() if size.family}
    recorded = {row["family"] for row in table("ml_usages")}
    assert {one.casefold() for one in recorded - ours}.isdisjoint(one.casefold() for one in ours)
    assert len(recorded & ours) > 25


def test_sizes_as_the_interface_of_skus_lists_them() -> None:
    for row in table("sizes"):
        size = sizes.get(row["name"])
        assert size is not None
        assert (size.family, size.vcpus, size.memory_gib) == (
            row["family"],
            int(row["vcpus"]),
            float(row["memory_gib"]),
        )
        assert (size.gpus, size.architecture) == (int(row["gpus"]), row["architecture"])
        assert size.fabric.rdma == (row["rdma"] == "True")


def test_prices_and_memory_of_sizes_with_gpus() -> None:
    compared = 0
    for row in table("prices"):
        name = row["size"]
        size = sizes.get(f"Standard_{name}")
        assert size is not None
        assert size.vcpus == int(row["vcpus"])
        assert size.memory_gib == MEMORY_DIFFERS.get(name, float(row["memory_gib"]))
        ours = {price.region: price.usd for price in size.prices}
        theirs = dict(part.split("=") for part in row["usd"].split())
        for region in theirs if ours else ():  # a retired size has no price any more
            assert ours[region] == PRICES_DIFFER.get((name, region), float(theirs[region])), (name, region)
            compared += 1
    assert compared > 80


def test_api_versions_that_published_templates_use_are_taken() -> None:
    ours = addresses.known_versions()
    for row in table("api_versions"):
        assert set(row["versions"].split()) <= set(ours[row["type"].lower()]), row["type"]


def test_every_region_with_a_price_is_a_public_one() -> None:
    public = {name for row in rows("regions") if row["kind"] == "public" for name in row["names"]}
    assert {row["region"] for row in table("regions")} <= public


def test_curated_environments_are_those_that_microsoft_builds_or_built() -> None:
    built = {row["name"] for row in table("environments")}
    today = {one.name for one in environments.all_environments()}
    assert today <= built
    assert {name for name in built - today if environments.retired(name) is None} == set()


OWN = {
    "Microsoft.Resources/resourceGroups": api_versions.RESOURCES,
    "Microsoft.MachineLearningServices/workspaces": api_versions.MACHINE_LEARNING,
    "Microsoft.Storage/storageAccounts": api_versions.STORAGE,
    "Microsoft.KeyVault/vaults": api_versions.VAULTS,
    "Microsoft.Authorization/policyAssignments": api_versions.POLICIES,
    "Microsoft.ContainerRegistry/registries": api_versions.OF_PARTS["registry"],
    "Microsoft.Insights/components": api_versions.OF_PARTS["insights"],
    "Microsoft.OperationalInsights/workspaces": api_versions.OF_PARTS["logs"],
}
OTHER_VERSIONS = {
    "amlstack/base/api_versions.py": "the one place",
    "amlstack/cli/refresh.py": "of the list of retail prices, at another host",
    "amlstack/cli/rehearsal/fetching.py": "of blobs, at the host of an input",
    "amlstack/provider/runs.py": "of jobs, as azure-ai-ml sends them",
}


def test_api_versions_that_we_ask_with_are_ones_of_their_types_and_stand_in_one_place() -> None:
    assert {name for name, version in OWN.items() if version not in addresses.known_versions()[name.lower()]} == set()
    literal = r'"20[12][0-9]-[0-9]{2}-[0-9]{2}(-preview)?"'
    command = ["git", "-C", str(PROJECT), "grep", "-IlE", "--untracked", literal, "--", "amlstack/*.py", "infra/*.py"]
    found = subprocess.run([*command, "deploy/*.py", ":!amlstack/sandbox"], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) == set(OTHER_VERSIONS)
