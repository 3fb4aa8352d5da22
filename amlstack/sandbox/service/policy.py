"""Assigned policies: the changes and refusals that they make before a resource is stored, as ARM does."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.arm_language import resources
from amlstack.base.arm_language.effects import Assessment, PolicyChange, Ruling, assessed, effect_of
from amlstack.base.arm_language.expressions import PolicyAround, tag_of
from amlstack.base.arm_language.functions import OpenError
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget, with_defaults
from amlstack.sandbox.kinds import authorization
from amlstack.sandbox.protocol import typecheck
from amlstack.sandbox.protocol.refusals import Refused, not_emulated

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.protocol.kind import Body, KindContext, ResourceKind
    from amlstack.sandbox.store.store import ResourceRow

_BESIDE: Final = frozenset({"extendedLocation", "identity", "kind", "plan", "sku"})
"""Keys of a body beside ``properties``."""


def bodies(body: Body, kind: str, change: PolicyChange) -> Iterator[Body]:
    """A body with a change in it: one for each place that the property may have, the likeliest first.

    Args:
        body: As it was sent, or as another policy left it.
        kind: Its type.
        change: The field and its new value.

    Raises:
        Refused: The sandbox does not know where the field is.
    """
    name = change.field
    if (tag := tag_of(name)) is not None:
        yield _written(body, ("tags", tag), change)
    elif name.lower() in {"location", "tags"}:
        yield _written(body, (name.lower(),), change)
    elif name.lower().startswith("identity."):
        yield _written(body, tuple(name.split(".")), change)
    else:
        yield from _by_alias(body, kind, change)


def _by_alias(body: Body, kind: str, change: PolicyChange) -> Iterator[Body]:
    path = resources.path_of(change.field, kind)
    adds = path is not None and path.endswith(resources.EVERY)
    plain = None if path is None else path.removesuffix(resources.EVERY)
    if plain is None or "[" in plain:
        raise not_emulated(f"a policy that writes the field '{change.field}'")
    steps = tuple(plain.split("."))
    beside = [()] if steps[0] in _BESIDE else []
    places: list[tuple[str, ...]] = [*beside, ("properties",)]
    if isinstance((body.get("properties") or {}).get("properties"), dict):
        places.append(("properties", "properties"))
    # One that is there stays where it is.
    places.sort(key=lambda place: _found(body, (*place, *steps)) is None)
    for place in places:
        yield _written(body, (*place, *steps), change, adds=adds)


def _found(value: Any, steps: tuple[str, ...]) -> Any:
    for step in steps:
        value = value.get(_as_it_is(value, step)) if isinstance(value, dict) else None
    return value


def _written(body: Body, steps: tuple[str, ...], change: PolicyChange, *, adds: bool = False) -> Body:
    made = copy.deepcopy(body)
    inside: Any = made
    for step in steps[:-1]:
        key = _as_it_is(inside, step)
        if not isinstance(inside.get(key), dict):
            inside[key] = {}
        inside = inside[key]
    last = _as_it_is(inside, steps[-1])
    if change.after is None:
        inside.pop(last, None)
    elif adds:
        inside[last] = [*(inside.get(last) or ()), change.after]
    else:
        inside[last] = change.after
    return made


def _as_it_is(value: dict[str, Any], name: str) -> str:
    """The key in the letters that the body has."""
    return next((key for key in value if key.lower() == name.lower()), name)


_WRITES: Final = frozenset({"append", "modify"})
_GROUP = "Microsoft.Resources/subscriptions/resourceGroups"
"""Azure Policy's name of the type of resource groups."""


class DisallowedError(Refused):
    """The refusal in Azure's shape: identifiers in the message, and once more as additional information."""

    def __init__(self, name: str, denied: list[dict[str, Any]]) -> None:
        identifiers = [
            {key: value for key, value in each.items() if key not in {"reason", "effect"}} for each in denied
        ]
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


