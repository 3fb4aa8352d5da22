"""docs/how-to/gitops-state.md as printed: a place for states is made, a stack moves there, and back.

The engine's own drivers for azblob:// and azurekeyvault:// speak to the sandbox under Azure's own host names.
"""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.protocol import entra
from tests.support.deploy import state_place
from tests.support.deploy.state_story import PAGE
from tests.support.stack.small_jobs import job, runs_of, settings, store_of

if TYPE_CHECKING:
    from tests.support.deploy.state_story import Story

pytestmark = [pytest.mark.engine]

MAKE, MOVE, BACK = "Make the place", "Move a stack there", "Move it back"
NAMES = "Names for the commands below"
RECOVER = "Two at once, and a runner that died"
ACCOUNT = "contosostate"


@pytest.fixture(scope="module")
def played(story: Story) -> Story:
    stack, done = story.stack, story.results
    for key, value in settings("places").items():
        stack.set(key, value, path=False)
    declare(story, "first")
    stack.pulumi("config", "set", "--secret", "other:word", "hunter2").ok()
    done["at home"] = stack.up()
    story.type(MAKE, story.place)
    done["made again"] = story.place.preview("--expect-no-changes")

    _, printed = story.type(NAMES, story.place, then='echo "$STATE"; echo "$SECRETS"')
    state, secrets = printed.split()
    local = stack.env["PULUMI_BACKEND_URL"]
    names = {"STATE": state, "SECRETS": secrets, "LOCAL": local}
    story.type(MOVE, stack, **names)
    stack.pulumi("stack", "rm", "dev", "--force", "--preserve-config", "--yes").ok()
    stack.env["PULUMI_BACKEND_URL"] = state
    passphrase = stack.env.pop("PULUMI_CONFIG_PASSPHRASE")
    done["secret"] = stack.pulumi("config", "get", "other:word")
    before = blobs(story)
    done["moved"] = stack.preview("--expect-no-changes")
    story.seen["unwritten"] = before == blobs(story)

    declare(story, "first", "second")
    winner = stack.start_up()
    winner.wait_for(lambda event: "preludeEvent" in event)
    os.kill(winner.process.pid, signal.SIGSTOP)  # it holds the lock for as long as the other needs
    done["loser"] = stack.up()
    os.kill(winner.process.pid, signal.SIGCONT)
    winner.wait_until_starts("second")
    winner.kill()
    done["locked out"] = stack.up()
    story.type(RECOVER, stack)
    done["converged"] = stack.preview("--expect-no-changes")

    story.type(BACK, stack, PULUMI_CONFIG_PASSPHRASE=passphrase, **names)
    stack.env |= {"PULUMI_BACKEND_URL": local, "PULUMI_CONFIG_PASSPHRASE": passphrase}
    done["at home again"] = stack.preview("--expect-no-changes")
    return story


def declare(story: Story, *names: str) -> None:
    files = [str(job(story.stack.folder, name, "true")) for name in names]
    story.stack.set("amlstack:jobs", [{"file": file} for file in files], path=False)


def blobs(story: Story) -> dict[str, str]:
    return state_place.blobs_of(story.sandbox, ACCOUNT)


def resource(story: Story, kind: str, name: str = "") -> dict[str, Any]:
    with store_of(story.sandbox.home) as store:
        (found,) = (row for row in store.resources.of_type(kind) if name in row.id and "contoso" in row.id)
        return dict(found.body["properties"])


def test_the_place_is_made_as_printed_and_a_second_look_changes_nothing(played: Story) -> None:
    code, text = played.printed[MAKE]
    assert code == 0, text
    count = re.search(r"\+ \d+ created", text)
    assert count is not None
    assert f"    {count[0]}\n" in PAGE.read_text("utf-8")
    played.results["made again"].ok()


def test_the_account_has_no_keys_and_keeps_what_is_deleted(played: Story) -> None:
    account = resource(played, "Microsoft.Storage/storageAccounts")
    assert account["allowSharedKeyAccess"] is False
    assert account["allowBlobPublicAccess"] is False
    kept = resource(played, "Microsoft.Storage/storageAccounts/blobServices")
    assert kept["isVersioningEnabled"] is True
    assert kept["deleteRetentionPolicy"] == {"allowPermanentDelete": False, "enabled": True, "days": 30}
    assert kept["containerDeleteRetentionPolicy"] == {"enabled": True, "days": 30}
    (rule,) = resource(played, "Microsoft.Storage/storageAccounts/managementPolicies")["policy"]["rules"]
    assert rule["definition"] == {
        "filters": {"blobTypes": ["blockBlob"], "prefixMatch": ["state/"]},
        "actions": {"version": {"delete": {"daysAfterCreationGreaterThan": 30}}},
    }


