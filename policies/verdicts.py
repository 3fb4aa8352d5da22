"""Judges what a resource asks for by the checks, with unknown values taken for every value that would matter."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from amlstack.findings import Finding, Level
from policies import checks
from policies.reading import AT_UP, Unknown

if TYPE_CHECKING:
    from datetime import date

    from policies.views import Subject

CHECKED_AT_UP = checks.Rule(
    code="checked-at-up",
    title="What the preview cannot know is checked when it is known.",
    what=(
        "Names, as advice, every rule that could not judge a resource yet, and the value that was missing. It never "
        "refuses: during `pulumi up` the value is known, and the rule judges the resource before it is created. A "
        "value that Azure resolves only when the job runs is named the same way."
    ),
    why="A rule that passes what it could not see looks exactly like a rule that was satisfied.",
    example="""\
clusters:
  - name: train
    size: ${other-stack.size}   # an output that is not known at preview
""",
    instead="""\
clusters:
  - name: train
    size: Standard_ND40rs_v2
""",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules say of one subject.

    Attributes:
        findings: What is wrong whatever the unknown values turn out to be.
        note: Which rules are still open and why; None when none is.
    """

    findings: tuple[Finding, ...]
    note: Finding | None = None


def judge(subject: Subject, on: date) -> Verdict:
    """Judge one size that a resource asks for.

    Args:
        subject: What is asked for.
        on: The day of the judgement.
    """
    if isinstance(subject.size, Unknown):
        return Verdict((), _note(subject, [rule.code for rule in checks.RULES], [subject.size]))
    unknown = [value for value in (subject.nodes, subject.single_node_jobs) if isinstance(value, Unknown)]
    outcomes = [
        checks.sizes_for(subject.size, nodes=nodes, on=on, single_node_jobs=single, where=subject.where)
        for nodes, single in product(
            (1, 2) if isinstance(subject.nodes, Unknown) else (subject.nodes,),
            (True, False) if isinstance(subject.single_node_jobs, Unknown) else (subject.single_node_jobs,),
        )
    ]
    codes = [{finding.code for finding in outcome} for outcome in outcomes]
    certain = set.intersection(*codes)
    undecided = sorted(set.union(*codes) - certain)
    return Verdict(
        findings=tuple(finding for finding in outcomes[0] if finding.code in certain),
        note=_note(subject, undecided, unknown) if undecided else None,
    )


def _note(subject: Subject, codes: list[str], unknown: list[Unknown]) -> Finding:
    later = all(value.why == AT_UP for value in unknown)
    return Finding(
        CHECKED_AT_UP.code,
        subject.where,
        seen=" and ".join(f"{value.path} {value.why}" for value in unknown),
        rule=f"{_list(codes)} {'checked at up' if later else 'not decided here'}",
        remedy="" if later else "Write the value out to have it judged",
        level=Level.INFO,
    )


def _list(codes: list[str]) -> str:
    return f"{codes[0]} is" if len(codes) == 1 else f"{', '.join(codes[:-1])} and {codes[-1]} are"
