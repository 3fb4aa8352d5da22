"""Azure Policy on the sandbox: definitions, initiatives, assignments, and what is refused because of them."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from policies import azure_policy, config
from tests.support.sandbox.sandbox_client import ROOT, cluster

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

AUTH = "providers/Microsoft.Authorization"
DEFINITION, SET = f"{ROOT}/{AUTH}/policyDefinitions/no-nd", f"{ROOT}/{AUTH}/policySetDefinitions/all"
COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
EFFECT = {"type": "String", "allowedValues": ["Audit", "Deny", "Disabled"], "defaultValue": "Audit"}


def definition(condition: Any = None, mode: str = "All") -> dict[str, Any]:
    condition = condition or {
        "allOf": [
            {"field": "type", "equals": COMPUTES},
            {"field": f"{COMPUTES}/vmSize", "equals": "Standard_ND96isr_H100_v5"},
        ]
    }
    rule = {"if": condition, "then": {"effect": "[parameters('effect')]"}}
    return {"properties": {"displayName": "No ND", "mode": mode, "policyRule": rule, "parameters": {"effect": EFFECT}}}


def initiative(**more: Any) -> dict[str, Any]:
    reference = {
        "policyDefinitionId": DEFINITION,
        "policyDefinitionReferenceId": "nd",
        "parameters": {"effect": {"value": "[parameters('nd')]"}},
        **more,
    }
    return {"properties": {"policyDefinitions": [reference], "parameters": {"nd": EFFECT}}}


def assignment(effect: str = "Deny", **more: Any) -> dict[str, Any]:
    given = {"policyDefinitionId": SET, "parameters": {"nd": {"value": effect}}, **more}
    return {"properties": {"displayName": "Ours", **given}}


@pytest.fixture
def group(manager: Manager) -> str:
    """The group of the manager's workspace; definition and initiative exist."""
    assert manager.call("PUT", DEFINITION, definition())[0] == 201
    assert manager.call("PUT", SET, initiative())[0] == 201
    return manager.workspace.partition("/providers/")[0]


def compute(manager: Manager, name: str = "gpu", size: str = "Standard_ND96isr_H100_v5") -> tuple[int, Any]:
    return manager.call("PUT", f"{manager.workspace}/computes/{name}", cluster(size))


def test_what_an_assignment_denies_is_refused_in_azures_words(manager: Manager, group: str) -> None:
    reasons = [{"message": "No ND here. [x]", "policyDefinitionReferenceId": "nd"}]
    path = f"{group}/{AUTH}/policyAssignments/ours"
    status, answer = manager.call("PUT", path, assignment(nonComplianceMessages=reasons))
    assert (status, answer["properties"]["scope"]) == (201, group)

    status, error = compute(manager)

    assert (status, error["code"], error["target"]) == (403, "RequestDisallowedByPolicy", "gpu")
    why = "Resource 'gpu' was disallowed by policy. Reason: 'No ND here. [x]'. Policy identifiers: '[{"
    assert error["message"].startswith(f'{why}"policyAssignment"')
    (more,) = error["additionalInfo"]
    assert more["type"] == "PolicyViolation"
    assert more["info"]["policyDefinitionId"] == DEFINITION
    assert more["info"]["policySetDefinitionId"] == SET
    assert more["info"]["policyAssignmentId"] == path
    assert manager.call("GET", f"{manager.workspace}/computes/gpu")[0] == 404
    assert compute(manager, size="Standard_ND40rs_v2")[0] == 201


@pytest.mark.parametrize(
    "changed",
    [
        {"effect": "Audit"},
        {"effect": "Disabled"},
        {"enforcementMode": "DoNotEnforce"},
        {"notScopes": ["{workspace}"]},
        {"policyDefinitionId": DEFINITION, "parameters": {}},
    ],
    ids=["audit", "disabled", "not-enforced", "left-out", "default-effect"],
)
def test_what_is_not_denied_is_let_through(manager: Manager, group: str, changed: dict[str, Any]) -> None:
    messages = {**changed}
    if "notScopes" in messages:
        messages["notScopes"] = [manager.workspace.upper()]
    status, answer = manager.call("PUT", f"{group}/{AUTH}/policyAssignments/ours", assignment(**messages))
    assert status == 201, answer

    assert compute(manager)[0] == 201


def test_a_subscription_reaches_every_group_and_a_group_only_itself(manager: Manager, group: str) -> None:
    other = f"{ROOT}/resourceGroups/other"
    manager.call("PUT", other, {"location": "eastus"})
    manager.call("PUT", f"{other}/{AUTH}/policyAssignments/ours", assignment())
    assert compute(manager, "one")[0] == 201

    assert manager.call("PUT", f"{ROOT}/{AUTH}/policyAssignments/ours", assignment())[0] == 201
    assert compute(manager, "two")[0] == 403
    assert group


