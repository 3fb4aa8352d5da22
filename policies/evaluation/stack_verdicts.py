"""Judges a stack as a whole: the sum of what it asks for, the exceptions, the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.catalog import sizes
from policies.checks.cost import stack_budget
from policies.evaluation import catalogue_age
from policies.evaluation.binding import paid_as
from policies.evaluation.door import canonical
from policies.evaluation.facts import Unknown
from policies.evaluation.open_rules import left_open
from policies.evaluation.resource_subjects import subjects
from policies.evaluation.type_tokens import judged
from policies.pack_rules import CATALOGUE_OLD, EXCEPTION_EXPIRED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date
    from typing import Any

    from amlstack.base.findings import Finding
    from policies.config import Config
    from policies.evaluation.subject import Subject


def judges_sum(config: Config) -> bool:
    """Whether anything is judged on the sum of a stack: only then must its resources be kept."""
    return config.enabled(stack_budget.RULE.code) and any(config.settings(stack_budget.RULE.code).values())


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
        yield from catalogue_age.check(on, days=int(config.settings(CATALOGUE_OLD.code)["days"]), version=version)


def judge_stack(subjects: Iterable[Subject], config: Config) -> tuple[Finding, ...]:
    """Judge the sum of what a stack asks for."""
    asked: list[stack_budget.GrowsTo] = []
    unknown: list[Unknown] = []
    for subject in subjects:
        if subject.size is None or subject.kind not in {"cluster", "job"}:
            continue
        missing = [value for value in (subject.size, subject.nodes) if isinstance(value, Unknown)]
        unknown += missing
        size = sizes.get(subject.size) if isinstance(subject.size, str) else None
        if size is not None and isinstance(subject.nodes, int):
            asked.append(stack_budget.GrowsTo(size, subject.nodes, *paid_as(subject)))
    found = stack_budget.check(asked, **config.settings(stack_budget.RULE.code))
    refused, notes = left_open("", {(value,): [stack_budget.RULE.code] for value in unknown}, config)
    return (*found, *refused, *notes)