def test_the_vault_is_opened_by_roles_and_purged_by_nobody(played: Story) -> None:
    vault = resource(played, "Microsoft.KeyVault/vaults", "contoso-state")
    assert vault["enableRbacAuthorization"] is True
    assert vault["enablePurgeProtection"] is True


def test_pull_requests_read_the_state_but_no_secret_and_deployments_write_it(played: Story) -> None:
    outputs, held = played.place.outputs(), set()
    with store_of(played.sandbox.home) as store:
        for row in store.resources.of_type("Microsoft.Authorization/roleAssignments"):
            if "contoso" in row.id:
                given = row.body["properties"]
                role = given["roleDefinitionId"].rpartition("/")[2]
                held.add((given["principalId"], role, row.id.partition("/providers/Microsoft.Authorization")[0][-16:]))
    container, key = "/containers/state"[-16:], "state/keys/pulumi"[-16:]
    people = "7b1f6f0e-3c0e-4a52-9f7e-5d2c1a9b8e11"
    contributor, reader = "ba92f5b4-2d11-453d-a403-e96b0029c9fe", "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"
    crypto = "12338af0-0e69-4776-bea7-57ae8d297424"
    assert held == {
        (outputs["deploy_principal_id"], contributor, container),
        (outputs["plan_principal_id"], reader, container),
        (outputs["preview_principal_id"], reader, container),
        (people, contributor, container),
        *((who, crypto, key) for who in (outputs["deploy_principal_id"], outputs["plan_principal_id"], people)),
    }


def test_identities_trust_the_repository_and_nobody_else(played: Story) -> None:
    kind = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    with store_of(played.sandbox.home) as store:
        found = {row.id.split("/")[-3]: row.body["properties"]["subject"] for row in store.resources.of_type(kind)}
    assert found == {
        "id-contoso-deploy": "repo:contoso/training:environment:prod",
        "id-contoso-plan": "repo:contoso/training:ref:refs/heads/main",
        "id-contoso-preview": "repo:contoso/training:pull_request",
    }


def test_a_stack_moves_in_four_commands_and_nothing_changes(played: Story) -> None:
    played.results["at home"].ok()
    code, text = played.printed[MOVE]
    assert code == 0, text
    assert text.split("\n")[:3] == [
        "Migrating old configuration and state to new secrets provider",
        "Created stack 'dev'",
        "Import complete.",
    ]
    played.results["moved"].ok()


def test_secrets_are_opened_by_the_vault_without_a_passphrase(played: Story) -> None:
    assert played.results["secret"].ok().output.strip() == "hunter2"


def test_a_preview_writes_nothing_into_the_state(played: Story) -> None:
    assert played.seen["unwritten"] is True


def test_of_two_updates_at_once_one_goes_on_and_the_other_names_the_lock(played: Story) -> None:
    """The one that goes on works on `second` in the end, and is killed there."""
    loser = played.results["loser"]
    assert loser.failed().code == 1
    assert "the stack is currently locked by 1 lock(s)" in loser.output
    assert "azblob://state/.pulumi/locks/organization/amlstack/dev/" in loser.output


def test_a_killed_runner_leaves_a_lock_and_cancel_takes_it_off(played: Story) -> None:
    assert "the stack is currently locked by 1 lock(s)" in played.results["locked out"].failed().output
    code, text = played.printed[RECOVER]
    assert code == 0, text
    assert text.startswith("The currently running update for 'dev' has been canceled!")
    played.results["converged"].ok()


@pytest.mark.parametrize("name", ["first", "second"])
def test_no_run_is_started_twice_on_the_way(played: Story, name: str) -> None:
    assert len(runs_of(played.sandbox.home, name)) == 1


def test_a_stack_moves_back_in_four_commands_and_nothing_changes(played: Story) -> None:
    code, text = played.printed[BACK]
    assert code == 0, text
    played.results["at home again"].ok()
    assert "encryptedkey" not in played.stack.settings.read_text("utf-8")


def test_the_tenant_of_the_place_is_the_one_that_was_named(played: Story) -> None:
    assert resource(played, "Microsoft.KeyVault/vaults", "contoso-state")["tenantId"] == entra.TENANT
