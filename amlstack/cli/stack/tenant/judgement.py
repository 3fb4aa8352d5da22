"""`amlstack check --against`: the verdicts of tenants' policies on a stack, as findings and as JSON."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from amlstack.base import api_versions
from amlstack.base.arm_language.resources import PolicyTarget, with_defaults
from amlstack.base.findings import Finding, Level, errors
from amlstack.base.text import hint
from amlstack.cli import stack_files, targets
from amlstack.cli.console import print_json, tally
from amlstack.cli.jobfiles import formats
from amlstack.cli.jobfiles.formats import Format
from policies.tenant import library
from policies.tenant import verdicts as verdicts_module
from policies.tenant.library import AppliedPolicy, applied
from policies.tenant.verdicts import DeclaredStack, TenantVerdict, judge_policies

if TYPE_CHECKING:
    from amlstack.cli.targets import Targets
    from infra.settings import Reading

NOT_READ, NOT_ASKED = library.NOT_READ, "tenant-not-asked"
UNUSED: Final = "tenant-exempt-unused"
_SHORTEST: Final = 8
"""Least characters of an id that name a definition."""


@dataclass(frozen=True, slots=True)
class TenantJudgement:
    """The answers of one or more tenants' policies about a stack.

    Attributes:
        verdicts: By what was asked: the word of an initiative, or ``files``.
        findings: All that they come to.
        headings: One line on each that was asked.
        resources: How many resources were judged.
    """

    verdicts: dict[str, list[TenantVerdict]]
    findings: tuple[Finding, ...]
    headings: tuple[str, ...]
    resources: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "ok": not errors(self.findings),
            "resources": self.resources,
            "against": [
                {"name": name, "definitions": _counts(found), "verdicts": [_plain(one) for one in found]}
                for name, found in self.verdicts.items()
            ],
            "findings": [one.as_dict() for one in self.findings],
        }


def judge_stack(
    files: Sequence[Path],
    stack: str | None,
    asked: Sequence[str],
    exempt: Sequence[str],
    *,
    form: Format,
    read_group: bool,
) -> int:
    """Judge a stack, print the findings, and give the exit status.

    Args:
        files: Further files of policies.
        stack: The stack; None as for the other checks.
        asked: Words of initiatives, files and folders.
        exempt: Definitions of which the stack is exempt.
        form: In which form.
        read_group: Azure is asked for location and tags of a resource group that exists.

    Raises:
        typer.BadParameter: A file is a job file.
    """
    if others := [str(one) for one in files if one.suffix.lower() != ".json" and not one.is_dir()]:
        raise typer.BadParameter(f"{others[0]} is no policy: check job files in a run of their own.")
    where = targets.find(None, stack)
    judgement = judged(where, [*asked, *map(str, files)], exempt, read_group=read_group)
    closing = [*summary(judgement), f"stack {where.stack or '?'}: {tally(judgement.findings)}"]
    if form is Format.JSON:
        print_json(judgement.as_dict())
    else:
        fallback = str(where.root / f"Pulumi.{where.stack}.yaml")
        formats.show(form, judgement.findings, where.root, fallback, category="tenant-policies", closing=closing)
    return 1 if errors(judgement.findings) else 0


def judged(where: Targets, asked: Sequence[str], exempt: Sequence[str], *, read_group: bool = False) -> TenantJudgement:
    """Judge a stack by tenants' policies.

    Args:
        where: The stack.
        asked: Words of initiatives, files and folders.
        exempt: Definitions of which the stack is exempt: ids, or the beginnings of ids.
        read_group: Azure is asked for location and tags of a resource group that exists.
    """
    stack, found = _stack(where, read_group=read_group)
    if stack is None or where.reading is None:
        return TenantJudgement({}, tuple(found), (), 0)
    verdicts: dict[str, list[TenantVerdict]] = {}
    headings: list[str] = []
    paths: list[Path] = []
    for one in dict.fromkeys(asked):
        if one in library.words():
            initiative = library.initiative(one)
            verdicts[one] = judge_policies(initiative.members, stack)
            headings.append(_heading(initiative))
        elif not Path(one).exists() and not one.lower().endswith(".json") and "/" not in one:
            found.append(_unknown_word(one))
        else:
            paths.append(Path(one))
    if paths:
        read = library.read(paths)
        found += read.findings
        verdicts["files"] = judge_policies([_completed(policy) for policy in applied(read)], stack)
    found += _exemptions_without_effect(exempt, verdicts)
    rule = "Policies are asked about requests of types whose body is known here"
    for token in stack.not_rendered:
        seen = f"The request for `{token}` is not known here"
        found.append(Finding("tenant-not-judged", token, seen, rule, level=Level.INFO))
    for own in verdicts.values():
        for index, verdict in enumerate(own):
            if any(_names(word, verdict) for word in exempt):
                own[index] = replace(verdict, policy=replace(verdict.policy, exempt="--exempt names it"))
        found += (_placed(where.reading, *each) for each in verdicts_module.findings(own))
    return TenantJudgement(verdicts, tuple(dict.fromkeys(found)), tuple(headings), len(stack.targets))


def summary(judgement: TenantJudgement) -> list[str]:
    """One line on each that was asked: how many definitions say what."""
    lines = list(judgement.headings)
    for name, found in judgement.verdicts.items():
        counts = ", ".join(f"{number} {what}" for what, number in _counts(found).items() if number)
        lines.append(f"{name}: {counts or 'no definition'}; {judgement.resources} resources judged")
    return lines


def _completed(policy: AppliedPolicy) -> AppliedPolicy:
    """A policy of files; a definition that no file has is judged by ours, where we have it."""
    ours = library.definitions().get(library.last(policy.id)) if policy.definition is None else None
    if ours is None:
        return policy
    effect = next((str(value) for name, value in policy.parameters.items() if name.lower() in _EFFECTS), "")
    parameters = with_defaults(ours.parameters, policy.parameters)
    source = policy.source or "our statement of it"
    return replace(
        policy, id=ours.id, definition=ours, parameters=parameters, source=source, effect=policy.effect or effect
    )


_EFFECTS = ("effect", "effects", "audit_effect")


def _stack(where: Targets, *, read_group: bool) -> tuple[DeclaredStack | None, list[Finding]]:
    from amlstack.cli.stack.tenant.requests import NotRenderedError, declared_stack
    from infra.names import resolve_account

    if where.reading is None:
        rule = "Policies judge what a stack registers"
        wrong = Finding("stack-missing", "", "No stack is there to be judged", rule, "Name one with --stack.")
        return None, list(where.findings) or [wrong]
    found = list(where.reading.findings)
    if where.reading.settings is None:
        rule = "What a stack registers is known once its settings are right"
        return None, [*found, Finding(NOT_ASKED, "", "The stack's settings are wrong, and no policy was asked", rule)]
    config = stack_files.engine_config(where.reading.file.config) if where.reading.file else {}
    who, unknown = resolve_account(config, os.environ)
    known = not any("subscription" in one.where for one in unknown)
    try:
        stack = declared_stack(where.reading.settings, who, known=known, stack=where.stack or "")
    except NotRenderedError as error:
        rule = "What a stack registers is known once its program takes it"
        return None, [*found, Finding(NOT_ASKED, "", f"The stack's program refuses it: {error}", rule)]
    if read_group and (unread := _read_group(stack, config)):
        found.append(unread)
    return stack, found


def _read_group(stack: DeclaredStack, config: Mapping[str, str]) -> Finding | None:
    """Take location and tags of the stack's resource group from Azure; a finding where it cannot be read."""
    from amlstack.provider.arm import ArmError

    group = stack.place.group
    if "tags" in group:
        return None  # the stack makes the group: its settings say them
    try:
        arm = stack_files.client_of(config)
        seen = arm.look(str(group["id"]), api_versions.RESOURCES)
        missing = "There is no such resource group" if seen.status == 404 else ""
    except ArmError as error:
        missing = str(error)
    if missing:
        rule = "Policies that go by the group's location or tags stay open"
        return Finding(NOT_ASKED, "amlstack:resource_group", missing, rule, level=Level.WARNING)
    group.update(location=seen.body.get("location"), tags=dict(seen.body.get("tags") or {}))
    return None


