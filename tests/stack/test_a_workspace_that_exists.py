"""A stack on a workspace that somebody else owns, and two stacks on one workspace, through their whole life."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from amlstack.provider.stacks.foreign import VARIABLE
from amlstack.sandbox.protocol.addresses import GROUPS
from amlstack.sandbox.protocol.entra import OTHER_SUBSCRIPTION, SUBSCRIPTION
from tests.support.harness import ANALYZER
from tests.support.stack import estates
from tests.support.stack.small_jobs import FOREVER, IMAGE, SIZE, job, runs_of, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.harness import Stack
    from tests.support.running import MakeStack, Sandbox

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

OWN = {"ResourceGroup", "StorageAccount", "Vault", "Component", "Registry", "Workspace"}
"""Types that a stack on a workspace of its own has, and a stack on one that exists has not."""


def declared(one: Stack, **workspace: Any) -> Stack:
    one.set("amlstack:location", "westeurope").set("amlstack:workspace", workspace)
    one.set("amlstack:clusters", [{"name": "busy", "size": SIZE, "nodes": {"max": 2}}])
    return one.set("amlstack:environments", [{"name": "small", "image": IMAGE}])


def kinds(one: Stack) -> set[str]:
    return {each["type"].rsplit(":", 1)[-1] for each in one.resources().values() if "azure-native" in each["type"]}


def vended(sandbox: Sandbox, group: str) -> str:
    """Makes a resource group with a storage account that no stack owns; the account's id."""
    group_id, kind = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}", "Microsoft.Storage/storageAccounts"
    account = f"{group_id}/providers/{kind}/stofothers"
    with store_of(sandbox.home) as store:
        subscription = f"/subscriptions/{SUBSCRIPTION}"
        store.resources.put(group_id, GROUPS, subscription, {"location": "westeurope", "tags": {"cost": "team"}})
        store.resources.put(account, kind, group_id, {"location": "westeurope"})
    return account


def test_a_stack_lives_on_a_workspace_of_another_subscription_and_changes_nothing_of_it(
    stack: MakeStack, own_sandbox: Sandbox, tmp_path: Path
) -> None:
    one = stack(PROJECT, sandbox=own_sandbox, name="team")
    wanted = (
        f"/subscriptions/{OTHER_SUBSCRIPTION}/resourceGroups/{estates.GROUP}"
        f"/providers/Microsoft.MachineLearningServices/workspaces/{estates.WORKSPACE}"
    )
    declared(one, existing=wanted).set("amlstack:jobs", [str(job(tmp_path, "train", FOREVER))])

    refused = one.preview().failed()
    printed = "\n".join(refused.errors)
    for words in (
        f"There is no workspace `{estates.WORKSPACE}` in resource group `{estates.GROUP}` of",
        f"subscription `{OTHER_SUBSCRIPTION}`",
        f"az resource show --ids {wanted}",
        "nothing was changed",
    ):
        assert words in printed, printed
    assert {step.type for step in refused.planned} <= {"pulumi:pulumi:Stack", "pulumi:providers:amlstack"}

    assert estates.make(own_sandbox, OTHER_SUBSCRIPTION) == wanted
    before = estates.bodies(own_sandbox.home)
    planned = one.up(policy_packs=[ANALYZER], preview=True).ok()
    assert not {step.type.rsplit(":", 1)[-1] for step in planned.planned if "azure-native:" in step.type} & OWN
    (run,) = planned.steps("train", "jobs:Job")
    assert run.new["inputs"]["body"]["properties"]["computeId"] == f"{wanted}/computes/busy"
    assert kinds(one) == {"Compute", "UserAssignedIdentity", "RoleAssignment"}
    assert one.resources("Compute")["busy"]["id"] == f"{wanted}/computes/busy"
    scopes = {
        each["id"].partition("/providers/Microsoft.Authorization")[0]
        for each in one.resources("RoleAssignment").values()
    }
    assert {scope.rsplit("/", 1)[-1] for scope in scopes} == {"stplatform01", "crplatform01"}
    assert one.outputs()["workspace"]["id"] == wanted
    (running,) = runs_of(own_sandbox.home, "train")
    assert running.workspace.lower() == wanted.lower()

    one.set("amlstack:clusters[0].nodes.max", 4)
    assert one.up().ok().changes == {"update": 1}
    assert one.refresh().ok().changes == {}
    assert one.resources("Compute")["busy"]["inputs"]["properties"]["properties"]["scaleSettings"]["maxNodeCount"] == 4
    one.destroy().ok()
    after = estates.bodies(own_sandbox.home)
    assert {name: after.get(name) for name in before} == before
    left = {name for name in after if name not in before}
    assert not [name for name in left if "/computes/" in name or "Identity" in name or "roleAssignments" in name], left


