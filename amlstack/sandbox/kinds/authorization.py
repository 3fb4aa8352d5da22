"""Resource groups, and who may do what in them: identities with their credentials, roles, locks, policies.

Sources: learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations (2026-11-22). Roles are kept;
nothing is allowed or refused by them here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.arm_language.effects import unknown_in
from amlstack.base.arm_language.expressions import PolicyAround
from amlstack.base.arm_language.functions import OpenError
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget, with_defaults
from amlstack.catalog import resources
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol.addresses import GROUPS, ArmPath
from amlstack.sandbox.protocol.entra import TENANT
from amlstack.sandbox.protocol.kind import Body, KindContext, NameRule, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid, near, not_emulated
from amlstack.sandbox.protocol.times import iso

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow


class Groups(ResourceKind):
    """Resource groups; deleting one deletes everything in it."""

    type = GROUPS


class Identities(ResourceKind):
    """User-assigned identities: a principal that lives as long as the resource."""

    type = entra.TYPE

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its object id and client id, new with every creation."""
        return {
            "principalId": entra.principal(resource),
            "clientId": entra.object_id(resource, "client"),
            "tenantId": TENANT,
        }

    def render(self, context: KindContext, resource: ResourceRow) -> Body:
        """As its own service writes it: without a state, and with small letters in its id."""
        shown = super().render(context, resource)
        del shown["properties"]["provisioningState"]
        return {**shown, "id": shown["id"].replace("/resourceGroups/", "/resourcegroups/")}


MOST: Final = 20
"""Of one identity."""


class FederatedCredentials(ResourceKind):
    """An issuer, a subject and an audience each: what a token has to say to be exchanged for one of the identity."""

    type = f"{entra.TYPE}/federatedIdentityCredentials"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """An https issuer, one audience, no second one for the same issuer and subject, and not too many."""
        given = body["properties"]
        if not given["issuer"].startswith("https://"):
            raise invalid("properties.issuer", f"'{given['issuer']}' is no https address.")
        if len(given["audiences"]) != 1:
            raise invalid("properties.audiences", f"{len(given['audiences'])} audiences; exactly one is allowed.")
        others = [
            row
            for row in context.store.resources.under(path.parent, self.type)
            if before is None or row.key != before.key
        ]
        for other in others:
            theirs = other.body["properties"]
            if (theirs["issuer"], theirs["subject"]) == (given["issuer"], given["subject"]):
                message = "Issuer and subject combination already exists for this Managed Identity."
                raise Refused(409, "Conflict", message)
        if before is None and len(others) >= MOST:
            message = (
                f"Too many Federated Identity Credentials are configured for the Managed Identity: {MOST} at most."
            )
            raise Refused(400, "BadRequest", message)


UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_DEFINITION = re.compile(rf"(/subscriptions/[^/]+)?{re.escape(resources.DEFINITIONS)}(?P<id>{UUID})", re.IGNORECASE)


class RoleAssignments(ResourceKind):
    """Role assignments on a subscription, a group or any resource; only their description can be edited."""

    type = "Microsoft.Authorization/roleAssignments"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A role and a principal that exist, one assignment of a role to a principal on a scope, never another."""
        given = body["properties"]
        definition, principal = given["roleDefinitionId"], given["principalId"]
        named = _DEFINITION.fullmatch(definition)
        if named is None:
            raise invalid("properties.roleDefinitionId", f"'{definition}' is no id of a role definition.")
        if not resources.is_built_in(named["id"]):
            message = f"The specified role definition with ID '{named['id'].replace('-', '')}' does not exist."
            raise Refused(400, "RoleDefinitionDoesNotExist", message)
        if before is not None:
            old = before.body["properties"]
            if any(old[name].lower() != given[name].lower() for name in ("roleDefinitionId", "principalId")):
                message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
                raise Refused(400, "RoleAssignmentUpdateNotPermitted", message)
            return
        if entra.is_ours(principal) and principal not in entra.all_of(context.store):
            raise Refused(400, "PrincipalNotFound", f"Principal {principal} does not exist in the directory.")
        for other in context.store.resources.under(path.parent, self.type):
            theirs = other.body["properties"]
            if theirs["principalId"] == principal and theirs["roleDefinitionId"].lower() == definition.lower():
                raise Refused(409, "RoleAssignmentExists", "The role assignment already exists.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its scope, what the principal is, who assigned it and when (azure-mgmt-authorization 2.0.0)."""
        return {
            "principalType": resource.body["properties"].get("principalType", "ServicePrincipal"),
            "scope": resource.id.rpartition("/providers/")[0],
            "createdOn": iso(resource.created),
            "updatedOn": iso(resource.changed),
            **dict.fromkeys(("createdBy", "updatedBy"), entra.PRINCIPAL),
        }

    def written(self, context: KindContext, resource: ResourceRow) -> Body:
        """Nobody has made one that is being made."""
        shown = self.render(context, resource)
        made = {"createdBy": None} if resource.created == resource.changed else {}
        return {**shown, "properties": {**shown["properties"], **made}}


class Locks(ResourceKind):
    """Locks on a group or any resource."""

    type = "Microsoft.Authorization/locks"


