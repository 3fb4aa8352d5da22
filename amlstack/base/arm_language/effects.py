"""Effects of Azure Policy on a resource, and the constructs of a definition that are not evaluated here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from amlstack.base.arm_language import expressions
from amlstack.base.arm_language.conditions import OPERANDS, ConditionOutcome, evaluated
from amlstack.base.arm_language.functions import FUNCTIONS, FailingExpressionError, OpenError, truth
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget

JUDGED = frozenset({"append", "audit", "auditifnotexists", "deny", "deployifnotexists", "disabled", "modify"})
"""Effects on requests and resources, in small letters."""

ON_OTHERS = frozenset(
    {
        "addtonetworkgroup",
        "auditaction",
        "denyaction",
        "enforceopaconstraint",
        "enforceregopolicy",
        "enforcesetting",
        "manual",
        "mutate",
    }
)
"""Effects on deletions, on what runs inside a resource, or set by a person: they judge no resource of a stack."""

MISSHAPEN = "it has not the form of a rule of Azure Policy"
_NOT_OF_THE_FORM = (AttributeError, IndexError, KeyError, TypeError, ValueError)

_GROUP = "microsoft.resources/subscriptions/resourcegroups"
_MADE_BY_SERVICES = ("microsoft.security/", "microsoft.guestconfiguration/", "microsoft.policyinsights/")
_EXTENSIONS = ("microsoft.insights/diagnosticsettings", "microsoft.authorization/", *_MADE_BY_SERVICES)
"""Types that lie on any other resource."""


class Ruling(StrEnum):
    """The verdict of a definition on one resource."""

    PASSES = "passes"
    DENIES = "denies"
    AUDITS = "audits"
    MODIFIES = "modifies"
    APPENDS = "appends"
    AUDITS_ABSENCE = "auditIfNotExists"
    DEPLOYS = "deployIfNotExists"
    OPEN = "open"
    NOT_JUDGED = "notJudged"


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """The properties that ``modify`` or ``append`` writes into a request.

    Attributes:
        field: The alias or tag.
        before: Its value in the request; None where it has none.
        after: The value that Azure writes; None where it removes it.
    """

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Assessment:
    """One definition's word on one resource.

    Attributes:
        ruling: What it says.
        outcome: What became of its condition.
        changes: What it writes.
        why: Why it says so, where fields do not show it: what is missing, what is open, what fails.
        missing: The type that it looks for and does not find; empty for the others.
    """

    ruling: Ruling
    outcome: ConditionOutcome = field(default_factory=lambda: ConditionOutcome(holds=False))
    changes: tuple[PolicyChange, ...] = ()
    why: str = ""
    missing: str = ""


Related = Callable[[str], Iterable[PolicyTarget]]
"""From a type to the resources of it that are known."""


def effect_of(rule: Mapping[str, Any], around: expressions.PolicyAround) -> str:
    """A rule's effect in small letters, its parameter resolved; raises as `Evaluator.expression` does."""
    then = rule.get("then")
    if not isinstance(then, Mapping) or "effect" not in then:
        raise OpenError(MISSHAPEN)
    return str(around.worked_out(then["effect"])).lower()


def assessed(
    rule: Mapping[str, Any],
    parameters: Mapping[str, Any],
    target: PolicyTarget,
    place: PolicyPlace,
    related: Related = lambda _: (),
    *,
    mode: str = "All",
    effect: str = "",
) -> Assessment:
    """The verdict of a rule on a resource.

    Args:
        rule: ``{"if": …, "then": {"effect": …, "details": …}}``.
        parameters: Values of the definition's parameters.
        target: The resource: as its request creates it, or as it will be, which audits look at.
        place: Where it is created.
        related: The resources among which one is looked for that has to exist.
        mode: The definition's mode; ``Indexed`` judges only what has tags and a location.
        effect: The effect, where an assignment overrides it.
    """
    if mode.lower() == "indexed" and is_indexed(target) is False:
        return Assessment(Ruling.PASSES)
    around = expressions.PolicyAround(target, place, parameters)
    try:
        does = effect.lower() or effect_of(rule, around)
    except OpenError as error:
        return Assessment(Ruling.OPEN, why=f"its effect is open: {error.why}")
    if does == "disabled":
        return Assessment(Ruling.PASSES)
    if does not in JUDGED:
        known = does in ON_OTHERS
        return Assessment(Ruling.NOT_JUDGED if known else Ruling.OPEN, why=f"the effect `{does}` is not judged here")
    try:
        assessment = _assessment(rule, does, around, related)
    except _NOT_OF_THE_FORM:
        return Assessment(Ruling.OPEN, why=MISSHAPEN)
    if mode.lower() == "indexed" and is_indexed(target) is None:
        return if_indexed(assessment, target)
    return assessment


