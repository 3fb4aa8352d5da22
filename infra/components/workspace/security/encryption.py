"""A customer-managed key for the workspace's metadata."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infra import roles
from infra.components import azure_native
from infra.components.workspace.vault import register_key

if TYPE_CHECKING:
    import pulumi

    from infra.components.workspace.place import Place
    from infra.components.workspace.security.identity import Primary


@dataclass(frozen=True, slots=True)
class Encrypted:
    """What a customer-managed key adds to the workspace.

    Attributes:
        properties: Of the workspace.
        before: What comes before the workspace.
    """

    properties: dict[str, Any] = field(default_factory=dict)
    before: list[pulumi.Resource] = field(default_factory=list)


def register_encryption(place: Place, vault: pulumi.Resource | None, who: Primary) -> Encrypted:
    """Register the key, where it is the stack's, and the identity's role on its vault.

    Args:
        place: Where.
        vault: The stack's own vault, where it has one.
        who: The workspace's identity.
    """
    spec = place.spec.encryption
    if spec is None:
        return Encrypted()
    before: list[pulumi.Resource] = []
    if spec.own and vault is not None:
        made = register_key(place, vault, spec.key)
        before += [made, *who.give(place, [roles.ENCRYPTION], {"key_vault": vault})]
        identifier: pulumi.Input[str] = azure_native.output(made, "keyUriWithVersion")
        vault_id = place.names.id("key_vault")
    else:
        identifier, vault_id = spec.key, str(spec.key_vault)
        before += who.give(place, [roles.ENCRYPTION], {}, scope=vault_id)
    properties: dict[str, Any] = {
        "status": "Enabled",
        "keyVaultProperties": {"keyVaultArmId": vault_id, "keyIdentifier": identifier},
        **({"identity": {"userAssignedIdentity": who.id}} if who.id else {}),
    }
    return Encrypted({"encryption": properties, "enableServiceSideCMKEncryption": spec.service_side}, before)
