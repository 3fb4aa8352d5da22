"""Every UUID in the source is a fact of Azure with a source, or is listed here as made up."""

from __future__ import annotations

import re
import subprocess

from amlstack.base.paths import PROJECT
from amlstack.catalog import resources
from infra import data
from infra import roles as assigned
from tests.support.catalog.second_source import table

UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
DATA = (
    "amlstack/catalog/data/roles.json",
    "policies/tenant/data/definitions.json",
    "policies/tenant/data/initiatives.json",
)
"""Files of facts that name their sources."""
PUBLIC = {
    "a232010e-820c-4083-83bb-3ace5fc29d0b": "Azure Cosmos DB as an application: "
    "learn.microsoft.com/azure/cosmos-db/how-to-setup-customer-managed-keys (2026-11-24)",
}
ZEROS = "00000000-0000-0000-0000-000000000000"
MADE_UP = {
    # Namespaces of role assignments' names.
    "infra/roles.py": "6f6ad1b5-4a0c-5b8e-9d0e-0a7f0f2f4c11 0b7f5a52-6c0e-4f0d-9a51-6f4f7b3a2d90",
    "deploy/team/Pulumi.dev.yaml": ZEROS,  # of no subscription
    "deploy/state/__main__.py": "0f0c7a0e-6f4d-5c55-9c1b-3f6a0b1d9e27",
    "infra/names.py": ZEROS,  # of no subscription
    "infra/settings/repair.py": ZEROS,
    "amlstack/cli/stack/bring_up.py": ZEROS,
    "amlstack/provider/types/versions.py": "8f9a7a3c-6a52-4c7e-9a57-6e6d4b0f4a11",  # namespace of versions of data
    "amlstack/sandbox/kinds/neighbours.py": "8f2f7f5e-6d0c-4c1c-9d57-0c6f0e4a9b11",  # of instrumentation keys
    # The sandbox's tenant, client, subscriptions and principal.
    "amlstack/sandbox/protocol/entra.py": "0a3c1f6e-52b0-4f59-9d0e-7d1c5a4b2e10 1b7d2c48-8a61-4e0b-b6a5-3f2e9c1d7a20 "
    "2c5e9a70-1d34-4b8f-a2c7-6e0f4d8b3c30 3d6fab81-2e45-4c90-b3d8-7f105e9c4d40 4e7fbc92-3f56-4da1-84e9-80216fad5e50 "
    "5f80cda3-4067-4eb2-95fa-91327c0fae60",
    # Pulumi's own sentinels, compared with its SDK elsewhere.
    "amlstack/base/pulumi_wire.py": "030794c1-ac77-496b-92df-f27374a8bd58 04da6b54-80e4-46f7-96ec-b56ff0331ba9 "
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7 3eeb2bf0-c639-47a8-9e75-3b44932eb421 6a19a0b0-7e62-4c92-b797-7f8e31da9cc2 "
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff e48ece36-62e2-4504-bad9-02848725956a",
    "tools/bench/scale.py": "11111111-1111-1111-1111-111111111111",  # a subscription
    "docs/how-to/data.md": "1f0e2d3c-4b5a-4968-8776-655443322110",  # a group of the example
    # Ids that a run of the example printed.
    "docs/how-to/gitops-state.md": "7b1f6f0e-3c0e-4a52-9f7e-5d2c1a9b8e11 aa1bb134-3fc1-5fb1-aa22-ef03e3199e5b "
    "aa77b972-0f98-59df-b2fb-9f769c02ec9a e5cbe8a1-7768-5f48-858d-2b3180515eec f1f3e3a1-a7c6-5df4-a219-24d0423666b9 "
    "5d1f0b4e-6b0f-5a55-8a53-1c2f0e4b7d10 0c6d3f52-93a7-5a0d-9a0e-2f7e5d8c1b44",
}
"""File → the UUIDs in it that are no facts of Azure."""
NOT_SEARCHED = ("tests/", "examples/", "uv.lock")


def uuids() -> list[tuple[str, str]]:
    """File and UUID of each one in a tracked file, in small letters."""
    command = ["git", "-C", str(PROJECT), "grep", "-IoEi", "--untracked", UUID.pattern.replace("(?:", "(")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    pairs = {tuple(line.split(":", 1)) for line in found}
    return sorted((file, one.lower()) for file, one in pairs if not file.startswith(NOT_SEARCHED) and file not in DATA)


def test_every_uuid_is_a_sourced_fact_or_listed_as_made_up() -> None:
    known = {*resources.built_in().values(), *PUBLIC}
    unknown = {(file, one) for file, one in uuids() if one not in known}
    assert unknown == {(file, one) for file, listed in MADE_UP.items() for one in listed.split()}
    assert len(uuids()) > 40


ONE_SOURCE = {"Azure Machine Learning Workspace Connection Secrets Reader"}
"""Roles that no second table names; public templates use this one's id without its name."""


def test_every_role_that_a_stack_assigns_is_of_two_sources() -> None:
    found = (
        *assigned.CLUSTER,
        *assigned.CLUSTER_TELEMETRY,
        *assigned.WORKSPACE,
        assigned.ENCRYPTION,
        assigned.APPROVER,
    )
    second = {row["name"]: row["id"] for row in table("roles")}
    for role in (*found, *assigned.ROLES, *data.ROLES):
        assert second.get(role.name) == (None if role.name in ONE_SOURCE else role.definition), role.name


def test_the_roles_of_the_state_are_called_as_their_comments_say() -> None:
    program = (PROJECT / "deploy" / "state" / "__main__.py").read_text("utf-8")
    named = re.findall(rf'"({UUID.pattern})"  # (.+)', program)
    assert len(named) >= 3
    for role_id, name in named:
        assert resources.built_in().get(name) in {role_id, None if "names of assignments" in name else role_id}


def test_every_role_that_a_page_or_a_command_names_is_built_in() -> None:
    named = r'-role +("[^"$]+"|[A-Za-z]+)'
    command = ["git", "-C", str(PROJECT), "grep", "-hoE", "--untracked", "-e", named, "--", "*.md", "*.py", ":!tests"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    page = (PROJECT / "docs/how-to/azure.md").read_text("utf-8").partition("## Who needs which role")[2]
    cells = [row.split(" | ")[1] for row in page.splitlines() if row.startswith("| ") and row.count(" | ") == 3]
    roles = {one.removeprefix("-role").strip(' "') for one in found}
    roles |= {cell for cell in cells if cell not in {"role", "---"} and "made by the stack" not in cell}
    assert {one for one in roles if one not in resources.built_in()} == set()
    assert len(roles) > 8
