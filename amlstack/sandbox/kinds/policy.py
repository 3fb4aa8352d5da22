"""Microsoft.Authorization: policy definitions, sets of them (initiatives) and their assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.effects import unknown_in
from amlstack.base.arm_language.expressions import PolicyAround
from amlstack.base.arm_language.functions import OpenError
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget, with_defaults
from amlstack.sandbox.protocol.kind import Body, KindContext, NameRule, ResourceKind, Schema
from amlstack.sandbox.protocol.refusals import Refused, near, not_emulated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

NAMESPACE = "Microsoft.Authorization"
_NAMES = NameRule(
    r"[^<>*%&:\\?+/]{0,63}[^<>*%&:\\?+/. ]",
    "up to 64 characters, none of <>*%&:\\?+/, no period or space at the end",
)


class Definitions(ResourceKind):
    """Definitions; a condition that the sandbox cannot evaluate is refused rather than passed over in silence."""

    type = f"{NAMESPACE}/policyDefinitions"
    noun = "a policy definition"
    names = _NAMES
    schema = Schema("authorization", "PolicyDefinitionArgs", ("policyDefinitionName",))
    tracked = False

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


class Sets(ResourceKind):
    """Initiatives."""

    type = f"{NAMESPACE}/policySetDefinitions"
    noun = "a policy set definition"
    names = _NAMES
    schema = Schema("authorization", "PolicySetDefinitionArgs", ("policySetDefinitionName",))
    tracked = False

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Definitions that exist, parameters that they declare, expressions over the set's own."""
        own = body["properties"].get("parameters") or {}
        for reference in body["properties"]["policyDefinitions"]:
            definition = found(context, reference["policyDefinitionId"])
            _declared(path.name, definition, reference.get("parameters") or {})
            for given in (reference.get("parameters") or {}).values():
                try:
                    around = PolicyAround(PolicyTarget("", "", {}), PolicyPlace(), dict.fromkeys(own))
                    around.worked_out(given.get("value"))
                except OpenError as error:
                    message = f"The policy set definition '{path.name}' is invalid: {error}.{near(str(error), own)}"
                    raise Refused(400, "InvalidPolicySetDefinition", message) from None


class Assignments(ResourceKind):
    """Assignments to a subscription or a resource group; what they deny is refused to later requests."""

    type = f"{NAMESPACE}/policyAssignments"
    noun = "a policy assignment"
    names = _NAMES
    schema = Schema("authorization", "PolicyAssignmentArgs", ("policyAssignmentName", "scope"))
    tracked = False

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A definition or set that exists, with values for what it declares."""
        policy = body["properties"].get("policyDefinitionId")
        if not policy:
            message = f"The policy assignment '{path.name}' names no policy: 'policyDefinitionId' is missing."
            raise Refused(400, "InvalidPolicyAssignment", message, "properties.policyDefinitionId")
        definition = found(context, policy)
        given = body["properties"].get("parameters") or {}
        _declared(path.name, definition, given)
        declared = definition.body["properties"].get("parameters") or {}
        if missing := sorted(set(declared) - set(with_defaults(declared, given))):
            message = f"The policy assignment '{path.name}' is missing the parameter(s) '{', '.join(missing)}'."
            raise Refused(400, "MissingPolicyParameter", message)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The scope that it reaches."""
        return {"scope": resource.id.rpartition("/providers/")[0]}


def found(context: KindContext, resource_id: str) -> ResourceRow:
    """A definition or set by its id.

    Raises:
        Refused: 404, there is none.
    """
    resource = context.store.resources.get(resource_id)
    if resource is None or resource.type not in {Definitions.type, Sets.type}:
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


KINDS = (Definitions(), Sets(), Assignments())
"""The kinds of this module; a new one is a row here."""
