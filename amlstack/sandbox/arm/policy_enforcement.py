"""What assigned policies deny: asked before a resource is stored, as Azure's resource manager asks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.effects import Ruling, assessed, effect_of
from amlstack.base.arm_language.expressions import PolicyAround, worked_out
from amlstack.base.arm_language.parameters import with_defaults
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget
from amlstack.base.arm_language.values import OpenError
from amlstack.sandbox.arm.refusals import Refused, not_emulated
from amlstack.sandbox.kinds.platform import policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.kinds.base import Body, KindContext, ResourceKind
    from amlstack.sandbox.store.store import ResourceRow


_GROUP = "Microsoft.Resources/subscriptions/resourceGroups"
"""How Azure Policy names resource groups."""


class DisallowedError(Refused):
    """The refusal in Azure's shape: identifiers in the message, and once more as additional information."""

    def __init__(self, name: str, denied: list[dict[str, Any]]) -> None:
        identifiers = [{key: value for key, value in each.items() if key != "reason"} for each in denied]
        because = "".join(f" Reason: '{each['reason']}'." for each in denied if each.get("reason"))
        message = (
            f"Resource '{name}' was disallowed by policy.{because} Policy identifiers: '{json.dumps(identifiers)}'."
        )
        super().__init__(403, "RequestDisallowedByPolicy", message, name)
        self.denied = denied

    @property
    def body(self) -> dict[str, Any]:
        """``{"error": {"code", "target", "message", "additionalInfo": [{"type": "PolicyViolation", …}]}}``."""
        infos = [{"type": "PolicyViolation", "info": _info(each)} for each in self.denied]
        return {"error": {**super().body["error"], "additionalInfo": infos}}


def check(context: KindContext, kind: ResourceKind, path: ArmPath, body: Body) -> None:
    """Refuses what an assignment above the resource denies.

    Raises:
        DisallowedError: 403, with every policy that denies it.
    """
    if kind.type.startswith(f"{policy.NAMESPACE}/"):
        return
    type_ = _GROUP if kind.type == "Microsoft.Resources/resourceGroups" else kind.type
    target, place = PolicyTarget(type_, path.text, body, indexed=kind.tracked), _place(context, path)
    denied = [
        _identified(assignment, definition, of_set)
        for assignment in context.store.resources.of_type(policy.ASSIGNMENTS.type)
        if _reaches(assignment, path)
        for definition, of_set, parameters in _policies(context, assignment)
        if _denies(definition, parameters, target, place)
    ]
    if denied:
        raise DisallowedError(path.name, denied)


def _reaches(assignment: ResourceRow, path: ArmPath) -> bool:
    """Whether the resource lies in the assignment's scope, and in none that it leaves out."""
    properties, target = assignment.body["properties"], f"{path.text.lower()}/"
    left_out = [str(scope).lower().rstrip("/") for scope in properties.get("notScopes") or ()]
    return (
        properties.get("enforcementMode", "Default") == "Default"
        and target.startswith(f"{assignment.parent}/")
        and not any(target.startswith(f"{scope}/") for scope in left_out)
    )


def _policies(
    context: KindContext, assignment: ResourceRow
) -> Iterator[tuple[ResourceRow, ResourceRow | None, dict[str, Any]]]:
    """Each definition of an assignment, the set that it comes from, and its parameters' values."""
    properties = assignment.body["properties"]
    assigned = policy.found(context, properties["policyDefinitionId"])
    values = _values(assigned, properties.get("parameters") or {}, {})
    if assigned.type == policy.DEFINITIONS.type:
        yield assigned, None, values
        return
    for reference in assigned.body["properties"]["policyDefinitions"]:
        definition = policy.found(context, reference["policyDefinitionId"])
        yield definition, assigned, _values(definition, reference.get("parameters") or {}, values)


def _values(definition: ResourceRow, given: Mapping[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    around = PolicyAround(PolicyTarget("", "", {}), PolicyPlace(), outer)
    plain = {name: worked_out(entry.get("value"), around) for name, entry in given.items()}
    return with_defaults(definition.body["properties"].get("parameters") or {}, plain)


def _denies(definition: ResourceRow, parameters: Mapping[str, Any], target: PolicyTarget, place: PolicyPlace) -> bool:
    properties = definition.body["properties"]
    rule = properties["policyRule"]
    try:
        if effect_of(rule, PolicyAround(target, place, parameters)) != "deny":
            return False
    except OpenError as error:
        raise not_emulated(f"the effect of the policy '{definition.name}': {error}") from None
    assessment = assessed(rule, parameters, target, place, mode=properties.get("mode", "Indexed"))
    if assessment.ruling is Ruling.OPEN:
        raise not_emulated(f"the policy '{definition.name}', of which it is open what it says: {assessment.why}")
    return assessment.ruling is Ruling.DENIES


def _place(context: KindContext, path: ArmPath) -> PolicyPlace:
    """Where a resource is created, as far as the sandbox has it."""
    group = context.store.resources.get(f"/subscriptions/{path.subscription}/resourceGroups/{path.group}")
    return PolicyPlace.of(
        path.subscription,
        path.group or "",
        location=group.body.get("location") if group else None,
        tags=(group.body.get("tags") or {}) if group else None,
    )


def _identified(assignment: ResourceRow, definition: ResourceRow, of_set: ResourceRow | None) -> dict[str, Any]:
    found: dict[str, Any] = {"policyAssignment": _named(assignment), "policyDefinition": _named(definition)}
    messages = assignment.body["properties"].get("nonComplianceMessages") or ()
    reference = _reference(definition, of_set)
    about = [each["message"] for each in messages if each.get("policyDefinitionReferenceId") in {None, reference}]
    found |= {"policySetDefinition": _named(of_set)} if of_set is not None else {}
    return {**found, **({"reason": " ".join(about)} if about else {})}


def _reference(definition: ResourceRow, of_set: ResourceRow | None) -> str | None:
    references = of_set.body["properties"]["policyDefinitions"] if of_set is not None else ()
    same = (each for each in references if each["policyDefinitionId"].lower() == definition.key)
    return next((each.get("policyDefinitionReferenceId") for each in same), None)


def _named(resource: ResourceRow) -> dict[str, str]:
    return {"name": resource.body["properties"].get("displayName") or resource.name, "id": resource.id}


def _info(denied: Mapping[str, Any]) -> dict[str, Any]:
    info: dict[str, str] = {}
    for key in ("policyAssignment", "policyDefinition", "policySetDefinition"):
        if key in denied:
            info |= {f"{key}Id": denied[key]["id"], f"{key}DisplayName": denied[key]["name"]}
            info[f"{key}Name"] = denied[key]["id"].rsplit("/", 1)[-1]
    return {**info, "policyDefinitionEffect": "deny"}
