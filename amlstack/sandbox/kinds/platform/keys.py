"""Microsoft.KeyVault/vaults/keys: keys as the resource manager makes them. Nothing is encrypted with them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import Refused, invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

_KINDS = ("RSA", "RSA-HSM", "EC", "EC-HSM")


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
    note = "One version each. Nothing is encrypted with them; there is no DELETE, as Azure's resource manager has none."

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
        vault = resource.id.split("/")[-3].lower()
        uri = f"https://{vault}.vault.azure.net/keys/{resource.name}"
        version = uuid.uuid5(uuid.NAMESPACE_URL, f"{resource.key}:{resource.created}").hex
        return {"attributes": {"enabled": True}, "keyUri": uri, "keyUriWithVersion": f"{uri}/{version}"}

    def check_delete(self, query: Mapping[str, str]) -> None:
        """There is no DELETE."""
        del query
        raise Refused(405, "MethodNotAllowed", "The resource manager has no DELETE for a key.")


KIND = Keys()
