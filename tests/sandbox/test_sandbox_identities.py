"""Managed identities and role assignments of the sandbox: principals that exist, assignments that are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.sandbox.sandbox_client import ROOT, cluster

if TYPE_CHECKING:
    from tests.support.sandbox.sandbox_client import Arm

BLOBS = f"{ROOT}/providers/Microsoft.Authorization/roleDefinitions/ba92f5b4-2d11-453d-a403-e96b0029c9fe"
PULL = f"{ROOT}/providers/Microsoft.Authorization/roleDefinitions/7f951dda-4ed3-4680-a7ca-43fe172d538d"
NO_ROLE = f"{ROOT}/providers/Microsoft.Authorization/roleDefinitions/7f951dda-4ed3-4680-a7ab-4043f3ef6b7e"
NAME = "7a2c1a53-2f0f-4f5e-9f6a-1d3f4a2b5c6d"
NOBODY = "00000000-0000-0000-0000-000000000001"


def assignment(scope: str, name: str = NAME) -> str:
    return f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"


def body(principal: str, role: str = BLOBS, **more: Any) -> dict[str, Any]:
    return {"properties": {"roleDefinitionId": role, "principalId": principal, **more}}


@pytest.fixture
def identity(arm: Arm, request: pytest.FixtureRequest) -> tuple[str, str]:
    """ARM id and principal of a user-assigned identity in a group of its own."""
    group = arm.make_group(f"ids-{abs(hash(request.node.name)) % 10**8}")
    path = f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/id-1"
    made = arm.put(path, {"location": "eastus"})
    assert made.status == 201
    return path, made.body["properties"]["principalId"]


def test_a_role_assignment_lies_on_a_resource_and_goes_with_it(arm: Arm, identity: tuple[str, str]) -> None:
    scope, principal = identity
    made = arm.put(assignment(scope), body(principal, principalType="ServicePrincipal"))
    assert made.status == 201
    assert made.body["properties"]["scope"] == scope
    assert arm.get(assignment(scope)).body["properties"]["principalId"] == principal
    again = arm.put(assignment(scope), body(principal, description="for training"))
    assert (again.status, again.body["properties"]["description"]) == (200, "for training")

    assert arm.call("DELETE", scope).status == 200
    assert arm.get(assignment(scope)).error[:2] == (404, "ParentResourceNotFound")


@pytest.mark.parametrize(
    ("name", "given", "refused"),
    [
        (NAME, body(NOBODY), (400, "PrincipalNotFound")),
        ("no-uuid", None, (400, "InvalidResourceName")),
        (NAME, {"properties": {"roleDefinitionId": "Contributor"}}, (400, "InvalidRequestContent")),
        (NAME, {"properties": {"principalId": NOBODY}}, (400, "InvalidRequestContent")),
        (NAME, body(NOBODY, NO_ROLE), (400, "RoleDefinitionDoesNotExist")),
    ],
)
def test_a_role_assignment_that_is_not_whole_is_refused(
    arm: Arm, identity: tuple[str, str], name: str, given: dict[str, Any] | None, refused: tuple[int, str]
) -> None:
    scope, principal = identity
    assert arm.put(assignment(scope, name), given or body(principal)).error[:2] == refused


def test_a_role_is_assigned_once_and_never_to_somebody_else(arm: Arm, identity: tuple[str, str]) -> None:
    scope, principal = identity
    other = NAME.replace("7a2c1a53", "11111111")
    assert arm.put(assignment(scope), body(principal)).status == 201
    assert arm.put(assignment(scope, other), body(principal)).error[:2] == (409, "RoleAssignmentExists")
    assert arm.put(assignment(scope), body(principal, PULL)).error[:2] == (400, "RoleAssignmentUpdateNotPermitted")
    assert arm.put(assignment(scope, other), body(principal, PULL)).status == 201


def test_a_cluster_answers_with_the_principals_of_its_identities(arm: Arm, identity: tuple[str, str]) -> None:
    user, principal = identity
    workspace = arm.make_workspace("identified")
    path = f"{workspace}/computes/gpu"
    wanted = {**cluster(), "identity": {"type": "SystemAssigned,UserAssigned", "userAssignedIdentities": {user: {}}}}

    made = arm.put(path, wanted)
    arm.finish(made)

    shown = arm.get(path).body["identity"]
    assert shown["userAssignedIdentities"][user]["principalId"] == principal
    assert shown["principalId"] not in ("", principal)
    changed = arm.put(path, {**cluster(), "identity": {"type": "None"}})
    assert (changed.status, changed.body["identity"]) == (201, {"type": "None"})
    lost = {"type": "UserAssigned", "userAssignedIdentities": {f"{user}x": {}}}
    assert arm.put(path, {**cluster(), "identity": lost}).error[:2] == (400, "FailedIdentityOperation")


def test_an_identity_that_is_made_anew_is_another_principal(arm: Arm, identity: tuple[str, str]) -> None:
    path, principal = identity
    assert arm.call("DELETE", path).status == 200
    assert arm.put(path, {"location": "eastus"}).body["properties"]["principalId"] != principal
