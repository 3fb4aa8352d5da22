"""Microsoft.Authorization/roleAssignments: who holds which role on what. Nothing is allowed or refused by them here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.catalog import roles
from amlstack.sandbox.arm.refusals import Refused, invalid
from amlstack.sandbox.kinds import principals
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_DEFINITION = re.compile(rf"(/subscriptions/[^/]+)?{re.escape(roles.DEFINITIONS)}(?P<id>{UUID})", re.IGNORECASE)


class RoleAssignments(ResourceKind):
    """Role assignments on a subscription, a group or any resource; only their description can be edited."""

    type = "Microsoft.Authorization/roleAssignments"
    noun = "a role assignment"
    names = NameRule(UUID, "a UUID")
    schema = Schema(
        "authorization", "RoleAssignmentArgs", frozenset({"roleAssignmentName", "scope"}), envelope=frozenset()
    )
    tracked = False

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A role and a principal that exist, one assignment of a role to a principal on a scope, never another."""
        given = body["properties"]
        definition, principal = given["roleDefinitionId"], given["principalId"]
        named = _DEFINITION.fullmatch(definition)
        if named is None:
            raise invalid("properties.roleDefinitionId", f"'{definition}' is no id of a role definition.")
        if not roles.is_built_in(named["id"]):
            message = f"The specified role definition with ID '{named['id'].replace('-', '')}' does not exist."
            raise Refused(400, "RoleDefinitionDoesNotExist", message)
        if before is not None:
            old = before.body["properties"]
            if any(old[name].lower() != given[name].lower() for name in ("roleDefinitionId", "principalId")):
                message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
                raise Refused(400, "RoleAssignmentUpdateNotPermitted", message)
            return
        if principals.is_ours(principal) and principal not in principals.all_of(context.store):
            message = f"Principal {principal} does not exist in the directory."
            raise Refused(400, "PrincipalNotFound", message)
        for other in context.store.resources.under(path.parent, self.type):
            theirs = other.body["properties"]
            if theirs["principalId"] == principal and theirs["roleDefinitionId"].lower() == definition.lower():
                raise Refused(409, "RoleAssignmentExists", "The role assignment already exists.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The scope that it reaches."""
        del context
        return {"scope": resource.id.rpartition("/providers/")[0]}


KIND = RoleAssignments()
