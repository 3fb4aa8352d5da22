"""Verdicts of each policy on each resource of a stack, and their findings with the settings that answer them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.effects import ON_OTHERS, Assessment, Ruling, assessed, effect_of
from amlstack.base.arm_language.expressions import PolicyAround
from amlstack.base.arm_language.functions import OpenError
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget
from amlstack.base.findings import Finding, Level

if TYPE_CHECKING:
    from policies.tenant.library import AppliedPolicy

ENDPOINTS = "microsoft.network/privateendpoints"
CONNECTIONS = "privateEndpointConnections"
WITHOUT_TAGS: Mapping[str, str] = {
    "microsoft.machinelearningservices/workspaces/computes": (
        "Azure Resource Manager documentation, tag support of resources: workspaces / computes: no"
    )
}
"""Types with a location of which Azure's table of tag support says that they have no tags, with the source."""


@dataclass(frozen=True)
class DeclaredStack:
    """The resources that a stack will create.

    Attributes:
        targets: Its resources, as their requests create them.
        place: Where they are created.
        not_rendered: Types that are registered and have no known request, which no policy is asked about.
    """

    targets: tuple[PolicyTarget, ...]
    place: PolicyPlace
    not_rendered: tuple[str, ...] = ()

    def scope(self, written: str) -> str:
        """A scope as it compares with ids of this stack: where its subscription is not known, any may be meant."""
        text = written.lower().rstrip("/")
        if "subscriptionId" in self.place.subscription or not text.startswith("/subscriptions/"):
            return text
        _, _, _, *rest = text.split("/")
        return "/".join([*self.own_subscription.split("/"), *rest])

    @property
    def own_subscription(self) -> str:
        """``/subscriptions/ID`` of its resources, in small letters."""
        return "/".join(self.targets[0].id.lower().split("/")[:3]) if self.targets else ""

    @cached_property
    def standing(self) -> tuple[PolicyTarget, ...]:
        """The same resources once the stack is up: what Azure adds to a resource that others refer to.

        A private endpoint becomes a connection of the resource that it leads to, approved where it asked for no
        person's word.
        """
        added: dict[str, list[dict[str, Any]]] = {}
        for endpoint in (one for one in self.targets if one.type.lower() == ENDPOINTS):
            for to, connection in _connections(endpoint):
                added.setdefault(to.lower(), []).append(connection)
        return tuple(_with(one, added.get(one.id.lower(), [])) for one in self.targets)

    def related(self, kind: str) -> Iterator[PolicyTarget]:
        """The resources of a type that are there once the stack is up."""
        low = kind.lower()
        for one in self.standing:
            if one.type.lower() == low:
                yield one
            elif low == f"{one.type.lower()}/{CONNECTIONS.lower()}":
                for index, connection in enumerate(one.body.get("properties", {}).get(CONNECTIONS) or ()):
                    yield PolicyTarget(kind, f"{one.id}/{CONNECTIONS}/{index}", connection)


def _connections(endpoint: PolicyTarget) -> Iterator[tuple[str, dict[str, Any]]]:
    properties = endpoint.body.get("properties") or {}
    for name, status in (
        ("privateLinkServiceConnections", "Approved"),
        ("manualPrivateLinkServiceConnections", "Pending"),
    ):
        for one in properties.get(name) or ():
            inner = {**one, **(one.get("properties") or {})}
            state = {"privateLinkServiceConnectionState": {"status": status}}
            groups = {"groupIds": inner.get("groupIds") or []}
            yield (
                str(inner.get("privateLinkServiceId", "")),
                {"properties": {"privateEndpoint": {"id": endpoint.id}, **state, **groups}},
            )


def _with(one: PolicyTarget, connections: list[dict[str, Any]]) -> PolicyTarget:
    if not connections:
        return one
    properties = {**(one.body.get("properties") or {}), CONNECTIONS: connections}
    return replace(one, body={**one.body, "properties": properties})


def indexed(kind: str, body: Mapping[str, Any]) -> bool | None:
    """True where definitions of the mode ``Indexed`` judge a resource; None where Azure's documents leave it open."""
    if kind.lower() in WITHOUT_TAGS:
        return None
    return "location" in body


REQUESTS = frozenset({Ruling.DENIES, Ruling.MODIFIES, Ruling.APPENDS})
"""Rulings on a request; the others are on the resource as it is once the stack is up."""