def is_indexed(target: PolicyTarget) -> bool | None:
    """True where definitions of the mode ``Indexed`` judge a resource; None where it is not known.

    Resource groups have tags and a location, and are judged by definitions of the mode ``All`` alone:
    learn.microsoft.com/azure/governance/policy/concepts/definition-structure-basics.
    """
    return False if target.type.lower() == _GROUP else target.indexed


def if_indexed(assessment: Assessment, target: PolicyTarget) -> Assessment:
    """The word of a definition of the mode ``Indexed`` on a resource of which it is open whether it is judged."""
    if assessment.ruling in {Ruling.PASSES, Ruling.OPEN, Ruling.NOT_JUDGED}:
        return assessment
    why = f"it would come true ({assessment.ruling}), but its mode is `Indexed`, and by Azure's table of tag support "
    why += f"`{target.type}` has no tags: whether Azure asks it is open"
    return replace(assessment, ruling=Ruling.OPEN, why=f"{why}; {assessment.why}" if assessment.why else why)


def _assessment(rule: Mapping[str, Any], does: str, around: expressions.PolicyAround, related: Related) -> Assessment:
    outcome = evaluated(rule.get("if"), around)
    if outcome.holds is False:
        return Assessment(Ruling.PASSES, outcome)
    if outcome.failure:
        why = f"Azure cannot evaluate it, which refuses the request: {outcome.failure}"
        return Assessment(Ruling.DENIES, outcome, why=why)
    if outcome.holds is None:
        return Assessment(Ruling.OPEN, outcome, why="; ".join(outcome.open))
    try:
        return _ruled(does, rule["then"].get("details") or {}, outcome, around, related)
    except FailingExpressionError as error:
        return Assessment(
            Ruling.DENIES, outcome, why=f"Azure cannot evaluate it, which refuses the request: {error.why}"
        )
    except OpenError as error:
        return Assessment(Ruling.OPEN, outcome, why=error.why)


def _ruled(
    does: str, details: Any, outcome: ConditionOutcome, around: expressions.PolicyAround, related: Related
) -> Assessment:
    match does:
        case "deny":
            return Assessment(Ruling.DENIES, outcome)
        case "audit":
            return Assessment(Ruling.AUDITS, outcome)
        case "append":
            return _appended(details, outcome, around)
        case "modify":
            made = tuple(_changes(details.get("operations") or (), around))
            return Assessment(Ruling.MODIFIES if made else Ruling.PASSES, outcome, made)
    return _looked_for(does, {key.lower(): value for key, value in details.items()}, outcome, around, related)


def _changes(operations: Iterable[Mapping[str, Any]], around: expressions.PolicyAround) -> Iterable[PolicyChange]:
    for operation in operations:
        if "condition" in operation and not truth(around.worked_out(operation["condition"])):
            continue
        name = str(around.worked_out(operation["field"]))
        before = _plain(name, around)
        removes = str(operation["operation"]).lower() == "remove"
        after = None if removes else around.worked_out(operation.get("value"))
        if str(operation["operation"]).lower() == "add" and before is not None:
            continue  # `add` leaves what is there
        if before != after:
            yield PolicyChange(name, before, after)


def _plain(name: str, around: expressions.PolicyAround) -> Any:
    found = expressions.field_of(name, around)
    return list(found.values) if found.every else found.values[0]


def _appended(details: Any, outcome: ConditionOutcome, around: expressions.PolicyAround) -> Assessment:
    made = []
    for entry in details if isinstance(details, list) else [details]:
        name = str(around.worked_out(entry["field"]))
        before, after = _plain(name, around), around.worked_out(entry["value"])
        if before == after:
            continue
        if before not in (None, []) and not name.endswith("[*]"):
            why = f"it would append `{name}`, which has another value, and that refuses the request"
            return Assessment(Ruling.DENIES, outcome, (PolicyChange(name, before, after),), why)
        made.append(PolicyChange(name, before, after))
    return Assessment(Ruling.APPENDS if made else Ruling.PASSES, outcome, tuple(made))


def _looked_for(
    does: str, details: Mapping[str, Any], outcome: ConditionOutcome, around: expressions.PolicyAround, related: Related
) -> Assessment:
    """The resource that ``auditIfNotExists`` and ``deployIfNotExists`` look for, and its presence."""
    kind, target = str(around.worked_out(details["type"])), around.target
    low, own = kind.lower(), target.type.lower()
    name = str(around.worked_out(details["name"])) if "name" in details else ""
    below = low.startswith((f"{own}/", *_EXTENSIONS))
    still_open = ""
    for one in related(kind):
        inside = one.id.lower().startswith(f"{target.id.lower()}/") if below else True
        if not inside or (name and name.lower() not in {"*", one.name.lower(), one.full_name.lower()}):
            continue
        found = evaluated(details.get("existencecondition") or {"allOf": []}, replace(around, target=one, asker=target))
        if found.holds:
            return Assessment(Ruling.PASSES, outcome)
        if one is target:
            outcome = replace(outcome, seen=(*outcome.seen, *found.seen))
        if found.holds is None:
            still_open = found.failure or "; ".join(found.open)
    what = f"`{kind}`{f' called `{name}`' if name else ''}"
    if still_open:
        return Assessment(Ruling.OPEN, outcome, why=f"whether the {what} is the one it looks for is open: {still_open}")
    if low.startswith(_MADE_BY_SERVICES):
        return Assessment(Ruling.OPEN, outcome, why=f"it looks for {what}, which Azure's services write")
    if not below and low != own:
        return Assessment(Ruling.OPEN, outcome, why=f"it looks for {what}, which may exist outside of this stack")
    ruling = Ruling.DEPLOYS if does == "deployifnotexists" else Ruling.AUDITS_ABSENCE
    if low == own:
        return Assessment(ruling, outcome, why=f"the {what} is not as it wants it", missing=kind)
    return Assessment(ruling, outcome, why=f"no {what} as it wants it is on the resource", missing=kind)


