"""The policies of the pack: one for each rule, named by its code, and the advice on what is checked later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_policy import EnforcementLevel, ResourceValidationPolicy

from amlstack.catalog.clock import today
from policies import checks
from policies.verdicts import CHECKED_AT_UP, judge
from policies.views import subjects

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from pulumi_policy import Policy, ReportViolation, ResourceValidationArgs

NAME = "amlstack"


def policies(on: date | None = None) -> list[Policy]:
    """All policies of the pack.

    Args:
        on: The day of the judgement; today, or the day in ``AMLSTACK_TODAY``, when None.
    """
    day = on or today()
    return [_enforced(rule, day) for rule in checks.RULES] + [_advice(day)]


def _enforced(rule: checks.Rule, on: date) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for subject in subjects(args.resource_type, args.props):
            for finding in judge(subject, on).findings:
                if finding.code == rule.code:
                    report(str(finding), None)

    return _policy(rule, EnforcementLevel.MANDATORY, validate)


def _advice(on: date) -> Policy:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        for subject in subjects(args.resource_type, args.props):
            note = judge(subject, on).note
            if note is not None:
                report(str(note), None)

    return _policy(CHECKED_AT_UP, EnforcementLevel.ADVISORY, validate)


def _policy(
    rule: checks.Rule, level: EnforcementLevel, validate: Callable[[ResourceValidationArgs, ReportViolation], None]
) -> Policy:
    return ResourceValidationPolicy(name=rule.code, description=rule.title, enforcement_level=level, validate=validate)
