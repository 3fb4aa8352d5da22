"""``amlstack rehearse --dry-run``: whether a job file can be rehearsed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import errors
from amlstack.cli.console import print_findings, say
from amlstack.cli.rehearsal.feasibility import view
from amlstack.cli.rehearsal.feasibility.choice import chosen, is_alone, name_of
from amlstack.cli.rehearsal.feasibility.judgement import Asked, judge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from amlstack.sandbox.scale import RehearsalScale


def run(
    file: Path,
    size: str | None,
    stack: str | None,
    only: str | None,
    inputs: Sequence[str],
    *,
    secrets: Sequence[str],
    scale: RehearsalScale | None,
    yes: bool,
    force: bool,
    shim: bool,
    as_json: bool,
) -> int:
    """Prints the answer; the exit status is 0 where every job can be rehearsed, else 2.

    Args:
        file: The job file.
        size: VM size of the cluster, or None.
        stack: Name of a stack, or None.
        only: Name of one job, or None.
        inputs: ``NAME=PATH`` each.
        secrets: ``NAME=env:VARIABLE`` each.
        scale: What is started at most.
        yes: Whether a job larger than this machine is agreed to.
        force: Whether code that cannot run here is started all the same.
        shim: Whether ordinary GPU calls are carried to the CPU.
        as_json: Whether JSON is printed.
    """
    from amlstack.catalog import clock
    from amlstack.cli import targets
    from amlstack.cli.jobfiles.checking import check_file, plan_gate
    from amlstack.cli.rehearsal import data
    from amlstack.cli.rehearsal.mapping import mapping_file, secret_values
    from infra.runs import CodeFolders

    where = targets.find(size, stack)
    folders = CodeFolders()
    checked = check_file(
        file, where, gate=plan_gate(where, clock.today()), environment=where.environment_of, folders=folders
    )
    plans, found = chosen(file, where, checked, only, inputs)
    if not plans and checked.plans:
        names = ", ".join(name_of(plan, file) for plan in checked.plans)
        say(f"{file} has no job `{only}`; it has: {names}", err=True)
        return 2
    plans = [plan for plan in plans if not plan.timed]
    sources, of_data = data.found_here(file, plans, checked.source, inputs, alone=is_alone(checked), where=where)
    in_answers = {each for source in sources for each in source.findings}
    found = (*found, *(each for each in of_data if each not in in_answers))
    tables = mapping_file.read_all(file)
    found = (*found, *secret_values.values(plans, checked.source, secrets, tables)[1])
    own = data.own_stand_ins(tables)
    asked = Asked(where, scale, yes=yes, force=force, shim=shim, own=own, folders=folders)
    answers = [judge(name_of(plan, file), plan, source, asked) for plan, source in zip(plans, sources, strict=True)]
    possible = bool(answers) and not errors(found) and all(answer.possible for answer in answers)
    if not as_json:
        print_findings(found)
    view.show(file, answers, found, possible=possible, as_json=as_json)
    return 0 if possible else 2
