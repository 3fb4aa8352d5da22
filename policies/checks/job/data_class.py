"""A job names a class of data that the team has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Collection

RULE = Rule(
    code="data-class",
    title="A job's class of data is one that the team has.",
    what="Flags a job whose `data_class` is none of the configured ones; silent until they are configured.",
    why="Who reads the records of runs by class misses what was filed under a word that nobody else uses.",
    example=job(dataClass="secret"),
    instead=job(dataClass="internal"),
    level="advisory",
    settings=(Setting("classes", "array", "The classes of data that the team has.", []),),
    sample={"classes": ["public", "internal"]},
    not_exported=NO_JOB,
)


def check(data_class: str, *, classes: Collection[str], where: str = "data_class") -> Finding | None:
    """Judge the class of a job's data.

    Args:
        data_class: The class that the job names.
        classes: Those that the team has.
        where: Path of the class in the declaration.
    """
    if data_class in classes:
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"The class of the job's data is `{data_class}`",
        rule=f"The team's classes of data are {', '.join(classes)}",
        remedy="Write one of them",
    )
