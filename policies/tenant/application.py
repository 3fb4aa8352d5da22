"""From what was read to what is asked: each definition with its parameters' values and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.expressions import PolicyAround
from amlstack.base.arm_language.functions import OpenError
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget, with_defaults
from policies.tenant.library import last

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.tenant.library import PolicyAssignment, PolicyDefinition, PolicyLibrary, PolicySet

_NOTHING = PolicyTarget("", "", {})


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """One definition as it is asked.

    Attributes:
        id: Its id.
        definition: The definition; None where no file has it.
        parameters: Values of its parameters.
        source: What brings it: the title of an assignment or initiative; empty for the definition itself.
        reference: Its reference in the initiative.
        effect: An effect that an assignment sets instead of the definition's own; empty for none.
        scopes: The scope that an assignment reaches, and those that it leaves out.
        enforced: Whether it changes or refuses requests; otherwise it only reports.
        selectors: Which resources an assignment reaches, by type or region.
        message: What the assignment tells those whom it refuses.
        open: Why a parameter has no value.
        exempt: Why it asks nothing of this stack; empty where it does.
    """

    id: str
    definition: PolicyDefinition | None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    reference: str = ""
    effect: str = ""
    scopes: tuple[str, tuple[str, ...]] = ("", ())
    enforced: bool = True
    selectors: tuple[Mapping[str, Any], ...] = ()
    message: str = ""
    open: str = ""
    exempt: str = ""


def applied(library: PolicyLibrary) -> list[AppliedPolicy]:
    """Every definition that the files ask for: by assignments, else by initiatives, else by itself."""
    found: list[AppliedPolicy] = []
    assigned: set[str] = set()
    for assignment in library.assignments:
        assigned.add(last(assignment.assigned))
        found += _of_assignment(library, assignment)
    for key, initiative in library.sets.items():
        if key not in assigned:
            found += _of_set(library, initiative, with_defaults(initiative.parameters, {}), source=initiative.title)
    members = {last(str(one["policyDefinitionId"])) for each in library.sets.values() for one in each.members}
    for key, definition in library.definitions.items():
        if key not in assigned | members:
            found.append(AppliedPolicy(definition.id, definition, with_defaults(definition.parameters, {})))
    return found


def _of_assignment(library: PolicyLibrary, assignment: PolicyAssignment) -> Iterator[AppliedPolicy]:
    properties = assignment.properties
    given = _given(properties.get("parameters"))
    more: dict[str, Any] = {
        "scopes": (str(properties.get("scope") or ""), tuple(map(str, properties.get("notScopes") or ()))),
        "enforced": str(properties.get("enforcementMode", "Default")).lower() == "default",
        "selectors": tuple(properties.get("resourceSelectors") or ()),
    }
    messages = [one for one in properties.get("nonComplianceMessages") or () if isinstance(one, Mapping)]
    initiative = library.initiative(assignment.assigned)
    if initiative is not None:
        values = with_defaults(initiative.parameters, given)
        for one in _of_set(library, initiative, values, source=assignment.title, **more):
            one = replace(one, exempt=_exempt(library, assignment, one.reference))  # noqa: PLW2901
            yield _overridden(one, properties.get("overrides") or (), messages)
        return
    definition = library.definition(assignment.assigned)
    values = with_defaults(definition.parameters, given) if definition else given
    exempt = _exempt(library, assignment, "")
    own = AppliedPolicy(assignment.assigned, definition, values, assignment.title, exempt=exempt, **more)
    yield _overridden(own, properties.get("overrides") or (), messages)


def _of_set(
    library: PolicyLibrary, initiative: PolicySet, values: Mapping[str, Any], *, source: str, **more: Any
) -> Iterator[AppliedPolicy]:
    around = PolicyAround(_NOTHING, PolicyPlace(), values)
    for member in initiative.members:
        wanted = str(member["policyDefinitionId"])
        definition, why = library.definition(wanted), ""
        given: dict[str, Any] = {}
        for name, value in _given(member.get("parameters")).items():
            try:
                given[name] = around.worked_out(value)
            except OpenError as error:
                why = f"its parameter `{name}` is open: {error.why}"
        parameters = with_defaults(definition.parameters, given) if definition else given
        reference = str(member.get("policyDefinitionReferenceId") or "")
        yield AppliedPolicy(wanted, definition, parameters, source, reference, open=why, **more)


def _exempt(library: PolicyLibrary, assignment: PolicyAssignment, reference: str) -> str:
    """Why an exemption among the files takes a member out; empty where none does."""
    for exemption in library.exemptions:
        named = {str(name).lower() for name in exemption.get("policyDefinitionReferenceIds") or ()}
        of_it = last(str(exemption.get("policyAssignmentId", ""))) == last(assignment.id)
        if of_it and (not named or reference.lower() in named):
            return str(exemption.get("displayName") or exemption.get("description") or "an exemption in the files")
    return ""


def _overridden(one: AppliedPolicy, overrides: Any, messages: list[Mapping[str, Any]]) -> AppliedPolicy:
    effect = ""
    for override in overrides:
        if str(override.get("kind")).lower() == "policyeffect" and _selects(override.get("selectors") or (), one):
            effect = str(override.get("value") or "")
    about = [str(each.get("message", "")) for each in messages
             if each.get("policyDefinitionReferenceId") in {None, "", one.reference}]  # fmt: skip
    return replace(one, effect=effect, message=" ".join(about))


def _selects(selectors: Any, one: AppliedPolicy) -> bool:
    for selector in selectors:
        if str(selector.get("kind")).lower() != "policydefinitionreferenceid":
            continue
        named = {str(name).lower() for name in selector.get("in") or ()}
        left_out = {str(name).lower() for name in selector.get("notIn") or ()}
        if (named and one.reference.lower() not in named) or one.reference.lower() in left_out:
            return False
    return True


def _given(parameters: Any) -> dict[str, Any]:
    """Parameters as files give them, ``{name: {"value": …}}``, or by `az … --params` the same."""
    if not isinstance(parameters, Mapping):
        return {}
    return {
        name: one["value"] if isinstance(one, Mapping) and "value" in one else one for name, one in parameters.items()
    }
