"""Verdicts as findings: what a policy would do to which resource, what it asks, and the setting that answers it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.effects import Ruling
from amlstack.base.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.base.arm_language.resources import PolicyTarget
    from policies.tenant.verdicts import TenantVerdict

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
    text = resources.files(__package__).joinpath("data", "answers.json").read_text("utf-8")
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
        by_reason.setdefault(one.assessment.why, []).append(f"`{one.title}`")
    code, level = CODES[Ruling.NOT_JUDGED]
    found: list[tuple[Finding, PolicyTarget | None, str]] = []
    for why, titles in by_reason.items():
        more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
        seen = f"{', '.join(titles[:SHOWN])}{more}: {why}"
        found.append((Finding(code, "", seen, "", level=level), None, ""))
    return found


def _key(one: TenantVerdict) -> tuple[Any, ...]:
    kind = one.target.type if one.target else ""
    return (one.policy_id, one.source, one.assessment.ruling, kind, _seen(one), one.exempt)


def _finding(alike: list[TenantVerdict]) -> tuple[Finding, PolicyTarget | None, str]:
    one = alike[0]
    assessment = one.assessment
    code, level = CODES[assessment.ruling]
    seen, answers = _seen(one), _answers(one)
    does = _DOES.get(assessment.ruling, "")
    if not one.enforced and assessment.ruling in {Ruling.DENIES, Ruling.MODIFIES, Ruling.APPENDS, Ruling.DEPLOYS}:
        level, does = Level.WARNING, "is not enforced, and reports it"
    if one.exempt:
        code, level, seen = EXEMPT, Level.INFO, f"{seen}; {one.exempt}"
    name = " ".join(part for part in (f"`{one.title}`", _short(one.policy_id), one.version) if part)
    source = f" of `{one.source}`" if one.source else ""
    rule = f"{name}{source} {does}" if does else f"{name}{source}"
    remedy = " ".join(dict.fromkeys([*(_answer_text(each) for each in answers), one.message])).strip()
    if not answers and assessment.ruling in CODES and does and not one.exempt:
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