def test_two_stacks_share_a_workspace_and_each_sees_its_own_runs(
    stack: MakeStack, own_sandbox: Sandbox, tmp_path: Path
) -> None:
    home = own_sandbox.home
    owner = stack(PROJECT, sandbox=own_sandbox, name="owner")
    other = stack(PROJECT, sandbox=own_sandbox, name="other")
    # A part of the owner's workspace is somebody else's, in another subscription.
    group = estates.make(own_sandbox, OTHER_SUBSCRIPTION).rpartition("/providers/")[0]
    registry = f"{group}/providers/Microsoft.ContainerRegistry/registries/crplatform01"
    declared(owner, name="ws-shared", registry={"existing": registry})
    # So is the group of the stack's own workspace, with an account in it.
    account = vended(own_sandbox, "rg-shared")
    taken = owner.set("amlstack:protect", "false").set("amlstack:resource_group", "rg-shared").up().failed()
    assert "cannot create already existing resource" in "\n".join(taken.errors)
    missing = owner.set("amlstack:resource_group", {"existing": "rg-none"}).preview().failed()
    assert "There is no resource group `rg-none` in subscription" in "\n".join(missing.errors)
    owner.set("amlstack:resource_group", {"existing": "rg-shared"}, path=False)
    (tmp_path / "other").mkdir()
    owner.set("amlstack:jobs", [{"file": str(job(tmp_path, "ours", FOREVER)), "wait": "started"}]).up().ok()
    declared(other, existing="ws-shared").set("amlstack:resource_group", "rg-shared")
    other.set("amlstack:clusters[0].name", "spare")
    theirs = job(tmp_path / "other", "theirs", FOREVER, compute="azureml:spare")
    other.set("amlstack:jobs", [{"file": str(theirs), "wait": "started"}]).up().ok()
    assert [row.status for name in ("ours", "theirs") for row in runs_of(home, name)] == ["Running", "Running"]
    assert owner.preview().ok().changes == {}
    assert "Registry" not in kinds(owner)
    assert owner.resources("machinelearningservices:Workspace")["workspace"]["inputs"]["containerRegistry"] == registry

    # A cluster of the owner that goes is judged by the owner's runs alone.
    refused = owner.set("amlstack:clusters[0].size", "Standard_ND96amsr_A100_v4").preview().failed()
    printed = "\n".join(refused.errors)
    assert "ours-" in printed
    assert "theirs-" not in printed
    owner.set("amlstack:clusters[0].size", SIZE)

    # The owner does not go while a run of another stack is active on its workspace.
    kept = owner.destroy().failed()
    printed = "\n".join(kept.errors)
    assert "theirs-" in printed
    assert "amlstack/other" in printed
    assert [row.status for row in runs_of(home, "theirs")] == ["Running"]

    other.destroy().ok()
    assert [row.status for row in runs_of(home, "theirs")] == ["Canceled"]
    assert "Workspace" in kinds(owner)
    assert set(owner.resources("Compute")) == {"busy"}
    assert "ResourceGroup" not in kinds(owner)
    # The other stack's run has ended, and its record is lost with the workspace.
    (record,) = runs_of(home, "theirs")
    assert f"what this stack does not own: jobs/{record.name}" in "\n".join(owner.destroy().failed().errors)
    assert [row.status for row in runs_of(home, "ours")] == ["Running"]
    owner.env[VARIABLE] = "jobs/*"
    owner.destroy().ok()
    assert owner.resources() == {}
    left = estates.bodies(home)
    assert {registry, account, account.partition("/providers/")[0]} <= left.keys()
