"""What `amlstack rehearse` does about data before anything starts: inputs found, earlier outputs set aside."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from amlstack.base import paths
from amlstack.cli import consent
from amlstack.cli.rehearsal import inputs, mapping_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import jobs
    from amlstack.base.findings import Finding
    from amlstack.cli.progress import Progress
    from amlstack.cli.rehearsal.inputs import Data
    from amlstack.cli.rehearsal.mapping_file import MappingFile
    from amlstack.cli.targets import Targets
    from amlstack.sandbox.images import OwnStandIn
    from jobs.model.location import Source


def without_substituted(
    findings: Sequence[Finding], plans: Sequence[jobs.Planned], options: Sequence[str]
) -> tuple[Finding, ...]:
    """Findings but those on missing local data that ``--input`` gives."""
    return inputs.without_substituted(findings, plans, {text.partition("=")[0] for text in options})


def found_here(
    file: Path,
    plans: Sequence[jobs.Planned],
    source: Source,
    options: Sequence[str],
    *,
    alone: bool = False,
    where: Targets | None = None,
) -> tuple[tuple[Data, ...], tuple[Finding, ...]]:
    """The data of each plan, its findings at their lines, and all findings, on options and mapping files too.

    Args:
        file: The job file.
        plans: What it declares.
        source: Its places.
        options: ``--input``, as given.
        alone: It is a component, whose inputs a pipeline would give.
        where: The stack whose data the jobs name; None for none.
    """
    files = mapping_file.read_all(file)
    chosen, wrong = inputs.options(options, plans)
    stored = inputs.in_storage(paths.home())
    named = inputs.NamedData.of(where.of_file(file)) if where is not None else inputs.NamedData()
    resolved = (inputs.resolve(plan, chosen, files, file, stored, alone=alone, named=named) for plan in plans)
    found = tuple(
        replace(
            one, findings=tuple((each if each.file else source.locate(each)).at(str(file)) for each in one.findings)
        )
        for one in resolved
    )
    from amlstack.cli.rehearsal import environments

    found = tuple(
        replace(one, stand_ins=here.by_step, environments=here.lines)
        for one, plan in zip(found, plans, strict=True)
        for here in [environments.resolve(plan, own_stand_ins(files), one.given)]
    )
    of_files = (each for one in files for each in one.findings)
    return found, (*wrong, *of_files, *(each for one in found for each in one.findings))


def own_stand_ins(files: Sequence[MappingFile]) -> dict[str, OwnStandIn]:
    """What the user says of environments; the first file that names one counts."""
    return {key: each for file in reversed(files) for key, each in file.stand_ins.items()}


def start_afresh(progress: Progress, plans: Sequence[jobs.Planned], *, yes: bool) -> None:
    """Sets aside what earlier rehearsals left in the named outputs; on a terminal after a question.

    Raises:
        typer.Exit: With 1: a job that has not ended writes there, or the answer was no.
    """
    from amlstack.cli.rehearsal import outputs
    from amlstack.cli.rehearsal.workspace import rehearsal_workspace

    home, workspace = paths.home(), rehearsal_workspace()
    earlier = outputs.earlier(home, workspace, plans)
    if not earlier:
        progress.step("no earlier outputs: nothing to set aside")
        return
    if users := sorted({name for each in earlier for name in each.users}):
        progress.fail(f"{', '.join(users)} still writes to these outputs: wait for its end, or `amlstack cancel` it")
        raise typer.Exit(1)
    progress.step("set aside, so that the rehearsal starts without them:")
    for each in earlier:
        progress.note(f"output {each.label}: {each.files} file{'' if each.files == 1 else 's'} of earlier rehearsals")
    if not yes and consent.on_a_terminal() and not consent.given("Set these aside?"):
        progress.note("nothing was set aside, nothing was submitted")
        raise typer.Exit(1)
    progress.note(f"they are kept in {outputs.set_aside(home, workspace, earlier)}")
