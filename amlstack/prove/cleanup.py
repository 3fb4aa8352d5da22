"""Nothing stays: groups by their recorded names and their tag, policies of theirs, vaults and workspaces purged."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Final

from amlstack.base.api_versions import POLICIES, RESOURCES, VAULTS
from amlstack.prove.proof import AGAIN, STACKS, TAG, Proof
from amlstack.provider.arm import API_VERSION, ArmClient, ArmError

NOT_EMULATED: Final = 501
_PATIENCE: Final = 1800.0
_LOOK: Final = 5.0
_WORKSPACES: Final = "/providers/Microsoft.MachineLearningServices/workspaces"


def cleanup(arm: ArmClient, proof: Proof, say: Callable[[str], None]) -> list[str]:
    """Deletes all that a proof may have made, and looks again.

    Returns:
        What is still there, in words; empty where Azure answers 404 for each group.
    """
    root = f"/subscriptions/{proof.subscription}"
    for group in proof.groups:
        answer = arm.get(f"{root}/resourceGroups/{group}", RESOURCES, allow=(404,))
        if answer.status == 404:
            continue
        if (answer.body.get("tags") or {}).get(TAG) not in {proof.id, None}:
            say(f"{group} bears another proof's tag and stays")
            continue
        for row in list(arm.rows(f"{root}/resourceGroups/{group}{_WORKSPACES}", API_VERSION)):
            say(f"purging workspace {row['name']}")
            _gone(arm, str(row["id"]), API_VERSION, {"forceToPurge": "true"})
        say(f"deleting {group}")
        _gone(arm, f"{root}/resourceGroups/{group}", RESOURCES)
    for path in _policies(arm, proof):
        say(f"deleting {path.rpartition('/')[2]}")
        arm.delete(path, POLICIES, allow=(404,))
    _purge_vaults(arm, proof, say)
    return list(_left(arm, proof))


def _gone(arm: ArmClient, path: str, version: str, query: dict[str, str] | None = None) -> None:
    """Delete, and ask until the answer is 404."""
    arm.request("DELETE", path, version, query=query, allow=(404,))
    end = time.monotonic() + _PATIENCE
    while arm.get(path, version, allow=(404,)).status != 404 and time.monotonic() < end:
        time.sleep(0.3 if arm.endpoint.startswith("https://127.0.0.1") else _LOOK)


def _policies(arm: ArmClient, proof: Proof) -> Iterator[str]:
    """Initiatives, then definitions, whose name ends with the hash of one of the groups."""
    root = f"/subscriptions/{proof.subscription}"
    ends = tuple(
        "-" + hashlib.sha256(f"{root}/resourceGroups/{group}".lower().encode()).hexdigest()[:8]
        for group in proof.groups
    )
    for kind in ("policySetDefinitions", "policyDefinitions"):
        path = f"{root}/providers/Microsoft.Authorization/{kind}"
        yield from [str(row["id"]) for row in arm.rows(path, POLICIES) if str(row["name"]).endswith(ends)]


def _deleted_vaults(arm: ArmClient, proof: Proof) -> Iterator[str]:
    """Ids of soft-deleted vaults of the groups; a sandbox has none, and says that it does not emulate them."""
    try:
        rows = list(arm.rows(f"/subscriptions/{proof.subscription}/providers/Microsoft.KeyVault/deletedVaults", VAULTS))
    except ArmError as error:
        if error.status != NOT_EMULATED:
            raise
        return
    own = tuple(f"/subscriptions/{proof.subscription}/resourceGroups/{group}/".lower() for group in proof.groups)
    for row in rows:
        if str((row.get("properties") or {}).get("vaultId", "")).lower().startswith(own):
            yield str(row["id"])


def _purge_vaults(arm: ArmClient, proof: Proof, say: Callable[[str], None]) -> None:
    for vault in list(_deleted_vaults(arm, proof)):
        say(f"purging vault {vault.rpartition('/')[2]}")
        try:
            arm.finish(arm.post(f"{vault}/purge", None, VAULTS))
        except ArmError as error:
            say(f"the soft-deleted vault {vault.rpartition('/')[2]} stays: {error}")


def _left(arm: ArmClient, proof: Proof) -> Iterator[str]:
    root = f"/subscriptions/{proof.subscription}"
    for group in proof.groups:
        if (status := arm.get(f"{root}/resourceGroups/{group}", RESOURCES, allow=(404,)).status) != 404:
            yield f"resource group {group} (Azure answers {status})"
    for row in arm.rows(f"{root}/resources", RESOURCES):
        if (row.get("tags") or {}).get(TAG) == proof.id:
            yield str(row["id"])
    yield from _policies(arm, proof)
    yield from _deleted_vaults(arm, proof)


def forget(proof: Proof) -> None:
    """Remove the settings files from the project; the proof's own folder stays, as it is the evidence."""
    for stack in (*STACKS, AGAIN):
        proof.settings_file(stack).unlink(missing_ok=True)
