"""Names and ids are made from where things belong, and keep to Azure's rules."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.names import Names, resolve_account
from infra.settings import Settings

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
NAMES = Names(SUBSCRIPTION, "rg-team", "aml-team")


def test_the_same_place_gives_the_same_names() -> None:
    assert replace(NAMES) == NAMES
    assert NAMES.storage == replace(NAMES, group="RG-Team").storage  # ARM ids know no letter case


@pytest.mark.parametrize(
    "change", [{"subscription": "x"}, {"group": "rg-other"}, {"workspace": "aml-two"}, {"salt": "2"}]
)
def test_another_place_gives_other_names(change: dict[str, str]) -> None:
    other = replace(NAMES, **change)
    assert {NAMES.storage, NAMES.key_vault, NAMES.registry}.isdisjoint({other.storage, other.key_vault, other.registry})


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{2,32}", fullmatch=True))
def test_names_keep_to_the_rules_of_azure(workspace: str) -> None:
    names = replace(NAMES, workspace=workspace)
    assert re.fullmatch(r"[a-z0-9]{3,24}", names.storage)
    assert re.fullmatch(r"(?!.*--)[a-z][a-z0-9-]{1,22}[a-z0-9]", names.key_vault)
    assert re.fullmatch(r"[a-z0-9]{5,50}", names.registry)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{2,61}[A-Za-z0-9]", names.logs)


def test_ids_are_composed_from_names() -> None:
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-team"
    assert NAMES.cluster_id("a100") == (
        f"{group}/providers/Microsoft.MachineLearningServices/workspaces/aml-team/computes/a100"
    )


def test_the_resource_group_has_a_name_by_itself() -> None:
    settings = Settings.model_validate({"location": "westeurope", "workspace": "aml-team"})
    names = Names.of(settings, project="amlstack", stack="dev", subscription=SUBSCRIPTION)
    assert names.group == "rg-amlstack-dev"


@pytest.mark.parametrize(
    ("config", "environ", "keys"),
    [
        ({}, {}, ["azure-native:subscriptionId", "azure-native:tenantId"]),
        ({"azure-native:subscriptionId": SUBSCRIPTION}, {"ARM_TENANT_ID": SUBSCRIPTION}, []),
        ({}, {"AZURE_SUBSCRIPTION_ID": SUBSCRIPTION, "AZURE_TENANT_ID": SUBSCRIPTION}, []),
        (
            {"azure-native:subscriptionId": "my-subscription"},
            {"ARM_TENANT_ID": SUBSCRIPTION},
            ["azure-native:subscriptionId"],
        ),
    ],
)
def test_a_missing_account_is_a_finding(config: dict[str, str], environ: dict[str, str], keys: list[str]) -> None:
    _, found = resolve_account(config, environ)
    assert [finding.where for finding in found] == keys
    assert all("az account show" in finding.message for finding in found)
