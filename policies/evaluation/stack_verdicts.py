"""Judges a stack as a whole: the sum of what it asks for, the exceptions, the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.catalog import sizes
from policies.checks.cost import STACK_BUDGET_RULE, GrowsTo, check_stack_budget
from policies.evaluation.binding import paid_as
from policies.evaluation.door import canonical
from policies.evaluation.facts import Unknown
from policies.evaluation.requests import judged
from policies.evaluation.resource_subjects import subjects
from policies.evaluation.verdicts import left_open
from policies.pack_rules import CATALOGUE_OLD, EXCEPTION_EXPIRED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date
    from typing import Any

    from policies.config import Config
    from policies.evaluation.subjects import Subject


def judges_sum(config: Config) -> bool:
    """True where anything is judged on the sum of a stack: only then must its resources be kept."""
    return config.enabled(STACK_BUDGET_RULE.code) and any(config.settings(STACK_BUDGET_RULE.code).values())


def judge_whole(resources: Iterable[tuple[str, Any]], config: Config, on: date, *, version: str) -> Iterable[Finding]:
    """Judge the stack as a whole, the exceptions and the catalogue.

    Args:
        resources: Type and properties of every resource; read where `judges_sum`.
        config: The configuration.
        on: The day of the judgement.
        version: The pack's version.
    """
    if judges_sum(config):
        asked = (
            subject for kind, props in resources if judged(kind) for subject in subjects(kind, canonical(props)[0])
        )
        yield from judge_stack(asked, config)
    if config.enabled(EXCEPTION_EXPIRED.code):
        yield from (waiver.finding() for waiver in config.exceptions if not waiver.counts_on(on))
    if config.enabled(CATALOGUE_OLD.code):
        yield from judge_catalogue(on, days=int(config.settings(CATALOGUE_OLD.code)["days"]), version=version)


def judge_stack(subjects: Iterable[Subject], config: Config) -> tuple[Finding, ...]:
    """Judge the sum of what a stack asks for."""
    asked: list[GrowsTo] = []
    unknown: list[Unknown] = []
    for subject in subjects:
        if subject.size is None or subject.kind not in {"cluster", "job"}:
            continue
        missing = [value for value in (subject.size, subject.nodes) if isinstance(value, Unknown)]
        unknown += missing
        size = sizes.get(subject.size) if isinstance(subject.size, str) else None
        if size is not None and isinstance(subject.nodes, int):
            asked.append(GrowsTo(size, subject.nodes, *paid_as(subject)))
    found = check_stack_budget(asked, **config.settings(STACK_BUDGET_RULE.code))
    refused, notes = left_open("", {(value,): [STACK_BUDGET_RULE.code] for value in unknown}, config)
    return (*found, *refused, *notes)


def judge_catalogue(on: date, *, days: int, version: str) -> Iterator[Finding]:
    """Judge the catalogue as of a day.

    Args:
        on: The day of the judgement.
        days: How many days ago it may have been checked last.
        version: The pack's version.
    """
    checked, newest = sizes.last_checked(), sizes.last_retirement()
    if newest is not None and on > newest:
        seen = f"Version {version} knows no retirement after {newest.isoformat()}, and that day has passed"
    elif (on - checked).days > days:
        seen = f"The catalogue of version {version} was last checked in {checked:%Y-%m}"
    else:
        return
    yield Finding(
        CATALOGUE_OLD.code,
        "",
        seen=seen,
        rule="A pack knows the retirements of today",
        remedy="Pin a newer version of the pack",
        level=Level.WARNING,
    )
