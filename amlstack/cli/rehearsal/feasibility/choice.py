"""Which jobs of a file are rehearsed, and what was found wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.cli.rehearsal.feasibility.gates import left_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import jobs
    from amlstack.cli.jobfiles.checking import Checked
    from amlstack.cli.targets import Targets


def chosen(
    file: Path, where: Targets, checked: Checked, only: str | None, inputs: Sequence[str]
) -> tuple[list[jobs.Planned], tuple[Finding, ...]]:
    """The plans of the jobs that are meant, and all findings on them and their file.

    Args:
        file: The job file.
        where: The stack that was read, if any.
        checked: The file as it was checked.
        only: Name of one job; None for all.
        inputs: Inputs that are given by options.
    """
    from amlstack.cli.rehearsal import data

    plans = [plan for plan in checked.plans if only in (None, name_of(plan, file))]
    others = [_no_job(plan, file) for plan in plans if plan.timed]
    found = data.without_substituted(checked.findings, plans, inputs)
    return plans, (*where.findings, *found, *others, *left_out(plans, where, file))


def _no_job(plan: jobs.Planned, file: Path) -> Finding:
    return Finding(
        "rehearsal-kind",
        "",
        f"`{name_of(plan, file)}` is a {type(plan.job).__name__.lower()}",
        "A rehearsal runs jobs, sweeps and pipelines",
        "Rehearse what it starts.",
        file=str(file),
    )


def name_of(plan: jobs.Planned, file: Path) -> str:
    """The name of a job: its own, or its file's."""
    return plan.job.name or file.stem


def is_alone(checked: Checked) -> bool:
    """Whether the file is a component, whose inputs a pipeline would give."""
    return any(each.code == "component-alone" for each in checked.findings)