def test_a_removed_assignment_denies_nothing_and_a_group_takes_its_own_along(manager: Manager, group: str) -> None:
    path = f"{group}/{AUTH}/policyAssignments/ours"
    manager.call("PUT", path, assignment())
    assert manager.call("DELETE", path)[0] == 200
    assert compute(manager)[0] == 201

    manager.call("PUT", path, assignment())
    manager.call("DELETE", group)
    manager.settle()
    manager.call("PUT", group, {"location": "eastus"})
    assert manager.call("GET", path)[0] == 404
    assert manager.call("GET", DEFINITION)[0] == 200


def test_indexed_definitions_judge_what_has_a_place(manager: Manager, group: str) -> None:
    untagged = {"field": "tags['team']", "exists": "false"}
    manager.call("PUT", DEFINITION, definition(untagged, mode="Indexed"))
    manager.call("PUT", f"{group}/{AUTH}/policyAssignments/ours", assignment())
    storage = f"{group}/providers/Microsoft.Storage/storageAccounts/tagless"
    body = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}

    assert manager.call("PUT", storage, body)[1]["code"] == "RequestDisallowedByPolicy"
    assert manager.call("PUT", storage, {**body, "tags": {"Team": "a"}})[0] == 202
    assert manager.call("PUT", f"{manager.workspace}/codes/c/versions/1", {"properties": {}})[0] != 403


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (DEFINITION, definition({"field": "name", "sounds": "x"}), 501, "SandboxNotEmulated"),
        (DEFINITION, {"properties": {"policyRule": {"if": {}}}}, 400, "InvalidPolicyRule"),
        (f"{ROOT}/resourceGroups/rg/{AUTH}/policyDefinitions/x", definition(), 400,
         "InvalidCreatePolicyDefinitionRequest"),
        (SET, initiative(policyDefinitionId=f"{DEFINITION}x"), 404, "PolicyDefinitionNotFound"),
        (SET, initiative(parameters={"efect": {"value": "Deny"}}), 400, "UndefinedPolicyParameter"),
        (SET, initiative(parameters={"effect": {"value": "[parameters('x')]"}}), 400, "InvalidPolicySetDefinition"),
        (f"{ROOT}/{AUTH}/policyAssignments/a", {"properties": {}}, 400, "InvalidPolicyAssignment"),
        (f"{ROOT}/{AUTH}/policyAssignments/a", assignment(policyDefinitionId=f"{SET}x"), 404,
         "PolicySetDefinitionNotFound"),
        (f"{ROOT}/{AUTH}/policyAssignments/a", assignment("Refuse"), 400, "PolicyParameterValueNotAllowed"),
        (f"{ROOT}/{AUTH}/policyAssignments/a.", assignment(), 400, "InvalidResourceName"),
        (f"{ROOT}/{AUTH}/roleDefinitions/a", {"properties": {}}, 501, "SandboxNotEmulated"),
    ],
)  # fmt: skip
def test_what_cannot_be_assigned_is_refused_by_name(  # noqa: PLR0917
    manager: Manager, group: str, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    seen, error = manager.call("PUT", path, body)

    assert group
    assert (seen, error["code"]) == (status, code), error


def test_definitions_of_a_subscription_are_listed(manager: Manager, group: str) -> None:
    status, answer = manager.call("GET", f"{ROOT}/{AUTH}/policyDefinitions")

    assert group
    assert (status, [one["name"] for one in answer["value"]]) == (200, ["no-nd"])


@pytest.mark.parametrize(
    ("size", "scale", "code"),
    [
        ("Standard_ND96isr_H100_v5", {"maxNodeCount": 40}, "node-ceiling"),
        ("Standard_NC24ads_A100_v4", {"maxNodeCount": 8}, "node-ceiling"),
        ("Standard_NC24ads_A100_v4", {"maxNodeCount": 2}, "sriov-fabric"),
        ("Standard_ND96isr_H100_v5", {"maxNodeCount": 3}, "cluster-budget"),
        ("Standard_ND96isr_H100_v5", {"maxNodeCount": 2, "minNodeCount": 1}, "scale-to-zero"),
        ("Standard_ND96isr_H100_v5", {"maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "P1D"}, "idle-time"),
        ("Standard_ND96isr_H100_v5", {"maxNodeCount": 2}, ""),
        ("Standard_NC24ads_A100_v4", {"maxNodeCount": 1, "nodeIdleTimeBeforeScaleDown": "PT1H"}, ""),
    ],
)
def test_the_rules_as_exported_refuse_the_scale_of_a_raw_request(
    manager: Manager, size: str, scale: dict[str, Any], code: str
) -> None:
    levels = dict.fromkeys(("scale-to-zero", "idle-time"), "mandatory")
    said = config.read({"node-ceiling": {"nodes": 4}, "cluster-budget": {"gpus": 16}, **levels})
    for one in azure_policy.definitions(said, on=date(2026, 7, 1), version="1.0.0"):
        if one["properties"]["parameters"]["effect"]["defaultValue"] == "Deny":
            assign(manager, one["name"], {"properties": one["properties"]})
    body = cluster(size)
    body["properties"]["properties"]["scaleSettings"] = {
        "minNodeCount": 0, "nodeIdleTimeBeforeScaleDown": "PT10M", **scale
    }  # fmt: skip
    body["properties"] |= {"disableLocalAuth": True}

    status, answer = manager.call("PUT", f"{manager.workspace}/computes/gpu", body)

    if code:
        assert (status, answer["code"]) == (403, "RequestDisallowedByPolicy")
        assert f"amlstack-{code}" in str(answer)
    else:
        assert status == 201, answer


def acting(kind: str, then: dict[str, Any], condition: Any = None) -> dict[str, Any]:
    """A definition about all resources of a type, or those of them for which a condition holds."""
    about = {"allOf": [{"field": "type", "equals": kind}, *([condition] if condition else [])]}
    return {"properties": {"displayName": "Ours", "mode": "All", "policyRule": {"if": about, "then": then}}}


def modify(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"effect": "modify", "details": {"roleDefinitionIds": [], "operations": list(operations)}}


def writes(field: str, value: Any, operation: str = "addOrReplace") -> dict[str, Any]:
    return modify({"operation": operation, "field": field, "value": value})


def assign(manager: Manager, name: str, body: dict[str, Any]) -> None:
    """A definition, and its assignment to the group of the manager's workspace."""
    group = manager.workspace.partition("/providers/")[0]
    place = f"{ROOT}/{AUTH}/policyDefinitions/{name}"
    assert manager.call("PUT", place, body)[0] == 201
    given = {"properties": {"policyDefinitionId": place}}
    assert manager.call("PUT", f"{group}/{AUTH}/policyAssignments/{name}", given)[0] == 201


@pytest.mark.parametrize(
    ("kind", "then", "path", "expected"),
    [
        (COMPUTES, writes("tags['team']", "speech"), ("tags", "team"), "speech"),
        (COMPUTES, writes("tags.team", "speech", "add"), ("tags", "team"), "speech"),
        (COMPUTES, {"effect": "append", "details": [{"field": "tags['team']", "value": "speech"}]},
         ("tags", "team"), "speech"),
        (COMPUTES, writes(f"{COMPUTES}/disableLocalAuth", True), ("properties", "disableLocalAuth"), True),
        (COMPUTES, writes(f"{COMPUTES}/enableNodePublicIp", False),
         ("properties", "properties", "enableNodePublicIp"), False),
        (COMPUTES, writes(f"{COMPUTES}/vmSize", "Standard_ND40rs_v2"),
         ("properties", "properties", "vmSize"), "STANDARD_ND40RS_V2"),
    ],
    ids=["tag", "tag-added", "tag-appended", "property", "property-inside", "property-replaced"],
)  # fmt: skip
def test_a_policy_writes_into_a_request(
    manager: Manager, kind: str, then: dict[str, Any], path: tuple[str, ...], expected: Any
) -> None:
    assign(manager, "writes", acting(kind, then))
    status, answer = compute(manager)
    assert status == 201, answer
    value = manager.call("GET", f"{manager.workspace}/computes/gpu")[1]
    for step in path:
        value = value[step]
    assert value == expected


def test_an_addition_leaves_what_is_there_and_a_removal_takes_it(manager: Manager) -> None:
    assign(manager, "adds", acting(COMPUTES, writes(f"{COMPUTES}/vmSize", "Standard_ND40rs_v2", "add")))
    assign(manager, "removes", acting(COMPUTES, modify({"operation": "remove", "field": "tags['draft']"})))
    body = {**cluster("Standard_ND96asr_v4"), "tags": {"draft": "yes", "team": "speech"}}
    assert manager.call("PUT", f"{manager.workspace}/computes/gpu", body)[0] == 201
    _, made = manager.call("GET", f"{manager.workspace}/computes/gpu")
    assert made["properties"]["properties"]["vmSize"] == "STANDARD_ND96ASR_V4"
    assert made["tags"] == {"team": "speech"}


def test_a_denial_sees_what_was_written_before_it(manager: Manager) -> None:
    is_open = {"field": f"{COMPUTES}/disableLocalAuth", "notEquals": True}
    assign(manager, "closed-only", acting(COMPUTES, {"effect": "deny"}, is_open))
    assert compute(manager, "one")[0] == 403
    assign(manager, "closes", acting(COMPUTES, writes(f"{COMPUTES}/disableLocalAuth", True)))
    assert compute(manager, "two")[0] == 201


def test_appending_another_value_refuses_the_request(manager: Manager) -> None:
    then = {"effect": "append", "details": [{"field": f"{COMPUTES}/vmSize", "value": "Standard_ND40rs_v2"}]}
    assign(manager, "sized", acting(COMPUTES, then))
    status, error = compute(manager)
    assert (status, error["code"]) == (403, "RequestDisallowedByPolicy")
    assert error["additionalInfo"][0]["info"]["policyDefinitionEffect"] == "append"


def test_two_policies_that_disagree_are_named_and_not_chosen_between(manager: Manager) -> None:
    assign(manager, "one", acting(COMPUTES, writes("tags['team']", "speech")))
    assign(manager, "other", acting(COMPUTES, writes("tags['team']", "vision")))
    status, error = compute(manager)
    assert status >= 400
    assert "two policies that write different values to 'tags['team']'" in error["message"]
