"""Microsoft.KeyVault/vaults, the resource only: no secrets or certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema
from amlstack.sandbox.kinds.platform.addresses import check_addresses

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow


class Vaults(ResourceKind):
    """Key vaults."""

    type = "Microsoft.KeyVault/vaults"
    noun = "a key vault"
    names = NameRule(
        r"(?=.{3,24}$)[A-Za-z](-?[A-Za-z0-9])+",
        "3 to 24 letters, digits and single hyphens, a letter first, no hyphen at the end",
    )
    schema = Schema("keyvault", "VaultArgs", frozenset({"resourceGroupName", "vaultName"}), wrapped=True)
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
        if before is None:
            for other in context.store.resources.of_type(self.type):
                if other.name.lower() == path.name.lower():
                    raise Refused(409, "VaultAlreadyExists", f"The vault name '{path.name}' is already in use.")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """Soft delete is on for every new vault."""
        del context, path
        defaults = {"enableSoftDelete": True, "softDeleteRetentionInDays": 90, "publicNetworkAccess": "Enabled"}
        return {**body, "properties": {**defaults, **body["properties"]}}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The vault's address, under which its keys answer (`amlstack.sandbox.server.azure_names`)."""
        del context
        return {"vaultUri": f"https://{resource.name.lower()}.vault.azure.net/"}


KIND = Vaults()