_FIELDS = frozenset({"fullname", "id", "kind", "location", "name", "tags", "type"})
_OPERATIONS = frozenset({"add", "addorreplace", "remove"})


def unknown_in(rule: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts of a rule that are not evaluated here, each once; in words that end a sentence."""
    try:
        return tuple(dict.fromkeys(_in_rule(rule)))
    except (AttributeError, KeyError, TypeError):
        return ("a form that rules of Azure Policy do not have",)


def _in_rule(rule: Mapping[str, Any]) -> Iterator[str]:
    yield from _in_condition(rule.get("if"))
    then = rule.get("then")
    if not isinstance(then, Mapping) or "effect" not in then:
        yield "a rule without an effect"
        return
    effect = then["effect"]
    if expressions.is_expression(effect):
        yield from _in_value(effect)
    elif str(effect).lower() not in JUDGED | ON_OTHERS:
        yield f"the effect `{effect}`"
    yield from _in_details(then.get("details"))


def _in_details(details: Any) -> Iterator[str]:
    if isinstance(details, list):  # append
        for entry in details:
            yield from _in_value(entry)
    if not isinstance(details, Mapping):
        return
    for name, value in details.items():
        match name.lower():
            case "existencecondition":
                yield from _in_condition(value)
            case "operations":
                for operation in value:
                    if str(operation.get("operation")).lower() not in _OPERATIONS:
                        yield f"the operation `{operation.get('operation')}`"
                    yield from _in_value(operation)
            case "name" | "type" | "resourcegroupname":
                yield from _in_value(value)


def _in_condition(condition: Any) -> Iterator[str]:
    if not isinstance(condition, Mapping):
        yield "a condition that is no object"
        return
    words = {key.lower(): value for key, value in condition.items()}
    for group in ("allof", "anyof"):
        if group in words:
            inner = words[group]
            for one in inner if isinstance(inner, list) else [inner]:
                yield from _in_condition(one)
            return
    if "not" in words:
        yield from _in_condition(words["not"])
        return
    operand = next((word for word in OPERANDS if word in words), None)
    operators = set(words) - {operand}
    if operand is None or len(operators) != 1 or not operators <= expressions.COMPARISONS.keys():
        yield f"the condition `{', '.join(sorted(words))}`"
        return
    (by,) = operators
    yield from _in_value(words[by])
    if operand == "count":
        count = {key.lower(): value for key, value in words["count"].items()}
        yield from _in_value(count.get("value"))
        if "where" in count:
            yield from _in_condition(count["where"])
    elif operand == "value":
        yield from _in_value(words["value"])
    else:
        yield from _in_field(words["field"])


def _in_field(name: Any) -> Iterator[str]:
    if expressions.is_expression(name):
        yield from _in_value(name)
        return
    low = str(name).lower()
    if "/" not in low and low not in _FIELDS and not low.startswith("identity.") and expressions.tag_of(low) is None:
        yield f"the field `{name}`"


def _in_value(value: Any) -> Iterator[str]:
    if expressions.is_expression(value):
        try:
            used = _functions_in(value)
        except expressions.NotAnExpressionError as error:
            yield f"the expression `{value[:60]}`: {error}"
            return
        for name in sorted(used - expressions.PolicyAround.special.keys() - FUNCTIONS.keys()):
            yield f"the function `{name}`"
    elif isinstance(value, list):
        for one in value:
            yield from _in_value(one)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _in_value(one)


def _functions_in(expression: str) -> set[str]:
    """The names of the functions that an expression calls, in small letters.

    Raises:
        NotAnExpressionError: It follows no grammar.
    """
    found: set[str] = set()
    todo: list[expressions.Node] = [expressions.parse(expression)]
    while todo:
        node = todo.pop()
        if isinstance(node, expressions.FunctionCall):
            found.add(node.name)
            todo += node.arguments
        elif isinstance(node, expressions.Access):
            todo += (node.of, node.key)
    return found
