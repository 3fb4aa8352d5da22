"""Microsoft.KeyVault/vaults/keys: keys as the resource manager makes them.

What they encrypt and decrypt: `amlstack.sandbox.data.vault_keys`.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import Refused, invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

HOST = ".vault.azure.net"
_KINDS = ("RSA", "RSA-HSM", "EC", "EC-HSM")


def vault(key: ResourceRow) -> str:
    """The name of a key's vault, in small letters."""
    return key.id.split("/")[-3].lower()


def version(key: ResourceRow) -> str:
    """The id of a key's one version."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{key.key}:{key.created}").hex


class Keys(ResourceKind):
    """Keys of a vault; a PUT of one that exists answers it and makes no version."""

    type = "Microsoft.KeyVault/vaults/keys"
    noun = "a key"
    names = NameRule(r"[0-9A-Za-z-]{1,127}", "1 to 127 letters, digits and hyphens")
    schema = Schema(
        "keyvault", "KeyArgs", frozenset({"resourceGroupName", "vaultName", "keyName"}),
        envelope=frozenset({"tags"}), wrapped=True,
    )  # fmt: skip
    tracked = False
    made_status = 200

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A kind of key that there is."""
        del context, path, before
        if (kind := body["properties"].get("kty")) not in _KINDS:
            raise invalid("properties.kty", f"'{kind}' is not allowed. Allowed: {', '.join(_KINDS)}.")

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """The key as it was made."""
        del body
        return before.body

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its addresses."""
        del context
        uri = f"https://{vault(resource)}{HOST}/keys/{resource.name}"
        return {"attributes": {"enabled": True}, "keyUri": uri, "keyUriWithVersion": f"{uri}/{version(resource)}"}

    def check_delete(self, query: Mapping[str, str]) -> None:
        """There is no DELETE."""
        del query
        raise Refused(405, "MethodNotAllowed", "The resource manager has no DELETE for a key.")


KIND = Keys()
