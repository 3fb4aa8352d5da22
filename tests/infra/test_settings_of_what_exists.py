"""A workspace that exists is named with nothing beside it that would change it; names and ids follow it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra import roles
from infra.names import Names
from infra.settings import parse
from tests.support.rows import for_each

HERE, THERE = "11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"
ID = f"/subscriptions/{THERE}/resourceGroups/rg-ml/providers/Microsoft.MachineLearningServices/workspaces/mlw"
STORAGE = f"/subscriptions/{THERE}/resourceGroups/rg-data/providers/Microsoft.Storage/storageAccounts/stshared"
INSIGHTS = f"/subscriptions/{THERE}/resourceGroups/rg-data/providers/Microsoft.Insights/components/appi"


def settings(workspace: Any, **more: Any) -> dict[str, Any]:
    return {"location": "westeurope", "workspace": workspace, **more}


@for_each(
    "given, where, words",
    [
        (settings({}), "amlstack:workspace.name", "or one that exists is given by `existing`"),
        (settings({"existing": "mlw"}), "amlstack:workspace.existing", "`resource_group` is missing"),
        (settings({"existing": "/subscriptions/x"}), "amlstack:workspace.existing", "by its ARM id"),
        (settings({"existing": ID, "name": "mlteam"}), "amlstack:workspace.name", "`name` is set beside `existing`"),
        (
            settings({"existing": ID, "public_network": False}),
            "amlstack:workspace.public_network",
            "owns the workspace",
        ),
        (settings({"existing": ID, "storage": {"existing": STORAGE}}), "amlstack:workspace.storage", "is changed"),
        (settings({"existing": ID}, resource_group="rg"), "amlstack:resource_group", "`rg` is not the resource group"),
        (
            settings("mlteam", resource_group={"name": "a", "existing": "b"}),
            "amlstack:resource_group",
            "`name` is set beside `existing`",
        ),
        (
            settings("mlteam", resource_group={"existing": "a."}),
            "amlstack:resource_group.existing",
            "no '.' at the end",
        ),
        (
            settings("mlteam", resource_group={"existing": "rg"}, azurePolicy={}),
            "amlstack:azurePolicy.scope",
            "whoever owns the group assigns the rules",
        ),
        (settings({"existing": ID}, azurePolicy={}), "amlstack:azurePolicy", "the stack that owns the workspace"),
        (
            settings({"name": "mlteam", "storage": {"existing": STORAGE, "name": "stx"}}),
            "amlstack:workspace.storage.name",
            "`name` is set beside `existing`",
        ),
        (settings({"name": "mlteam", "storage": {"existing": "st"}}), "amlstack:workspace.storage.existing", "ARM id"),
        (
            settings({"name": "mlteam", "insights": {"existing": INSIGHTS}, "logs": {"name": "logs-of-ml"}}),
            "amlstack:workspace.logs",
            "write, and those exist already",
        ),
    ],
)
def test_what_does_not_go_together_is_one_finding(given: dict[str, Any], where: str, words: str) -> None:
    (finding,) = parse(given).findings
    assert finding.where == where
    assert words in finding.message


def names(workspace: Any, **more: Any) -> Names:
    reading = parse(settings(workspace, **more))
    assert reading.settings is not None, reading.findings
    return Names.of(reading.settings, project="train", stack="dev", subscription=HERE)


def test_names_follow_a_workspace_by_its_id_into_its_group_and_subscription() -> None:
    found = names({"existing": ID})
    assert found.workspace_id == ID
    assert (found.subscription, found.group, found.workspace) == (THERE, "rg-ml", "mlw")
    assert found.cluster_id("a100") == f"{ID}/computes/a100"
    assert found.identity == "id-mlw-train-dev", "another stack on the same workspace has another one"
    by_name = names({"existing": "mlw"}, resource_group="rg-ml")
    assert by_name.workspace_id == ID.replace(THERE, HERE)


@pytest.mark.parametrize("given", ["rg-team", {"name": "rg-team"}, {"existing": "rg-team"}])
def test_a_resource_group_has_its_name_whoever_owns_it(given: Any) -> None:
    assert names("mlteam", resource_group=given).group == "rg-team"
    found = Names.of_workspace(
        {"workspace": "mlteam", "resource_group": given}, project="train", stack="dev", subscription=HERE
    )
    assert found is not None
    assert found.group == "rg-team"


def test_roles_are_given_on_what_the_workspace_names_wherever_that_lies() -> None:
    found = names({"existing": ID}).standing_on({"storage": STORAGE.replace(THERE, HERE)})
    blob = roles.CLUSTER[0]
    assert found.id(blob.part) == STORAGE.replace(THERE, HERE)
    assert roles.definition_id(found.id(blob.part), blob).startswith(f"/subscriptions/{HERE}/")


def test_a_part_that_exists_has_its_id_and_one_with_a_name_of_its_own_that_name() -> None:
    found = names({"name": "mlteam", "storage": {"existing": STORAGE}, "key_vault": {"name": "kv-adopted"}})
    assert found.id("storage") == STORAGE
    assert found.id("key_vault").endswith("/resourceGroups/rg-train-dev/providers/Microsoft.KeyVault/vaults/kv-adopted")
    assert found.registry == names("mlteam").registry


def test_a_long_name_of_an_identity_is_cut_and_stays_its_own() -> None:
    whole = [
        Names.of(
            parse(settings({"existing": ID})).settings or pytest.fail("faulty"),
            project="p" * 90,
            stack=f"{'s' * 60}{end}",
            subscription=HERE,
        ).identity
        for end in "ab"
    ]
    assert len(set(whole)) == 2
    assert {len(name) for name in whole} == {128}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("resourceGroups", "resourcegroups"),
        ("Microsoft.", "microsoft."),
        ("Microsoft.Insights", "microsoft.insights"),
        ("storageAccounts", "storageaccounts"),
    ],
)
def test_ids_are_taken_in_the_spelling_that_azures_tools_print(before: str, after: str) -> None:
    group = f"/subscriptions/{THERE}/resourceGroups/rg-data/providers"
    identity = f"{group}/Microsoft.ManagedIdentity/userAssignedIdentities/id"
    subnet = f"{group}/Microsoft.Network/virtualNetworks/vnet/subnets/nodes"
    cluster = {"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"max": 1}, "subnet": subnet}
    cluster["identity"] = {"user_assigned": [identity]}
    workspace = {
        "name": "mlteam",
        "storage": {"existing": STORAGE},
        "insights": {"existing": INSIGHTS},
        "key_vault": {"existing": f"{group}/Microsoft.KeyVault/vaults/kv"},
        "network": {"vnet": {"endpoints": subnet, "zones": [f"{group}/Microsoft.Network/privateDnsZones/a.b"]}},
    }
    given = settings(workspace, clusters=[cluster], datastores=[{"name": "d", "account": STORAGE, "container": "c"}])
    text = json.dumps(given)
    assert before in text
    assert parse(json.loads(text)).findings == parse(json.loads(text.replace(before, after))).findings == ()


def test_an_id_of_another_type_is_refused_in_every_spelling() -> None:
    for given in (STORAGE, STORAGE.lower()):
        (finding,) = parse(settings({"name": "mlteam", "key_vault": {"existing": given}})).findings
        assert "It is given by its ARM id" in finding.message
