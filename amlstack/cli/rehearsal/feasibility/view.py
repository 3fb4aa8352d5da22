"""The answer of ``--dry-run`` in lines and as JSON."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from amlstack.cli.console import print_json, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amlstack.base.findings import Finding
    from amlstack.cli.rehearsal.feasibility.aspect import Aspect, Feasibility

_ORDER = ("steps", "environment", "programs", "data", "internet", "GPU", "MPI", "size", "disk", "ports", "sandbox")
_WIDTH = 15


def show(
    file: Path, answers: Sequence[Feasibility], found: Sequence[Finding], *, possible: bool, as_json: bool
) -> None:
    """Prints it.

    Args:
        file: The job file.
        answers: One for each job.
        found: Findings on the file, which were printed already unless JSON is wanted.
        possible: Whether all can be rehearsed.
        as_json: Whether JSON is wanted.
    """
    if as_json:
        findings = [each.as_dict() for each in found]
        print_json(
            {
                "file": str(file),
                "possible": possible,
                "jobs": [each.as_dict() for each in answers],
                "findings": findings,
            }
        )
        return
    for answer in answers:
        say("\n".join(_lines(answer)))
    count = sum(len(answer.blocking) for answer in answers)
    if possible:
        say(f"{file}: can be rehearsed here; nothing was started")
    else:
        things = (
            "as the findings above say" if not count else f"{count} thing{' is' if count == 1 else 's are'} in the way"
        )
        say(f"{file}: cannot be rehearsed here: {things}; nothing was started")


def _lines(answer: Feasibility) -> Iterator[str]:
    yield f"{answer.name}"
    for about in (*_ORDER, *dict.fromkeys(each.about for each in answer.aspects if each.about not in _ORDER)):
        label = about
        for each in answer.aspects:
            if each.about == about:
                yield from _entry(label, line_of(each))
                label = ""
    label = "unproven"
    for text in answer.unproven:
        yield from _entry(label, text)
        label = ""


def line_of(each: Aspect) -> str:
    """One aspect as text: its place, whether it is in the way, and the remedy."""
    places = f"{', '.join(each.places)}: " if each.places else ""
    spot = f"{each.spot}: " if each.spot else ""
    no = "NO: " if each.state == "blocks" else ""
    remedy = f". {each.remedy}" if each.remedy else ""
    return f"{no}{spot}{places}{each.text.rstrip('.')}{remedy}"


def _entry(label: str, text: str) -> Iterator[str]:
    """A label and its text, which is broken at blanks only, so that a path stays whole."""
    indent = " " * _WIDTH
    lines = textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {label:<{_WIDTH - 2}}{lines[0]}"
    yield from (f"{indent}{line}" for line in lines[1:])
