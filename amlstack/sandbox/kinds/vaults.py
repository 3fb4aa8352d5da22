"""Key vaults and container registries."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, ClassVar

from amlstack.sandbox.kinds.storage import check_addresses
from amlstack.sandbox.protocol.addresses import VAULT
from amlstack.sandbox.protocol.kind import Body, KindContext, NameRule, ResourceKind, Schema
from amlstack.sandbox.protocol.refusals import Refused, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.store.store import ResourceRow


class Registries(ResourceKind):
    """Container registries."""

    type = "Microsoft.ContainerRegistry/registries"
    noun = "a container registry"
    defaults: ClassVar[Body] = {"adminUserEnabled": False}
    names = NameRule(r"[A-Za-z0-9]{5,50}", "5 to 50 letters and digits")
    schema = Schema("containerregistry", "RegistryArgs", ("registryName",))
    ticks = 2
    patches = True

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Registry names are unique in all of Azure; only the premium tier is closed, or open to some."""
        given = body["properties"]
        check_addresses(given.get("networkRuleSet"), "properties.networkRuleSet")
        if body["sku"]["name"] != "Premium" and (
            given.get("publicNetworkAccess") == "Disabled" or given.get("networkRuleSet")
        ):
            message = f"Network rules and private access are not supported for the SKU {body['sku']['name']}."
            raise Refused(400, "SkuNotSupported", message, "sku.name")
        if before is None and self.is_taken(context, path.name):
            message = f"The registry DNS name {path.name.lower()}.azurecr.io is already in use."
            raise Refused(409, "AlreadyInUse", message)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The registry's host name, which nothing answers here."""
        return {"loginServer": f"{resource.name.lower()}.azurecr.io"}


class Vaults(ResourceKind):
    """Key vaults."""

    type = "Microsoft.KeyVault/vaults"
    noun = "a key vault"
    defaults: ClassVar[Body] = {
        "enableSoftDelete": True,
        "softDeleteRetentionInDays": 90,
        "publicNetworkAccess": "Enabled",
    }
    names = NameRule(
        r"(?=.{3,24}$)[A-Za-z](-?[A-Za-z0-9])+",
        "3 to 24 letters, digits and single hyphens, a letter first, no hyphen at the end",
    )
    schema = Schema("keyvault", "VaultArgs", wrapped=True)
    patches = True
    assigned = ResourceKind.assigned | {"vaultUri"}

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Vault names are unique in all of Azure; protection against purging stays; rules for addresses are legal."""
        check_addresses(body["properties"].get("networkAcls"), "properties.networkAcls")
        protects = body["properties"].get("enablePurgeProtection")
        was = before is not None and before.body["properties"].get("enablePurgeProtection")
        if protects is False or (was and not protects):
            message = 'The property "enablePurgeProtection" cannot be set to false. Enabling it is irreversible.'
            raise Refused(400, "BadRequest", message, "properties.enablePurgeProtection")
        if before is None and self.is_taken(context, path.name):
            raise Refused(409, "VaultAlreadyExists", f"The vault name '{path.name}' is already in use.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The vault's address, under which its keys answer (`amlstack.sandbox.server.endpoint`)."""
        return {"vaultUri": f"https://{resource.name.lower()}{VAULT}/"}


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
    schema = Schema("keyvault", "KeyArgs", wrapped=True)
    tracked = False
    made_status = 200

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A kind of key that there is."""
        if (kind := body["properties"].get("kty")) not in _KINDS:
            raise invalid("properties.kty", f"'{kind}' is not allowed. Allowed: {', '.join(_KINDS)}.")

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """The key as it was made."""
        return before.body

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its addresses."""
        uri = f"https://{vault(resource)}{VAULT}/keys/{resource.name}"
        return {"attributes": {"enabled": True}, "keyUri": uri, "keyUriWithVersion": f"{uri}/{version(resource)}"}

    def check_delete(self, query: Mapping[str, str]) -> None:
        """There is no DELETE."""
        raise Refused(405, "MethodNotAllowed", "The resource manager has no DELETE for a key.")


KINDS = (Vaults(), Keys(), Registries())
"""The kinds of this module; a new one is a row here."""