@dataclass(frozen=True, slots=True)
class TenantVerdict:
    """One policy's word on one resource.

    Attributes:
        policy: The policy.
        assessment: What it says.
        target: The resource; None for a word on the definition itself.
    """

    policy: AppliedPolicy
    assessment: Assessment
    target: PolicyTarget | None = None


def judge_policies(policies: Iterable[AppliedPolicy], stack: DeclaredStack) -> list[TenantVerdict]:
    """The verdicts of definitions; one that says nothing to any resource gives a single passing verdict."""
    found: list[TenantVerdict] = []
    for policy in policies:
        whole = _of_the_whole(policy, stack)
        own = [one for target in stack.targets if (one := _verdict(policy, target, stack)) is not None]
        found += [TenantVerdict(policy, whole)] if whole else own or [TenantVerdict(policy, Assessment(Ruling.PASSES))]
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
    return None if assessment.ruling is Ruling.PASSES else TenantVerdict(policy, assessment, target)


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


OF_ALL = "*"
"""In place of a type: what every resource has."""


@dataclass(frozen=True, slots=True)
class SettingAnswer:
    """The answer for a property's setting.

    Attributes:
        setting: Path below ``amlstack:``, ``clusters[]`` for the cluster in question; empty where none changes it.
        say: What to write, or why nothing does, as a sentence.
    """

    setting: str
    say: str


def answer(field: str, kind: str) -> SettingAnswer | None:
    """The answer to a policy on a property, or on what is missing beside the resource; None where there is none.

    Args:
        field: ``Microsoft.X/type/property.path``, or a type that is looked for.
        kind: Type of the resource.
    """
    low, own = field.lower().replace("[*]", ""), f"{kind.lower()}/"
    table = {**_table().get(OF_ALL, {}), **_table().get(kind.lower(), {})}
    path = low.removeprefix(own)
    for name in (low, path, path.partition("[")[0]):
        while name:
            if name in table:
                return table[name]
            name = name.rpartition(".")[0]  # noqa: PLW2901
    return None


@cache
def _table() -> Mapping[str, Mapping[str, SettingAnswer]]:
    text = (Path(__file__).with_name("data") / "answers.json").read_text("utf-8")
    data: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return {
        kind.lower(): {path.lower(): SettingAnswer(one.get("setting", ""), one["say"]) for path, one in rows.items()}
        for kind, rows in data.items()
    }


def settings() -> frozenset[str]:
    """Every setting that is named."""
    return frozenset(one.setting for rows in _table().values() for one in rows.values() if one.setting)


CODES: Mapping[Ruling, tuple[str, Level]] = {
    Ruling.DENIES: ("tenant-denies", Level.ERROR),
    Ruling.AUDITS: ("tenant-audits", Level.WARNING),
    Ruling.AUDITS_ABSENCE: ("tenant-audits", Level.WARNING),
    Ruling.MODIFIES: ("tenant-modifies", Level.WARNING),
    Ruling.APPENDS: ("tenant-modifies", Level.WARNING),
    Ruling.DEPLOYS: ("tenant-deploys", Level.INFO),
    Ruling.OPEN: ("tenant-unknown", Level.WARNING),
    Ruling.NOT_JUDGED: ("tenant-not-judged", Level.INFO),
}
EXEMPT = "tenant-exempt"
_DOES = {
    Ruling.DENIES: "refuses it",
    Ruling.AUDITS: "reports it",
    Ruling.AUDITS_ABSENCE: "reports it",
    Ruling.MODIFIES: "changes the request",
    Ruling.APPENDS: "adds to the request",
    Ruling.DEPLOYS: "deploys what is missing",
}
SHOWN = 3
"""Most resources that one finding names."""


def findings(verdicts: Iterable[TenantVerdict]) -> list[tuple[Finding, PolicyTarget | None, str]]:
    """The findings of verdicts: one finding for all resources of which a policy says the same.

    Returns:
        Each with the first of its resources and the setting that answers it (a path, or empty).
    """
    alike: dict[tuple[Any, ...], list[TenantVerdict]] = {}
    for one in verdicts:
        if one.assessment.ruling is not Ruling.PASSES:
            alike.setdefault(_key(one), []).append(one)
    silent = [each[0] for each in alike.values() if each[0].assessment.ruling is Ruling.NOT_JUDGED]
    spoken = [each for each in alike.values() if each[0].assessment.ruling is not Ruling.NOT_JUDGED]
    return [*(_finding(each) for each in spoken), *_not_judged(silent)]


