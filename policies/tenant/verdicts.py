"""Verdicts of each policy on each resource of a stack."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.base.arm_language.effects import ON_OTHERS, Assessment, Ruling, assessed, effect_of
from amlstack.base.arm_language.expressions import PolicyAround
from amlstack.base.arm_language.functions import OpenError
from amlstack.base.arm_language.resources import PolicyTarget

if TYPE_CHECKING:
    from policies.tenant.application import AppliedPolicy
    from policies.tenant.stack import DeclaredStack

REQUESTS = frozenset({Ruling.DENIES, Ruling.MODIFIES, Ruling.APPENDS})
"""Rulings on a request; the others are on the resource as it is once the stack is up."""


@dataclass(frozen=True, slots=True)
class TenantVerdict:
    """One policy's word on one resource.

    Attributes:
        policy_id: The definition's id.
        title: Its display name.
        version: Its version; empty where none is given.
        source: What brings it; empty for the definition itself.
        target: The resource; None for a word on the definition itself.
        assessment: What it says.
        enforced: Whether it refuses and changes, or only reports.
        exempt: Why it asks nothing of this stack; empty where it does.
        message: What the assignment tells those whom it refuses.
    """

    policy_id: str
    title: str
    version: str
    source: str
    target: PolicyTarget | None
    assessment: Assessment
    enforced: bool = True
    exempt: str = ""
    message: str = ""


Judge = Callable[["PolicyTarget", "DeclaredStack"], Assessment]


def judge_policies(policies: Iterable[AppliedPolicy], stack: DeclaredStack) -> list[TenantVerdict]:
    """The verdicts of definitions; one that says nothing to any resource gives a single passing verdict."""
    found: list[TenantVerdict] = []
    for policy in policies:
        whole = _of_the_whole(policy, stack)
        own = [one for target in stack.targets if (one := _verdict(policy, target, stack)) is not None]
        found += [_about(policy, whole)] if whole else own or [_about(policy, Assessment(Ruling.PASSES))]
    return found


def _of_the_whole(policy: AppliedPolicy, stack: DeclaredStack) -> Assessment | None:
    """The assessment of a policy that no resource is asked about; None where they are asked."""
    definition = policy.definition
    if definition is None:
        return Assessment(Ruling.OPEN, why="no file has its definition")
    if policy.effect.lower() == "disabled":
        return Assessment(Ruling.PASSES)
    if definition.judges:
        return Assessment(Ruling.NOT_JUDGED, why=f"it judges {definition.judges}")
    if definition.mode.lower() not in {"all", "indexed"}:
        why = f"its mode is `{definition.mode}`: it judges what runs or lies in a resource, not resources"
        return Assessment(Ruling.NOT_JUDGED, why=why)
    around = PolicyAround(PolicyTarget("", "", {}), stack.place, policy.parameters)
    with contextlib.suppress(OpenError):
        does = policy.effect.lower() or effect_of(definition.rule, around)
        if does in ON_OTHERS:
            return Assessment(Ruling.NOT_JUDGED, why=f"its effect `{does}` is on no request for a resource")
    if stack.targets and not any(_reached(policy, target, stack) for target in stack.targets):
        return Assessment(
            Ruling.NOT_JUDGED, why=f"it is assigned to `{policy.scopes[0]}`, and reaches nothing of this stack"
        )
    return None


def _verdict(policy: AppliedPolicy, target: PolicyTarget, stack: DeclaredStack) -> TenantVerdict | None:
    definition = policy.definition
    if definition is None or not _reached(policy, target, stack):
        return None
    rule, mode = definition.rule, definition.mode

    def on(one: PolicyTarget) -> Assessment:
        return assessed(rule, policy.parameters, one, stack.place, stack.related, mode=mode, effect=policy.effect)

    assessment = on(target)
    if assessment.ruling not in REQUESTS:
        standing = next(one for one in stack.standing if one.id == target.id and one.type == target.type)
        assessment = assessment if standing is target else on(standing)
    return None if assessment.ruling is Ruling.PASSES else _about(policy, assessment, target)


def _about(policy: AppliedPolicy, assessment: Assessment, target: PolicyTarget | None = None) -> TenantVerdict:
    definition = policy.definition
    return TenantVerdict(
        policy.id,
        definition.title if definition else policy.id,
        definition.version if definition else "",
        policy.source,
        target,
        assessment,
        policy.enforced,
        policy.exempt,
        policy.message,
    )


def _reached(policy: AppliedPolicy, target: PolicyTarget, stack: DeclaredStack) -> bool:
    """True where an assignment reaches a resource; one to a management group reaches all."""
    place = f"{target.id.lower()}/"
    scope, left_out = policy.scopes
    below = stack.scope(scope)
    if below.startswith("/subscriptions/") and not place.startswith(f"{below}/"):
        return False
    if any(place.startswith(f"{stack.scope(one)}/") for one in left_out):
        return False
    return all(_selected(one, target) for each in policy.selectors for one in each.get("selectors") or ())


def _selected(selector: dict[str, object], target: PolicyTarget) -> bool:
    values = {"resourcetype": target.type, "resourcelocation": str(target.body.get("location", "")).replace(" ", "")}
    value = values.get(str(selector.get("kind", "")).lower())
    if value is None:
        return True
    named, left_out = selector.get("in"), selector.get("notIn")
    if isinstance(named, list) and value.lower() not in {str(one).lower() for one in named}:
        return False
    return not (isinstance(left_out, list) and value.lower() in {str(one).lower() for one in left_out})
