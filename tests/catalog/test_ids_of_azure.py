"""Every UUID in the source is a fact of Azure with a source, or is listed here as made up."""

from __future__ import annotations

import re
import subprocess

import pytest

from amlstack.base.paths import PROJECT
from amlstack.catalog import roles
from infra import roles as assigned
from infra.contents import access, datastores

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
MADE_UP = {
    "infra/roles.py": "namespace of role assignments' names",
    "infra/contents/access.py": "the same",
    "deploy/state/__main__.py": "the same",
    "infra/account.py": "the zeros of no subscription",
    "infra/settings/repair.py": "the same",
    "amlstack/cli/stack/anywhere/bring_up.py": "the same",
    "amlstack/provider/types/data.py": "namespace of versions of data",
    "amlstack/sandbox/kinds/platform/monitoring.py": "namespace of instrumentation keys",
    "amlstack/sandbox/arm/entra.py": "the sandbox's tenant, client, subscriptions and principal",
    "amlstack/base/pulumi_wire.py": "Pulumi's own sentinels, compared with its SDK elsewhere",
    "tools/bench/benches/registration.py": "a subscription of the benchmark",
    "docs/data.md": "a group of the example",
    "docs/gitops-state.md": "ids that a run of the example printed",
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
    known = {*roles.built_in().values(), *PUBLIC}
    unknown = [(file, one) for file, one in uuids() if one not in known and file not in MADE_UP]
    assert unknown == []
    assert len(uuids()) > 40


def test_the_list_of_made_up_uuids_names_no_file_without_one() -> None:
    known = {*roles.built_in().values(), *PUBLIC}
    assert {file for file, one in uuids() if one not in known} == set(MADE_UP)


@pytest.mark.parametrize(
    ("name", "role_id"),
    [
        # Azure/bicep-registry-modules and other public templates, compared on 2026-11-24.
        ("AcrPull", "7f951dda-4ed3-4680-a7ca-43fe172d538d"),
        ("Key Vault Crypto Service Encryption User", "e147488a-f6f5-4113-8e2d-b22465e65bf6"),
        ("Azure AI Enterprise Network Connection Approver", "b556d68e-0be0-4f35-a333-ad7ee1ce17ea"),
        ("Storage Blob Data Contributor", "ba92f5b4-2d11-453d-a403-e96b0029c9fe"),
        ("Storage Blob Data Reader", "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"),
        ("Storage File Data Privileged Contributor", "69566ab7-960f-475b-8e7c-b3118f30c6bd"),
        ("Contributor", "b24988ac-6180-42a0-ab88-20f7382dd24c"),
        ("Key Vault Administrator", "00482a5a-887f-4fb3-b363-3b7fe8e74483"),
        ("Monitoring Metrics Publisher", "3913510d-42f4-4e42-8a64-420c390055eb"),
        ("AzureML Data Scientist", "f6c7c914-8db3-469d-8ca1-694a8f32e121"),
    ],
)
def test_ids_of_roles_equal_those_of_a_second_source(name: str, role_id: str) -> None:
    assert roles.built_in()[name] == role_id


def test_every_role_that_a_stack_assigns_is_built_in() -> None:
    found = (
        *assigned.CLUSTER,
        *assigned.CLUSTER_TELEMETRY,
        *assigned.WORKSPACE,
        assigned.ENCRYPTION,
        assigned.APPROVER,
    )
    for role in (*found, *access.ROLES, *datastores.ROLES):
        assert roles.is_built_in(role.definition), role.name


def test_the_roles_of_the_state_are_called_as_their_comments_say() -> None:
    program = (PROJECT / "deploy" / "state" / "__main__.py").read_text("utf-8")
    named = re.findall(rf'"({UUID.pattern})"  # (.+)', program)
    assert len(named) >= 3
    for role_id, name in named:
        assert roles.built_in().get(name) in {role_id, None if "names of assignments" in name else role_id}
