"""Microsoft.ContainerRegistry/registries, the resource only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.kinds.addresses import check_addresses
from amlstack.sandbox.protocol.kind import Body, KindContext, NameRule, ResourceKind, Schema
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow


class Registries(ResourceKind):
    """Container registries."""

    type = "Microsoft.ContainerRegistry/registries"
    noun = "a container registry"
    names = NameRule(r"[A-Za-z0-9]{5,50}", "5 to 50 letters and digits")
    schema = Schema("containerregistry", "RegistryArgs", frozenset({"resourceGroupName", "registryName"}))
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
        if before is None:
            for other in context.store.resources.of_type(self.type):
                if other.name.lower() == path.name.lower():
                    message = f"The registry DNS name {path.name.lower()}.azurecr.io is already in use."
                    raise Refused(409, "AlreadyInUse", message)

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """No admin user unless asked for."""
        del context, path
        return {**body, "properties": {"adminUserEnabled": False, **body["properties"]}}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The registry's host name, which nothing answers here."""
        del context
        return {"loginServer": f"{resource.name.lower()}.azurecr.io"}


KIND = Registries()