def check_locks(context: KindContext, resource_id: str, method: str) -> None:
    """Refuses a write or a deletion of what a lock is on, in or below.

    Args:
        context: The store.
        resource_id: What is asked for.
        method: Of the request.

    Raises:
        Refused: 409, with the locked scopes.
    """
    target, deletes = resource_id.lower(), method == "DELETE"
    if method not in {"DELETE", "PUT", "PATCH"} or f"/{Locks.type.lower()}/" in target:
        return  # a lock itself: taking it off is how a scope is opened
    scopes = [
        lock.parent
        for lock in context.store.resources.of_type(Locks.type)
        if (deletes or lock.body["properties"]["level"] == "ReadOnly") and _meets(lock, target, deletes=deletes)
    ]
    if scopes:
        verb = "delete" if deletes else "write"
        message = (
            f"The scope '{resource_id}' cannot perform {verb} operation because following scope(s) are locked: "
            f"'{','.join(scopes)}'. Please remove the lock and try again."
        )
        raise Refused(409, "ScopeLocked", message)


def _meets(lock: ResourceRow, target: str, *, deletes: bool) -> bool:
    locked = lock.parent.lower()
    return f"{target}/".startswith(f"{locked}/") or (deletes and f"{locked}/".startswith(f"{target}/"))


AUTHORIZATION = "Microsoft.Authorization"
_NAMES = NameRule(
    r"[^<>*%&:\\?+/]{0,63}[^<>*%&:\\?+/. ]", "up to 64 characters, none of <>*%&:\\?+/, no period or space at the end"
)


class PolicyDefinitions(ResourceKind):
    """Definitions; a condition that the sandbox cannot evaluate is refused rather than passed over in silence."""

    type = f"{AUTHORIZATION}/policyDefinitions"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A rule with its condition and effect, in the part of the language that is evaluated here."""
        if path.group is not None:
            message = f"The policy definition '{path.name}' must lie in a subscription or a management group."
            raise Refused(400, "InvalidCreatePolicyDefinitionRequest", message)
        rule = body["properties"].get("policyRule")
        if not isinstance(rule, dict) or not isinstance(rule.get("if"), dict) or "effect" not in rule.get("then", {}):
            message = f"The policy rule of '{path.name}' is invalid: it has an 'if' and a 'then' with an 'effect'."
            raise Refused(400, "InvalidPolicyRule", message, "properties.policyRule")
        if unknown := unknown_in(rule):
            raise not_emulated(f"{unknown[0]} in a policy rule")


class PolicySets(ResourceKind):
    """Initiatives."""

    type = f"{AUTHORIZATION}/policySetDefinitions"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Definitions that exist, parameters that they declare, expressions over the set's own."""
        own = body["properties"].get("parameters") or {}
        for reference in body["properties"]["policyDefinitions"]:
            definition = find_policy(context, reference["policyDefinitionId"])
            _declared(path.name, definition, reference.get("parameters") or {})
            for given in (reference.get("parameters") or {}).values():
                try:
                    around = PolicyAround(PolicyTarget("", "", {}), PolicyPlace(), dict.fromkeys(own))
                    around.worked_out(given.get("value"))
                except OpenError as error:
                    message = f"The policy set definition '{path.name}' is invalid: {error}.{near(str(error), own)}"
                    raise Refused(400, "InvalidPolicySetDefinition", message) from None


class PolicyAssignments(ResourceKind):
    """Assignments to a subscription or a resource group; what they deny is refused to later requests."""

    type = f"{AUTHORIZATION}/policyAssignments"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A definition or set that exists, with values for what it declares."""
        policy = body["properties"].get("policyDefinitionId")
        if not policy:
            message = f"The policy assignment '{path.name}' names no policy: 'policyDefinitionId' is missing."
            raise Refused(400, "InvalidPolicyAssignment", message, "properties.policyDefinitionId")
        definition = find_policy(context, policy)
        given = body["properties"].get("parameters") or {}
        _declared(path.name, definition, given)
        declared = definition.body["properties"].get("parameters") or {}
        if missing := sorted(set(declared) - set(with_defaults(declared, given))):
            message = f"The policy assignment '{path.name}' is missing the parameter(s) '{', '.join(missing)}'."
            raise Refused(400, "MissingPolicyParameter", message)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The scope that it reaches."""
        return {"scope": resource.id.rpartition("/providers/")[0]}


def find_policy(context: KindContext, resource_id: str) -> ResourceRow:
    """A definition or set by its id.

    Raises:
        Refused: 404, there is none.
    """
    resource = context.store.resources.get(resource_id)
    if resource is None or resource.type not in {PolicyDefinitions.type, PolicySets.type}:
        what = "PolicySetDefinition" if "/policysetdefinitions/" in resource_id.lower() else "PolicyDefinition"
        raise Refused(404, f"{what}NotFound", f"The policy '{resource_id}' could not be found.")
    return resource


def _declared(name: str, definition: ResourceRow, given: Mapping[str, Any]) -> None:
    known = definition.body["properties"].get("parameters") or {}
    for parameter, entry in given.items():
        if parameter not in known:
            message = f"'{name}' gives the parameter '{parameter}', which '{definition.name}' does not declare."
            raise Refused(400, "UndefinedPolicyParameter", message + near(parameter, known))
        allowed, value = known[parameter].get("allowedValues"), entry.get("value")
        expression = isinstance(value, str) and value.startswith("[")
        if allowed and not expression and value not in allowed:
            message = f"The value '{value}' of the parameter '{parameter}' is not allowed by '{definition.name}'."
            raise Refused(400, "PolicyParameterValueNotAllowed", message + near(str(value), map(str, allowed)))


KINDS = (
    *(Groups(), Identities(), FederatedCredentials(), RoleAssignments(), Locks()),
    *(PolicyDefinitions(), PolicySets(), PolicyAssignments()),
)
"""The kinds of this module; a new one is a row here."""