def _unknown_word(word: str) -> Finding:
    known = library.words()
    rule = f"`--against` takes {', '.join(f'`{one}`' for one in known)}, or files and folders with JSON of Azure Policy"
    return Finding(
        NOT_READ, "--against", f"There is no initiative and no file `{word}`", rule, hint(word, known).strip()
    )


def _names(word: str, one: TenantVerdict) -> bool:
    return len(word) >= _SHORTEST and library.last(one.policy.id).startswith(library.last(word))


def _exemptions_without_effect(
    exempt: Sequence[str], verdicts: Mapping[str, Sequence[TenantVerdict]]
) -> Iterator[Finding]:
    rule = f"`--exempt` takes the id of a definition that is asked here, or its first {_SHORTEST} characters at least"
    for word in dict.fromkeys(exempt):
        if not any(_names(word, one) for own in verdicts.values() for one in own):
            seen = f"No definition is named by `{word}`, and nothing is exempt by it"
            yield Finding(UNUSED, "--exempt", seen, rule, level=Level.WARNING)


def _placed(reading: Reading, finding: Finding, target: PolicyTarget | None, setting: str) -> Finding:
    """The finding at the line of the setting that answers it, or of the nearest that is written."""
    parts: list[str | int] = []
    for part in setting.split(".") if setting else ():
        name, _, every = part.partition("[")
        parts.append(name)
        if every and target is not None and reading.partial is not None:
            names = [each.name for each in reading.partial.clusters]
            if target.name not in names:
                return finding
            parts.append(names.index(target.name))
    return reading.locate(tuple(parts), finding) if parts else finding


