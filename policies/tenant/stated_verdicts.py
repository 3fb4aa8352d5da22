"""What a stated initiative says to each resource of a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.arm_language.conditions import ConditionOutcome
from amlstack.base.arm_language.effects import ON_OTHERS, Assessment, PolicyChange, Ruling, if_indexed, is_indexed
from amlstack.base.arm_language.values import FailingExpressionError, OpenError
from policies.tenant.requirements import applies, breaches
from policies.tenant.verdicts import REQUESTS, TenantVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.base.arm_language.resources import PolicyTarget
    from policies.tenant.stack import DeclaredStack
    from policies.tenant.statements import StatedDefinition, StatedInitiative

_RULINGS = {
    "deny": Ruling.DENIES,
    "audit": Ruling.AUDITS,
    "modify": Ruling.MODIFIES,
    "auditifnotexists": Ruling.AUDITS_ABSENCE,
    "deployifnotexists": Ruling.DEPLOYS,
}


def of_initiative(stated: StatedInitiative, stack: DeclaredStack) -> list[TenantVerdict]:
    """The verdicts of an initiative's members; one that says nothing to any resource gives a single passing verdict."""
    found: list[TenantVerdict] = []
    for member in stated.members:
        found += of_definition(
            member.definition, stack, member.effect, member.parameters, stated.name if stated.id else ""
        )
    return found


def of_definition(
    stated: StatedDefinition, stack: DeclaredStack, effect: str = "", given: Mapping[str, object] | None = None,
    source: str = "",
) -> list[TenantVerdict]:  # fmt: skip
    """The verdicts of one stated definition.

    Args:
        stated: The definition.
        stack: The stack.
        effect: Its effect; the default when empty.
        given: Values of its parameters.
        source: What brings it.
    """
    does, parameters = (effect or stated.effects[0]).lower(), {**stated.parameters, **(given or {})}

    def about(assessment: Assessment, target: PolicyTarget | None = None) -> TenantVerdict:
        return TenantVerdict(stated.id, stated.name, stated.version, source, target, assessment)

    if does != "disabled" and (stated.judges or does in ON_OTHERS):
        return [about(Assessment(Ruling.NOT_JUDGED, why=f"it judges {stated.judges}"))]
    found = []
    for target in stack.targets if does != "disabled" else ():
        if target.type.lower() != stated.on.lower():
            continue
        assessment = _assessed(stated, _RULINGS[does], parameters, target, stack)
        if assessment.ruling is not Ruling.PASSES:
            found.append(about(assessment, target))
    return found or [about(Assessment(Ruling.PASSES))]


def _assessed(
    stated: StatedDefinition,
    ruling: Ruling,
    parameters: Mapping[str, object],
    target: PolicyTarget,
    stack: DeclaredStack,
) -> Assessment:
    seen = target
    if ruling not in REQUESTS:
        seen = next(one for one in stack.standing if one.id == target.id and one.type == target.type)
    try:
        if not applies(stated.when, seen):
            return Assessment(Ruling.PASSES)
        missed = breaches(stated.requires, seen, stack, parameters)
    except FailingExpressionError as error:
        assessment = Assessment(Ruling.DENIES, why=f"Azure cannot evaluate it, which refuses the request: {error.why}")
        return _if_indexed(stated, target, assessment)
    except OpenError as error:
        return Assessment(Ruling.OPEN, why=error.why)
    if not missed:
        return Assessment(Ruling.PASSES)
    fields = tuple((f"{stated.on}/{one.property}", one.seen) for one in missed)
    changes: tuple[PolicyChange, ...] = ()
    if ruling is Ruling.MODIFIES:
        changes = tuple(PolicyChange(f"{stated.on}/{one.property}", None, one.wanted) for one in missed)
    why = "; ".join(one.seen for one in missed)
    return _if_indexed(stated, target, Assessment(ruling, ConditionOutcome(holds=True, seen=fields), changes, why))


def _if_indexed(stated: StatedDefinition, target: PolicyTarget, assessment: Assessment) -> Assessment:
    if stated.mode.lower() != "indexed" or is_indexed(target):
        return assessment
    return Assessment(Ruling.PASSES) if is_indexed(target) is False else if_indexed(assessment, target)