def _not_judged(silent: list[TenantVerdict]) -> list[tuple[Finding, PolicyTarget | None, str]]:
    """One finding for all policies that judge no resource of a stack for the same reason."""
    by_reason: dict[str, list[str]] = {}
    for one in silent:
        by_reason.setdefault(one.assessment.why, []).append(f"`{one.policy.title}`")
    code, level = CODES[Ruling.NOT_JUDGED]
    found: list[tuple[Finding, PolicyTarget | None, str]] = []
    for why, titles in by_reason.items():
        more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
        seen = f"{', '.join(titles[:SHOWN])}{more}: {why}"
        found.append((Finding(code, "", seen, "", level=level), None, ""))
    return found


def _key(one: TenantVerdict) -> tuple[Any, ...]:
    kind = one.target.type if one.target else ""
    return (one.policy.id, one.policy.source, one.assessment.ruling, kind, _seen(one), one.policy.exempt)


def _finding(alike: list[TenantVerdict]) -> tuple[Finding, PolicyTarget | None, str]:
    one = alike[0]
    assessment, policy = one.assessment, one.policy
    code, level = CODES[assessment.ruling]
    seen, answers = _seen(one), _answers(one)
    does = _DOES.get(assessment.ruling, "")
    if not policy.enforced and assessment.ruling in REQUESTS | {Ruling.DEPLOYS}:
        level, does = Level.WARNING, "is not enforced, and reports it"
    if policy.exempt:
        code, level, seen = EXEMPT, Level.INFO, f"{seen}; {policy.exempt}"
    name = " ".join(part for part in (f"`{policy.title}`", _short(policy.id), policy.version) if part)
    source = f" of `{policy.source}`" if policy.source else ""
    rule = f"{name}{source} {does}" if does else f"{name}{source}"
    remedy = " ".join(dict.fromkeys([*(_answer_text(each) for each in answers), policy.message])).strip()
    if not answers and does and not policy.exempt:
        remedy = f"{remedy} No setting of a stack is known that answers it.".strip()
    setting = next((each.setting for each in answers if each.setting), "")
    return Finding(code, _where(alike), seen, rule, remedy, level), one.target, setting


def _where(alike: list[TenantVerdict]) -> str:
    named = [_named(one.target) for one in alike if one.target is not None]
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return ", ".join(named[:SHOWN]) + more


def _named(target: PolicyTarget) -> str:
    return f"{target.type.rpartition('/')[2]} {target.name}"


def _short(policy_id: str) -> str:
    last = policy_id.rpartition("/")[2]
    return last.partition("-")[0] if len(last) == 36 and last.count("-") == 4 else ""


def _seen(one: TenantVerdict) -> str:
    assessment = one.assessment
    if assessment.changes and assessment.ruling not in {Ruling.DENIES, Ruling.OPEN}:
        return "; ".join(
            f"`{_path(each.field, one)}` becomes {_value(each.after)}"
            + ("" if each.before in (None, "") else f" instead of {_value(each.before)}")
            for each in assessment.changes
        )
    said = [assessment.why] if assessment.why else []
    return "; ".join([*said, *(_said(name, value, one) for name, value in assessment.outcome.seen)]) or "It applies"


def _said(name: str, value: Any, one: TenantVerdict) -> str:
    if name.endswith("[*]") and isinstance(value, int):
        return f"`{_path(name.removesuffix('[*]'), one)}` has {value} elements of the kind that counts"
    return f"`{_path(name, one)}` is {_value(value)}"


def _path(field: str, one: TenantVerdict) -> str:
    kind = f"{one.target.type}/" if one.target else ""
    return field[len(kind) :] if kind and field.lower().startswith(kind.lower()) else field


def _value(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "not set"
    return f"`{str(value).lower() if isinstance(value, bool) else str(value)[:120]}`"


def _answers(one: TenantVerdict) -> list[SettingAnswer]:
    if one.target is None:
        return []
    fields = [name for name, _ in one.assessment.outcome.seen] + [each.field for each in one.assessment.changes]
    fields += [one.assessment.missing] if one.assessment.missing else []
    found = [answer(name, one.target.type) for name in fields]
    return list(dict.fromkeys(each for each in found if each is not None))


def _answer_text(each: SettingAnswer) -> str:
    return f"`amlstack:{each.setting}`: {each.say}" if each.setting else each.say
