"""Every job ends some day."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule, Setting

RULE = Rule(
    code="job-timeout",
    title="A job has a timeout.",
    what=("Flags a job without a timeout, and one whose timeout is above the configured hours."),
    why=(
        "A rank that hangs in a collective hangs all of them, at the full price of every node, until the job is "
        "cancelled or reaches its timeout."
    ),
    example=job(limits=None),
    instead=job(),
    level="advisory",
    settings=(Setting("hours", "number", "Most hours that a timeout may be."),),
    not_exported=NO_JOB,
)


REMEDY = "Write limits.timeout, such as PT12H"


def check(timeout: int | None, *, hours: float | None = None, where: str = "limits.timeout") -> Finding | None:
    """Judge when a job ends at the latest.

    Args:
        timeout: Seconds after which Azure ML ends it; None or 0 for never.
        hours: Most hours; None for no bound.
        where: Path of the timeout in the declaration.
    """
    if not timeout:
        seen = "The job has no timeout"
    elif hours is not None and timeout > hours * 3600:
        seen = f"The timeout is {timeout / 3600:g} hours"
    else:
        return None
    return Finding(
        RULE.code,
        where,
        seen=seen,
        rule="Only a timeout ends a job that hangs",
        remedy=f"Write {hours:g} hours or less" if hours is not None else REMEDY,
    )
