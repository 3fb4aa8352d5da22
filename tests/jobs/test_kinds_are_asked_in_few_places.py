"""Callers that ask for the kind of a declaration: the rooms that plan, render and write steps, and few others.

Elsewhere a declaration or plan answers itself: `runs`, `steps`, `parts`, `kind`, `RUNS`, `timed`, `HOLDS`, `step`, and
the table of `jobs/kinds.py`. A question of kinds that spreads is the second way of doing one thing.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, get_args

from amlstack.base.paths import PROJECT
from jobs.kinds import KINDS, Planned
from jobs.model.job import Component
from jobs.model.pipeline import AnyStep, ComponentNode, Node, PassthroughComponent
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = frozenset(
    each.__name__
    for each in (*KINDS, *get_args(Planned), *get_args(AnyStep), Component, PassthroughComponent, Node, ComponentNode)
)
ASK = ("isinstance", "issubclass")
MAY_ASK = re.compile(
    rf"(?:{'|'.join(ASK)}|\btype)\s*\([\s\S]{{0,200}}?\b(?:{'|'.join(NAMES)})\b|\bcase\b.*\b(?:{'|'.join(NAMES)})\b"
)
ROOMS = ("amlstack", "infra", "jobs", "policies")

# Module → how often it asks, at most. What a step means, and how it is sent and written, differs by kind.
MAY = {
    "jobs/planning/sweep_and_pipeline.py": 6,  # what of a plan goes to a step and what to its component; run identity
    "jobs/wire/pipeline.py": 2,  # command components and others have bodies of their own
    "jobs/azureml/read/component.py": 1,  # a pipeline component moves with its steps
    "jobs/kinds.py": 1,  # azure-ai-ml schedules pipelines alone
    "infra/runs/__init__.py": 6,  # an environment is of jobs and components, blocks of a fabric of steps
    "infra/judgement.py": 2,  # the remedy's words for a sweep; where a schedule's findings are
    "amlstack/cli/commands/rehearse.py": 1,  # when a schedule starts
    "amlstack/cli/rehearsal/inputs.py": 1,  # a pipeline has inputs beside those of its steps
}


def asked(text: str) -> Iterator[str]:
    """The kinds that a module asks for, once for each question."""
    if not MAY_ASK.search(text):  # most of the time goes into looking at every node
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ASK and len(node.args) == 2:
            named = node.args[1]
        elif isinstance(node, ast.MatchClass):
            named = node.cls
        elif isinstance(node, ast.Compare) and getattr(getattr(node.left, "func", None), "id", "") == "type":
            named = node.comparators[0]
        else:
            continue
        found = {getattr(each, "id", None) or getattr(each, "attr", "") for each in ast.walk(named)} & NAMES
        if found:
            yield " or ".join(sorted(found))


@for_each(
    "text, found",
    [
        ("isinstance(plan, jobs.SchedulePlan)", ["SchedulePlan"]),
        ("isinstance(step, Job | Step)", ["Job or Step"]),
        ("isinstance(step, (Job, str))", ["Job"]),
        ("match step:\n    case Sweep():\n        pass", ["Sweep"]),
        ("type(step) is Job", ["Job"]),
        ("issubclass(type(step), Job)", ["Job"]),
        ("isinstance(value, str)", []),
    ],
)
def test_a_question_of_kinds_is_seen_in_whatever_form(text: str, found: list[str]) -> None:
    assert list(asked(text)) == found


def test_no_other_module_asks_for_kinds_of_declarations_and_none_asks_more_often() -> None:
    counts = {
        path.relative_to(PROJECT).as_posix(): len(list(asked(path.read_text("utf-8"))))
        for room in ROOMS
        for path in (PROJECT / room).rglob("*.py")
    }
    assert {module: count for module, count in counts.items() if count > MAY.get(module, 0)} == {}
    assert {module: count for module, count in MAY.items() if counts.get(module, 0) < count} == {}, "lower the row"
