"""As whom clusters act: identities and roles of a stack and of its edits, by the real engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from infra import roles
from infra.names import Names

if TYPE_CHECKING:
    from tests.support.harness import Stack
    from tests.support.running import MakeStack, Sandbox

ROLES = {role.name.lower().replace(" ", "-"): role for role in (*roles.CLUSTER, *roles.CLUSTER_TELEMETRY)}


def cluster(name: str, identity: Any = None) -> dict[str, Any]:
    made = {"name": name, "size": "Standard_ND96asr_v4", "nodes": {"max": 2}}
    return made if identity is None else {**made, "identity": identity}


def granted(one: Stack) -> dict[str, set[str]]:
    """Principal → names of its roles, as the state has them."""
    by_definition = {role.definition: name for name, role in ROLES.items()}
    found: dict[str, set[str]] = {}
    for each in one.resources("RoleAssignment").values():
        definition = each["outputs"]["roleDefinitionId"].rsplit("/", 1)[-1]
        found.setdefault(each["outputs"]["principalId"], set()).add(by_definition[definition])
    return found


@pytest.mark.engine
def test_identities_and_roles_follow_the_clusters(stack: MakeStack, sandbox: Sandbox) -> None:
    one = stack(PROJECT, sandbox=sandbox)
    one.set("amlstack:location", "westeurope").set(
        "amlstack:workspace", {"name": "ws-identities", "identity": "system"}
    )
    one.set("amlstack:protect", "false").set("amlstack:resource_group", "rg-identities")
    shared_by = [cluster("shared"), cluster("shared-too")]
    one.set("amlstack:clusters", [*shared_by, cluster("own", "system"), cluster("former", "system")])

    one.up().ok()
    (shared,) = (each["outputs"]["principalId"] for each in one.resources("UserAssignedIdentity").values())
    made = one.resources("machinelearningservices:Compute")
    own, former = (made[name]["outputs"]["identity"]["principalId"] for name in ("own", "former"))
    assert granted(one) == {each: set(ROLES) for each in (shared, own, former)}
    assert one.preview("--refresh").ok().changes == {}, "what the sandbox answers is what was declared"

    # A scale that changes is no reason to touch a role, even one whose principal is the cluster's own. Another identity
    # is a replacement unless the settings trust Azure to change it; the former principal's roles go. A cluster that is
    # replaced keeps the stack's identity, and no role is assigned anew.
    one.set("amlstack:clusters[0].size", "Standard_ND96amsr_A100_v4").set("amlstack:clusters[2].nodes.max", 3)
    one.set("amlstack:clusters[3].identity", "none")
    assert one.preview().ok().op("former", "Compute") == "replace"
    one.set("amlstack:clusters[3].identity_change", "in_place")
    changed = one.up().ok()
    assert changed.op("shared", "Compute") == "replace"
    others = {step.name: step.op for step in changed.planned if step.op != "same" and step.name != "shared"}
    assert others == {"own": "update", "former": "update", **{f"former-{name}": "delete" for name in ROLES}}
    assert granted(one) == {shared: set(ROLES), own: set(ROLES)}

    # Who may not assign roles leaves that to somebody who may.
    one.set("amlstack:assign_roles", value=False)
    assert {step.type for step in one.preview().ok().planned if step.op == "delete"} == {
        "azure-native:authorization:RoleAssignment"
    }


def test_names_of_role_assignments_differ_by_role_scope_and_holder() -> None:
    names = Names("s", "rg", "ws")
    made = [
        roles.assignment_name(at.id(role.part), role, holder)
        for role in roles.CLUSTER
        for at in (names, Names("s", "rg", "other"))
        for holder in ("/a", "/b")
    ]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name) for name in made)
    role = roles.CLUSTER[0]
    assert roles.assignment_name("/s", role, "/A") == roles.assignment_name("/S", role, "/a"), "ARM ignores case"


def test_the_page_on_identities_names_every_role_with_its_id() -> None:
    page = (PROJECT / "docs/explanation/identities.md").read_text()
    for role in (*roles.CLUSTER, *roles.CLUSTER_TELEMETRY, *roles.WORKSPACE, roles.ENCRYPTION):
        assert f"| {role.name} | `{role.definition}` |" in page
        assert role.why in page
