"""Nothing stays: groups by their recorded names and their tag, policies of theirs, vaults and workspaces purged."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any, Final

from amlstack.prove.proof import TAG
from amlstack.provider.arm import API_VERSION, ArmClient, ArmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amlstack.prove.proof import Proof

GROUPS: Final = "2024-03-01"
POLICIES: Final = "2023-04-01"
VAULTS: Final = "2024-11-01"
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
        answer = arm.get(f"{root}/resourceGroups/{group}", GROUPS, allow=(404,))
        if answer.status == 404:
            continue
        if (answer.body.get("tags") or {}).get(TAG) not in {proof.id, None}:
            say(f"{group} bears another proof's tag and stays")
            continue
        for row in list(arm.rows(f"{root}/resourceGroups/{group}{_WORKSPACES}", API_VERSION)):
            say(f"purging workspace {row['name']}")
            _gone(arm, str(row["id"]), API_VERSION, {"forceToPurge": "true"})
        for row in list(arm.rows(f"{root}/resourceGroups/{group}/resources", GROUPS)):
            if str(row.get("type", "")).lower() == "microsoft.keyvault/vaults":
                _note_vault(proof, str(row["name"]))
        say(f"deleting {group}")
        _gone(arm, f"{root}/resourceGroups/{group}", GROUPS)
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


def _note_vault(proof: Proof, name: str) -> None:
    """A vault's name is written down before its group goes: what is soft-deleted lies in no group."""
    known: dict[str, Any] = proof.steps.setdefault("cleanup", {"status": "ok", "seconds": 0, "seen": "", "vaults": []})
    if name not in known.setdefault("vaults", []):
        known["vaults"].append(name)
        proof.save()


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


def _purge_vaults(arm: ArmClient, proof: Proof, say: Callable[[str], None]) -> None:
    place = f"/subscriptions/{proof.subscription}/providers/Microsoft.KeyVault/locations/{proof.location}/deletedVaults"
    for name in proof.steps.get("cleanup", {}).get("vaults", ()):
        try:
            answer = arm.request("POST", f"{place}/{name}/purge", VAULTS, allow=(404, 501))
        except ArmError as error:
            say(f"the soft-deleted vault {name} stays: {error}")
            continue
        if answer.status < 400:
            arm.finish(answer)
            say(f"purged vault {name}")


def _left(arm: ArmClient, proof: Proof) -> Iterator[str]:
    root = f"/subscriptions/{proof.subscription}"
    for group in proof.groups:
        if (status := arm.get(f"{root}/resourceGroups/{group}", GROUPS, allow=(404,)).status) != 404:
            yield f"resource group {group} (Azure answers {status})"
    for row in arm.rows(f"{root}/resources", GROUPS):
        if (row.get("tags") or {}).get(TAG) == proof.id:
            yield str(row["id"])
    yield from _policies(arm, proof)


def forget(proof: Proof) -> None:
    """Remove the settings files from the project; the proof's own folder stays, as it is the evidence."""
    for stack in ("open", "closed"):
        proof.settings_file(stack).unlink(missing_ok=True)
