"""``amlstack rehearse``: run a job file on the sandbox, stream its rank logs, exit like the job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.base.findings import errors
from amlstack.cli.commands.check import Size, Stack  # noqa: TC001 - typer reads the annotations
from amlstack.cli.console import print_findings, say
from amlstack.cli.jobfiles.checking import check_file, plan_gate
from amlstack.cli.rehearsal import scale as scales

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import jobs
    from amlstack.cli.progress import Progress
    from amlstack.cli.rehearsal.inputs import Data
    from amlstack.cli.rehearsal.outcome import JobOutcome, Outcomes
    from amlstack.sandbox.scale import RehearsalScale
    from amlstack.sandbox.server.endpoint import Endpoint

app = typer.Typer(add_completion=False)

File = Annotated[Path, typer.Argument(help="Job file: Python, or Azure ML CLI v2 YAML.", show_default=False)]
Only = Annotated[str | None, typer.Option("--job", help="Name of one job, when the file has several.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the lines of rank 0 alone, and what failed.")]
OnlyRank = Annotated[
    int | None,
    typer.Option("--only-rank", metavar="N", min=0, help="Run all ranks and print the lines of this one alone."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to the standard output, all else to the other.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=PATH",
        help="Read an input from a file or folder of this machine; of a pipeline's step STEP.NAME=PATH. A step whose "
        "output is given the same way is not run. Repeatable.",
        show_default=False,
    ),
]
Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME=env:VARIABLE",
        help="Take a secret that the job names from a variable of this shell; unset: from the variable that the job "
        "sets. Repeatable.",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say whether it can be rehearsed here, and start nothing: exit status 0, or 2."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Start it although its code has lines that cannot run on this machine.")
]
NoShim = Annotated[
    bool, typer.Option("--no-shim", help="Leave GPU calls as they are on a machine without a GPU; they fail.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Set aside what earlier rehearsals wrote to named outputs.")]


@app.command()
def rehearse(
    file: File,
    size: Size = None,
    stack: Stack = None,
    only: Only = None,
    inputs: Inputs = None,
    *,
    secrets: Secrets = None,
    nodes: scales.Nodes = None,
    ranks: scales.Ranks = None,
    both: scales.Both = None,
    fresh: Fresh = False,
    no_shim: NoShim = False,
    yes: scales.Yes = False,
    quiet: Quiet = False,
    only_rank: OnlyRank = None,
    as_json: Json = False,
    dry_run: DryRun = False,
    force: Force = False,
) -> None:
    """Run a job file on the sandbox, stream its rank logs, exit like the job.

    The file is checked first; then the same body that Azure would get goes to the sandbox, which starts every rank of
    every node as a real process on this machine. Of a sweep every trial runs, of a pipeline every step. Ctrl-C cancels
    the job. With `-j 2x2` no more than two nodes with two ranks each are started, whatever the file declares.

    Examples:
        amlstack rehearse examples/ddp_torchrun/job.py

        amlstack rehearse job.yml -j 2x2

        amlstack rehearse job.yml --size Standard_ND96isr_H100_v5

        amlstack rehearse job.yml --input cifar=./data

        amlstack rehearse job.yml --only-rank 3

        amlstack rehearse job.yml -j 2x2 --dry-run
    """
    scale = scales.chosen(nodes, ranks, both)
    if dry_run:
        from amlstack.cli.rehearsal.feasibility import dry

        raise typer.Exit(
            dry.run(
                *(file, size, stack, only, inputs or ()),
                secrets=secrets or (),
                scale=scale,
                yes=yes,
                force=force,
                shim=not no_shim,
                as_json=as_json,
            )
        )
    from amlstack.cli.rehearsal import outcome

    if quiet and only_rank is not None:
        message = "Give `--quiet`, which is `--only-rank 0`, or `--only-rank`."
        raise typer.BadParameter(message)
    shown = 0 if quiet else only_rank
    with outcome.printed(as_json=as_json) as outcomes:
        _run(
            file,
            size,
            stack,
            only,
            inputs,
            secrets=secrets or (),
            scale=scale,
            fresh=fresh,
            no_shim=no_shim,
            yes=yes,
            force=force,
            shown=shown,
            outcomes=outcomes,
        )


def _run(
    file: Path,
    size: str | None,
    stack: str | None,
    only: str | None,
    inputs: list[str] | None,
    *,
    secrets: Sequence[str],
    scale: RehearsalScale | None,
    fresh: bool,
    no_shim: bool,
    yes: bool,
    force: bool,
    shown: int | None,
    outcomes: Outcomes,
) -> None:
    """The verb, with the one rank whose lines are printed (None for all); each job's outcome is added to `outcomes`.

    Raises:
        typer.Exit: Always.
    """
    from dataclasses import replace
    from functools import partial

    from amlstack.catalog import clock
    from amlstack.cli import targets
    from amlstack.cli.progress import Progress
    from amlstack.cli.rehearsal import data, feasibility
    from amlstack.cli.rehearsal.feasibility.choice import chosen, is_alone, name_of
    from amlstack.cli.rehearsal.feasibility.view import line_of
    from amlstack.cli.rehearsal.mapping import mapping_file, secret_values
    from amlstack.cli.stack import run_orders
    from amlstack.provider.arm import ArmError
    from amlstack.rpc import ProviderError
    from amlstack.sandbox.server import daemon

    where = targets.find(size, stack)
    checked = check_file(file, where, gate=plan_gate(where, clock.today()), environment=where.environment_of)

    checked = replace(checked, findings=(*checked.findings, *run_orders.within(checked)))
    plans, found = chosen(file, where, checked, only, inputs or ())
    print_findings(found)
    if errors(found):
        raise typer.Exit(1)
    if not plans:
        names = ", ".join(name_of(plan, file) for plan in checked.plans) or "none"
        say(f"{file} has no job `{only}`; it has: {names}", err=True)
        raise typer.Exit(2)
    most = max(
        nodes * ranks for plan in plans for part in scales.extents(plan, scale) for nodes, ranks in [part.started]
    )
    if shown is not None and shown >= most:
        say(f"--only-rank {shown}: there are ranks 0 to {most - 1}", err=True)
        raise typer.Exit(2)
    progress = Progress()
    sources = data.read(file, plans, checked.source, inputs or (), alone=is_alone(checked), where=where)
    tables = mapping_file.read_all(file)
    sources = secret_values.read(plans, checked.source, secrets, tables, sources)
    if not all(scales.agreed(progress, file, plan, scale, yes=yes) for plan in plans):
        raise typer.Exit(2)
    own = data.own_stand_ins(tables)
    asked = feasibility.Asked(where, scale, yes=True, force=force, shim=not no_shim, own=own)
    answers = [
        feasibility.judge(name_of(plan, file), plan, source, asked) for plan, source in zip(plans, sources, strict=True)
    ]
    if in_the_way := [each for answer in answers for each in feasibility.obstacles(answer)]:
        progress.fail("it cannot be rehearsed here; nothing was started")
        for each in in_the_way:
            progress.note(f"{each.about}: {line_of(each).removeprefix('NO: ')}")
        outcomes.error = "; ".join(each.text for each in in_the_way)
        raise typer.Exit(2)
    if fresh:
        data.start_afresh(progress, plans, yes=yes)
    try:
        progress.step("sandbox: Azure on this machine")
        endpoint = daemon.up()
        known = {(each.code, each.seen) for each in found}
        each_one = partial(_rehearse, progress, endpoint, known=known, scale=scale, no_shim=no_shim, shown=shown)
        _in_order(file, plans, sources, outcomes, progress, scale=scale, each_one=each_one)
    except (daemon.SandboxError, ArmError, ProviderError) as error:
        progress.fail(str(error))
        outcomes.error = str(error)
        if isinstance(error, ArmError):
            from amlstack.cli.rehearsal import unregistered

            causes = [unregistered.findings(plan, where, file, str(error)) for plan in plans]
            print_findings(tuple(finding for each in causes for finding in each))
        raise typer.Exit(1) from None
    raise typer.Exit(0 if all(each.is_good for each in outcomes.jobs) else 1)


def _in_order(
    file: Path,
    plans: Sequence[jobs.Planned],
    sources: Sequence[Data],
    outcomes: Outcomes,
    progress: Progress,
    *,
    scale: RehearsalScale | None,
    each_one: Callable[[JobOutcome, jobs.Planned, Data], None],
) -> None:
    """The jobs of a file, each once those of them that it comes after have completed; else it is not started."""
    from amlstack.cli.rehearsal.feasibility.choice import name_of
    from amlstack.cli.rehearsal.outcome import JobOutcome
    from amlstack.cli.stack import run_orders

    for line in run_orders.elsewhere(plans, file):
        progress.note(line)
    for index, earlier in run_orders.in_order(plans, file):
        name = name_of(plans[index], file)
        outcomes.add(JobOutcome.of(name, plans[index], sources[index].by_step, scale))
        if (failed := outcomes.failed([name_of(plans[each], file) for each in earlier])) is None:
            each_one(outcomes.jobs[-1], plans[index], sources[index])
        else:
            outcomes.jobs[-1].error = f"it comes after `{failed}`, which has not completed, and was not started"
            progress.fail(f"job {name}: {outcomes.jobs[-1].error}")


def _rehearse(
    progress: Progress,
    endpoint: Endpoint,
    outcome: JobOutcome,
    plan: jobs.Planned,
    source: Data,
    *,
    known: Collection[tuple[str, str]],
    scale: RehearsalScale | None,
    no_shim: bool,
    shown: int | None,
) -> None:
    """One job, sweep or pipeline from upload to end, which its outcome holds afterwards.

    Findings on its code that are `known`, by their code and what was seen, were printed before.
    """
    from amlstack.cli.logs.follower import Follower, InProgress, SandboxLogs, with_reason
    from amlstack.cli.rehearsal import outputs
    from amlstack.cli.rehearsal.outcome import first_failed, show_diagnosis, summary
    from amlstack.cli.rehearsal.submit import Rehearsal
    from amlstack.cli.sandbox_arm import connect
    from amlstack.diagnose import diagnose
    from infra.runs import CodeFolders, in_folder

    codes = CodeFolders().scanned(plan)
    found = tuple(in_folder(code.root, each) for code in codes.values() for each in code.findings)
    print_findings(dict.fromkeys(each for each in found if (each.code, each.seen) not in known))
    if errors(found):
        outcome.error = "the code cannot be uploaded as it is"
        return
    arm = connect(endpoint)
    job_id = Rehearsal.on(endpoint, arm).submit(outcome.name, plan, codes, source, scale, no_shim=no_shim)
    outcome.job = job = Follower(arm, job_id, SandboxLogs(endpoint.home), InProgress(progress), shown)
    progress.step(f"job {job.name}: {_extent(plan, scale)}")
    for line in (*source.lines, *source.environments):
        progress.note(line)
    if shown is not None:
        progress.note(f"only lines of rank {shown} are printed; all logs are kept in {job.folder / 'user_logs'}")
    try:
        job.follow()
    except KeyboardInterrupt:
        progress.step("interrupted: cancelling the job")
        arm.post(f"{job.job_id}/cancel")
        job.lines = False
        job.follow()
        raise
    outcome.status, outcome.error = job.status, with_reason(arm, job_id, job.record)["error"]
    for line in (*summary(job), *outputs.lines(job)):
        progress.note(line)
    if outcome.is_good:
        progress.done(f"job {job.name} completed; its logs and outputs are in {job.folder}")
        return
    progress.fail(f"job {job.name} {outcome.status.lower()}: {outcome.error or 'no reason was recorded'}")
    progress.note(f"logs and outputs are in {job.folder}")
    if (culprit := first_failed(job)) is not None:
        outcome.diagnosis = show_diagnosis(progress, diagnose([culprit]), culprit, job.name, whole=shown is not None)


def _extent(plan: jobs.Planned, scale: RehearsalScale | None) -> str:
    """How many ranks a single job has; of anything else what it is."""
    single = plan.parts.get("")
    if single is None:
        return f"a {type(plan.job).__name__.lower()}"
    (extent,) = scales.extents(plan, scale)
    if scale is not None:
        return scales.shown(extent)
    nodes, each = extent.started
    ranks = f"{nodes * each} ranks" if single.world_size else "ranks counted by the job itself"
    return f"{ranks} on {nodes} node{'' if nodes == 1 else 's'}"
