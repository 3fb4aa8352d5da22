"""Microsoft.ManagedIdentity: user-assigned identities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.entra import TENANT
from amlstack.sandbox.kinds import principals
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow


class Identities(ResourceKind):
    """User-assigned identities: a principal that lives as long as the resource."""

    type = principals.TYPE
    noun = "a user-assigned identity"
    names = NameRule(
        r"[A-Za-z0-9][A-Za-z0-9_-]{2,127}", "3 to 128 letters, digits, '-' and '_', a letter or digit first"
    )
    schema = Schema(
        "managedidentity", "UserAssignedIdentityArgs", frozenset({"resourceGroupName", "resourceName"}),
        envelope=frozenset({"location", "tags"}),
    )  # fmt: skip
    patches = True

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its object id and client id, new with every creation."""
        del context
        return {
            "principalId": principals.principal(resource),
            "clientId": principals.object_id(resource, "client"),
            "tenantId": TENANT,
        }


KIND = Identities()
