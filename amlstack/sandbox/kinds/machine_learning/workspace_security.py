"""A workspace's identity and encryption, judged as Azure documents them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import invalid
from amlstack.sandbox.kinds import principals

if TYPE_CHECKING:
    from amlstack.sandbox.kinds.base import Body, KindContext

_VAULT = "Microsoft.KeyVault/vaults"
_KEY = re.compile(r"https://([0-9a-z-]+)\.vault\.[^/]+/keys/([0-9a-z-]+)(?:/[0-9a-f]{32})?", re.IGNORECASE)


def check(context: KindContext, body: Body, before: Body | None) -> None:
    """Refuses identities that are none, and what cannot be changed on a workspace that exists.

    Raises:
        Refused: 400.
    """
    properties, old = body["properties"], (before or {}).get("properties", {})
    principals.check(context.store, body)
    _check_primary(body)
    if before is not None and properties.get("hbiWorkspace", old.get("hbiWorkspace")) != old.get("hbiWorkspace"):
        raise invalid("properties.hbiWorkspace", "it is set when a workspace is created, and cannot be changed.")
    was, given = old.get("encryption"), properties.get("encryption")
    if before is not None and given is not None and was is None:
        raise invalid("properties.encryption", "a workspace that exists cannot be given a customer-managed key.")
    if given is not None:
        _check_key(context, given, was)


def _check_primary(body: Body) -> None:
    primary = body["properties"].get("primaryUserAssignedIdentity")
    identity = body.get("identity") or {}
    users = {str(each).lower() for each in identity.get("userAssignedIdentities") or {}}
    where = "properties.primaryUserAssignedIdentity"
    if primary and str(primary).lower() not in users:
        raise invalid(where, f"'{primary}' is none of the workspace's user-assigned identities.")
    if not primary and identity.get("type") == "UserAssigned":
        raise invalid(where, "a workspace without a system-assigned identity needs a primary one.")


def _check_key(context: KindContext, given: Body, was: Body | None) -> None:
    where = "properties.encryption.keyVaultProperties"
    vault_id, key = given["keyVaultProperties"]["keyVaultArmId"], given["keyVaultProperties"]["keyIdentifier"]
    if was is not None and vault_id.lower() != was["keyVaultProperties"]["keyVaultArmId"].lower():
        raise invalid(f"{where}.keyVaultArmId", "another key comes from the same key vault.")
    vault = context.store.resources.get(vault_id)
    if vault is None or vault.type.lower() != _VAULT.lower():
        raise invalid(f"{where}.keyVaultArmId", f"'{vault_id}' was not found; expected the id of a {_VAULT}.")
    protected = vault.body["properties"]
    if not (protected.get("enablePurgeProtection") and protected.get("enableSoftDelete")):
        raise invalid(f"{where}.keyVaultArmId", "the key vault has no soft delete and purge protection.")
    found = _KEY.fullmatch(key)
    if found is None or found[1].lower() != vault.name.lower():
        raise invalid(f"{where}.keyIdentifier", f"'{key}' is no key of the vault '{vault.name}'.")
    if context.store.resources.get(f"{vault.id}/keys/{found[2]}") is None:
        raise invalid(f"{where}.keyIdentifier", f"the vault '{vault.name}' has no key '{found[2]}'.")