def enforced(context: KindContext, kind: ResourceKind, path: ArmPath, body: Body) -> Body:
    """The body as assignments above the resource change it; refuses what one of them denies.

    `modify` and `append` come before `deny`, which sees what they wrote.

    Raises:
        DisallowedError: 403, with every policy that denies it.
    """
    if kind.type.startswith(f"{authorization.AUTHORIZATION}/"):
        return body
    asked = [
        (_Asked(definition, parameters), _identified(assignment, definition, of_set))
        for assignment in context.store.resources.of_type(authorization.PolicyAssignments.type)
        if _reaches(assignment, path)
        for definition, of_set, parameters in _policies(context, assignment)
    ]
    if not asked:
        return body
    type_ = _GROUP if kind.type == "Microsoft.Resources/resourceGroups" else kind.type
    place = _place(context, path)
    written: dict[str, Any] = {}
    denied: list[dict[str, Any]] = []
    for effects in (_WRITES, frozenset({"deny"})):
        for one, identified in asked:
            target = PolicyTarget(type_, path.text, body, indexed=kind.tracked)
            assessment = one.assessed(target, place, effects)
            if assessment.ruling is Ruling.DENIES:
                denied.append({**identified, "effect": one.effect(target, place)})
            elif assessment.ruling in {Ruling.MODIFIES, Ruling.APPENDS}:
                body = _changed(kind, type_, body, assessment, written)
    if denied:
        raise DisallowedError(path.name, denied)
    return body


def _changed(kind: ResourceKind, type_: str, body: Body, assessment: Assessment, written: dict[str, Any]) -> Body:
    """The body with what one policy writes.

    Args:
        kind: The resource's.
        type_: Its type as Azure Policy names it.
        body: As it is now.
        assessment: With the changes.
        written: What other policies wrote, by field in small letters; this one's are added.
    """
    for change in assessment.changes:
        key = change.field.lower()
        if key in written and not key.endswith("[*]"):
            raise not_emulated(f"two policies that write different values to '{change.field}'")
        written[key] = change.after
        refusal: Refused | None = None
        for made in bodies(body, type_, change):
            try:
                body, refusal = typecheck.check(kind, made), None
            except Refused as error:
                refusal = refusal or error
                continue
            break
        if refusal is not None:
            raise refusal
    return body


def _reaches(assignment: ResourceRow, path: ArmPath) -> bool:
    """True where the resource lies in the assignment's scope, and in none that it leaves out."""
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
    assigned = authorization.find_policy(context, properties["policyDefinitionId"])
    values = _values(assigned, properties.get("parameters") or {}, {})
    if assigned.type == authorization.PolicyDefinitions.type:
        yield assigned, None, values
        return
    for reference in assigned.body["properties"]["policyDefinitions"]:
        definition = authorization.find_policy(context, reference["policyDefinitionId"])
        yield definition, assigned, _values(definition, reference.get("parameters") or {}, values)


def _values(definition: ResourceRow, given: Mapping[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    around = PolicyAround(PolicyTarget("", "", {}), PolicyPlace(), outer)
    plain = {name: around.worked_out(entry.get("value")) for name, entry in given.items()}
    return with_defaults(definition.body["properties"].get("parameters") or {}, plain)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A definition with the values of its parameters."""

    definition: ResourceRow
    parameters: Mapping[str, Any]

    def effect(self, target: PolicyTarget, place: PolicyPlace) -> str:
        """Its effect in small letters."""
        try:
            rule = self.definition.body["properties"]["policyRule"]
            return effect_of(rule, PolicyAround(target, place, self.parameters))
        except OpenError as error:
            raise not_emulated(f"the effect of the policy '{self.definition.name}': {error}") from None

    def assessed(self, target: PolicyTarget, place: PolicyPlace, effects: frozenset[str]) -> Assessment:
        """The ruling on a resource, where its effect is one of those."""
        if self.effect(target, place) not in effects:
            return Assessment(Ruling.PASSES)
        properties = self.definition.body["properties"]
        mode = properties.get("mode", "Indexed")
        found = assessed(properties["policyRule"], self.parameters, target, place, mode=mode)
        if found.ruling is Ruling.OPEN:
            raise not_emulated(f"the policy '{self.definition.name}', of which it is open what it says: {found.why}")
        return found


def _place(context: KindContext, path: ArmPath) -> PolicyPlace:
    """The place where a resource is created, as far as the sandbox has it."""
    group = context.store.resources.get(f"/subscriptions/{path.subscription}/resourceGroups/{path.group}")
    location = group.body.get("location") if group else None
    tags = (group.body.get("tags") or {}) if group else None
    return PolicyPlace.in_group(path.subscription, path.group or "", location=location, tags=tags)


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
    return {**info, "policyDefinitionEffect": denied.get("effect", "deny")}
