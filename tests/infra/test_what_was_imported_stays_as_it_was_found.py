"""The engine leaves alone the properties of an imported workspace or cluster that the settings do not state."""

from __future__ import annotations

from typing import Any

import pytest

from infra import security
from infra.properties import (
    CLUSTER_REPLACED_BY,
    CLUSTER_SETTINGS,
    cluster_left_alone,
    cluster_properties,
    workspace_left_alone,
)
from infra.settings import Cluster, Settings, Workspace
from infra.settings.checks import check_existing

MINE: dict[str, Any] = {"name": "gpu", "size": "Standard_ND96asr_v4", "nodes": {"max": 4}}
AML = "properties.properties"


def left_alone(tags: dict[str, str] | None = None, **more: Any) -> set[str]:
    found = cluster_left_alone(Cluster.model_validate({**MINE, "adopted": True, **more}), tags or {})
    assert found is not None
    return set(found)


def test_a_cluster_that_the_stack_made_has_nothing_left_alone() -> None:
    assert cluster_left_alone(Cluster.model_validate(MINE), {}) is None
    assert workspace_left_alone(Workspace(name="mlw"), {}) is None


def test_only_what_the_settings_say_of_a_cluster_is_changed() -> None:
    found = left_alone()
    assert not {f"{AML}.vmSize", f"{AML}.scaleSettings.maxNodeCount"} & found
    assert {f"{AML}.scaleSettings.minNodeCount", f"{AML}.enableNodePublicIp", f"{AML}.vmPriority", "tags"} <= found
    replacing = {wire for wire in CLUSTER_REPLACED_BY if not any(f"{wire}.".startswith(f"{each}.") for each in found)}
    assert replacing == {f"{AML}.vmSize"}, "nothing else may replace what was imported"
    assert {"tags", f"{AML}.enableNodePublicIp", "properties.description"} & left_alone(
        {"team": "a"}, node_public_ip=False, description="x"
    ) == set()


def test_an_administrator_is_given_as_a_whole_or_left_alone_as_one() -> None:
    assert f"{AML}.userAccountCredentials" in left_alone()
    key = f"ssh-rsa {'A' * 80} somebody"
    kept = left_alone(ssh={"user": "admin1", "public_key": key})
    assert not [wire for wire in kept if "userAccountCredentials" in wire]


def test_an_identity_is_changed_where_one_is_given() -> None:
    user = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
    assert "identity" in left_alone(identity="none")
    assert "identity" not in left_alone(identity="system")
    assert "identity" not in left_alone(identity={"user_assigned": [user]})


def test_an_imported_cluster_has_the_letters_in_which_azure_answers() -> None:
    def size(**more: Any) -> str:
        cluster = Cluster.model_validate({**MINE, **more})
        inner = cluster_properties(cluster, location="westeurope", tags={})["properties"]["properties"]
        return str(inner["vmSize"])

    assert (size(), size(adopted=True)) == ("Standard_ND96asr_v4", "STANDARD_ND96ASR_V4")


def test_every_row_of_the_table_is_either_given_or_left_alone() -> None:
    cluster = Cluster.model_validate({**MINE, "adopted": True, "identity": "none"})
    registered = cluster_properties(cluster, location="westeurope", tags={})
    given = {row.wire for row in CLUSTER_SETTINGS if row.path in {("size",), ("nodes", "max")}}
    # computeType says what kind of compute it is: no import has another one.
    assert set(_leaves(registered)) - {"properties.computeType"} <= given | left_alone() | {"identity.type"}


def _leaves(value: Any, path: str = "") -> list[str]:
    if not isinstance(value, dict) or not value:
        return [path]
    return [leaf for name, item in value.items() for leaf in _leaves(item, f"{path}.{name}" if path else name)]


@pytest.mark.parametrize(
    ("setting", "changed"),
    [
        ({"public_network": False}, {"publicNetworkAccess"}),
        ({"identity": "stack"}, {"identity", "primaryUserAssignedIdentity"}),
        ({"encryption": "mine"}, {"encryption", "enableServiceSideCMKEncryption"}),
        ({"locks": True, "diagnostics": True}, set()),
    ],
)
def test_what_the_settings_say_of_security_is_changed(setting: dict[str, Any], changed: set[str]) -> None:
    silent = workspace_left_alone(Workspace(name="mlw", adopted=True), {})
    found = workspace_left_alone(Workspace.model_validate({"name": "mlw", "adopted": True, **setting}), {})
    assert set(silent or ()) - set(found or ()) == changed


def test_an_imported_workspace_gets_no_default_of_security() -> None:
    def security_of(workspace: dict[str, Any], stack: str = "prod") -> security.Security:
        return security.of_stack(Settings.model_validate({"location": "westeurope", "workspace": workspace}), stack)

    assert security_of({"name": "mlw", "adopted": True}) == security_of({"name": "mlw"}, security.SANDBOX)
    assert security_of({"name": "mlw", "adopted": True, "diagnostics": True}).categories
    assert security_of({"name": "mlw", "adopted": True, "identity": "stack"}).identity == "stack"
    assert not security_of(
        {"name": "mlw", "adopted": True, "diagnostics": True, "insights": {"absent": True}}
    ).categories


@pytest.mark.parametrize(
    "setting",
    [
        {"storage": {"name": "stgrown", "soft_delete_days": 7}},
        {"storage": {"redundancy": "zrs"}},
        {"key_vault": {"purge_protection": False}},
        {"public_network": {"allow": ["203.0.113.0/24"]}},
    ],
)
def test_a_setting_that_would_change_an_imported_part_is_a_finding(setting: dict[str, Any]) -> None:
    settings = Settings.model_validate({"location": "westeurope", "workspace": {"name": "mlw", **setting}})
    assert not list(check_existing(settings))
    settings = Settings.model_validate(
        {"location": "westeurope", "workspace": {"name": "mlw", "adopted": True, **setting}}
    )
    assert [finding.code for _, finding in check_existing(settings)] == ["setting-beside-adopted"]


def test_only_what_the_settings_say_of_a_workspace_is_changed() -> None:
    found = workspace_left_alone(Workspace(name="mlw", adopted=True, description="x"), {})
    assert found is not None
    assert {"friendlyName", "storageAccount", "keyVault", "publicNetworkAccess", "identity", "tags"} <= set(found)
    assert "description" not in found
    assert "tags" not in (workspace_left_alone(Workspace(name="mlw", adopted=True), {"team": "a"}) or ["tags"])