def _counts(found: Iterable[TenantVerdict]) -> dict[str, int]:
    """The number of definitions by the gravest effect that each has."""
    by_policy: dict[tuple[str, str], list[str]] = {}
    for one in found:
        ruling = "exempt" if one.policy.exempt else str(one.assessment.ruling)
        by_policy.setdefault((one.policy.id, one.policy.source), []).append(ruling)
    gravest = Counter(min(each, key=list(_COUNTED).index) for each in by_policy.values())
    return {word: gravest[name] for name, word in _COUNTED.items() if gravest[name]}


_COUNTED = {
    "denies": "deny",
    "open": "not known",
    "modifies": "modify",
    "appends": "append",
    "audits": "audit",
    "auditIfNotExists": "audit what is missing",
    "deployIfNotExists": "deploy what is missing",
    "exempt": "exempt",
    "notJudged": "judge no resource",
    "passes": "pass",
}
"""Rulings, the gravest first, and how a summary counts them."""


def _plain(one: TenantVerdict) -> dict[str, Any]:
    assessment = one.assessment
    return {
        "definition": one.policy.id,
        "name": one.policy.title,
        "version": one.policy.version,
        "source": one.policy.source,
        "resource": one.target.id if one.target else None,
        "ruling": str(assessment.ruling),
        "enforced": one.policy.enforced,
        "exempt": one.policy.exempt or None,
        "seen": [{"field": name, "value": value} for name, value in assessment.outcome.seen],
        "changes": [{"field": each.field, "before": each.before, "after": each.after} for each in assessment.changes],
        "why": assessment.why or None,
    }


def _heading(initiative: library.Initiative) -> str:
    number, in_all = len(initiative.members), initiative.members_in_all
    of = f"{number} of {in_all} definitions judge what a stack may have"
    if number == in_all:
        of = f"{number} definitions, all of them stated here"
    version = f" {initiative.version}" if initiative.version else ""
    return f"{initiative.word}: {initiative.name}{version}; {of} (read on {initiative.checked})"
