"""``amlstack rehearse``: run a job file on the sandbox, stream its rank logs, exit like the job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.base.findings import Finding, errors
from amlstack.cli.commands.check import Size, Stack, check_file, plan_gate
from amlstack.cli.console import print_findings

if TYPE_CHECKING:
    import jobs
    from amlstack.cli.progress import Progress
    from amlstack.cli.rehearsal.submit import Rehearsal
    from amlstack.cli.targets import Targets
    from amlstack.sandbox.server.daemon import Endpoint

app = typer.Typer(add_completion=False)

DEFAULT_SIZE = "Standard_ND96asr_v4"
"""What a cluster of unknown size is taken for: a job must run somewhere, and here every size has the same two hands."""

File = Annotated[Path, typer.Argument(help="Job file: Python, or Azure ML CLI v2 YAML.", show_default=False)]
Only = Annotated[str | None, typer.Option("--job", help="Name of one job, when the file has several.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Stream the first rank's log alone.")]


@app.command()
def rehearse(file: File, size: Size = None, stack: Stack = None, only: Only = None, *, quiet: Quiet = False) -> None:
    """Run a job file on the sandbox, stream its rank logs, exit like the job.

    The file is checked first; then the same body that Azure would get goes to the sandbox, which starts every rank of
    every node as a real process on this machine. Of a sweep every trial runs, of a pipeline every step. Ctrl-C cancels
    the job.

    Examples:
        amlstack rehearse examples/ddp_torchrun/job.py

        amlstack rehearse job.yml --size Standard_ND96isr_H100_v5
    """
    from amlstack.catalog import clock
    from amlstack.cli import targets
    from amlstack.cli.progress import Progress
    from amlstack.provider.arm import ArmError
    from amlstack.rpc import ProviderError
    from amlstack.sandbox.server import daemon

    where = targets.find(size, stack)
    day = clock.today()
    checked = check_file(file, where, day, gate=plan_gate(where, day))
    import jobs

    plans = [plan for plan in checked.plans if only in (None, _name(plan, file))]
    # What is no single job is looked at by its class: to name a schedule's loads the models of schedules.
    whole = [plan for plan in plans if not isinstance(plan, jobs.Plan)]
    others = [_no_job(plan, file) for plan in whole if isinstance(plan, jobs.SchedulePlan)]
    found = (*where.findings, *checked.findings, *others)
    print_findings(found)
    if errors(found):
        raise typer.Exit(1)
    if not plans:
        names = ", ".join(_name(plan, file) for plan in checked.plans) or "none"
        typer.echo(f"{file} has no job `{only}`; it has: {names}", err=True)
        raise typer.Exit(2)
    progress = Progress()
    try:
        progress.step("sandbox: Azure on this machine")
        endpoint = daemon.up()
        # This process becomes a client of the sandbox; everything of the user's own cloud is out of its sight.
        os.environ.update(endpoint.environ())
        good = [_rehearse(progress, endpoint, _name(plan, file), plan, where, quiet=quiet) for plan in plans]
    except (daemon.SandboxError, ArmError, ProviderError) as error:
        progress.fail(str(error))
        if isinstance(error, ArmError):
            from amlstack.cli.rehearsal import unregistered

            told = [unregistered.findings(plan, where, file, str(error)) for plan in plans]
            print_findings(tuple(finding for each in told for finding in each))
        raise typer.Exit(1) from None
    raise typer.Exit(0 if all(good) else 1)


def _no_job(plan: jobs.Planned, file: Path) -> Finding:
    return Finding(
        "rehearsal-kind",
        "",
        f"`{_name(plan, file)}` is a {type(plan.job).__name__.lower()}",
        "A rehearsal runs jobs, sweeps and pipelines",
        "Rehearse what it starts.",
        file=str(file),
    )


def _name(plan: jobs.Planned, file: Path) -> str:
    return plan.job.name or file.stem


def _in_stack(plan: jobs.Plan, where: Targets) -> jobs.Plan:
    """The plan with the environment that its job's stack means: a rehearsal registers it as the stack would."""
    from dataclasses import replace

    return replace(plan, enriched=plan.enriched.model_copy(update=where.environment_of(plan.job)))


def _rehearse(
    progress: Progress, endpoint: Endpoint, name: str, plan: jobs.Planned, where: Targets, *, quiet: bool
) -> bool:
    import jobs

    if isinstance(plan, jobs.Plan):
        return _run(progress, endpoint, name, _in_stack(plan, where), quiet=quiet)
    if isinstance(plan, jobs.SchedulePlan):  # pragma: no cover - it has a finding
        return False
    return _run_parts(progress, endpoint, name, plan, where, quiet=quiet)


def _run_parts(
    progress: Progress,
    endpoint: Endpoint,
    name: str,
    plan: jobs.SweepPlan | jobs.PipelinePlan,
    where: Targets,
    *,
    quiet: bool,
) -> bool:
    """One sweep or pipeline from upload to end; whether it completed."""
    from amlstack.cli.loopback import LoopbackArm
    from amlstack.cli.rehearsal.follow_children import Family
    from amlstack.cli.rehearsal.parts import Composite
    from amlstack.cli.rehearsal.submit import Rehearsal
    from amlstack.sandbox.store.places import job_folder

    composite = Composite.of(plan, where, DEFAULT_SIZE)
    print_findings(composite.findings)
    if errors(composite.findings):
        return False
    arm = LoopbackArm(endpoint)
    rehearsal = Rehearsal.on(endpoint, arm)
    family = Family(arm, composite.submit(rehearsal, name), endpoint.home, progress, quiet=quiet)
    progress.step(f"job {family.name}: a {type(plan.job).__name__.lower()}")
    try:
        record = family.follow()
    except KeyboardInterrupt:
        _cancel(progress, rehearsal, family.job_id, family.folder)
        raise
    for line in family.summary(record):
        progress.note(line)
    if record["status"] == "Completed":
        progress.done(f"job {family.name} completed; what was decided and collected is in {family.folder}")
        return True
    progress.fail(f"job {family.name} {record['status'].lower()}: {record['error'] or 'no reason was recorded'}")
    if (culprit := family.failed()) is not None:
        _diagnose(progress, job_folder(endpoint.home, str(culprit.run["runId"])))
    return False


def _run(progress: Progress, endpoint: Endpoint, name: str, plan: jobs.Plan, *, quiet: bool) -> bool:
    """One job from upload to end; whether it completed."""
    from dataclasses import replace

    from amlstack.cli.loopback import LoopbackArm
    from amlstack.cli.rehearsal.submit import Rehearsal, scanned
    from amlstack.sandbox.store.places import job_folder

    if plan.target.cluster and plan.target.facts is None:
        plan = replace(plan, target=replace(plan.target, size=DEFAULT_SIZE))
    code, found = scanned(plan)
    print_findings(found)
    if errors(found):
        return False
    arm = LoopbackArm(endpoint)
    rehearsal = Rehearsal.on(endpoint, arm)
    rehearsal.prepare(plan)
    job_id = rehearsal.submit(name, plan, code)
    from amlstack.cli.rehearsal.follow import follow

    short = job_id.rsplit("/", 1)[-1]
    folder = job_folder(endpoint.home, short)
    ranks = f"{plan.world_size} ranks" if plan.world_size else "ranks counted by the job itself"
    progress.step(f"job {short}: {ranks} on {plan.nodes} node{'' if plan.nodes == 1 else 's'}")
    try:
        record = follow(
            arm,
            job_id,
            folder,
            status=lambda status: progress.step(f"job is {status}"),
            line=lambda log, text: progress.note(f"[{log}] {text}"),
            only_first=quiet,
        )
    except KeyboardInterrupt:
        _cancel(progress, rehearsal, job_id, folder)
        raise
    if record["status"] == "Completed":
        progress.done(f"job {short} completed; its logs and outputs are in {folder}")
        return True
    progress.fail(f"job {short} {record['status'].lower()}: {record['error'] or 'no reason was recorded'}")
    progress.note(f"logs and outputs are in {folder}")
    _diagnose(progress, folder)
    return False


def _diagnose(progress: Progress, folder: Path) -> None:
    """What the ranks' logs say about the end, in one line, and how to hear more."""
    from amlstack.diagnose import diagnose
    from amlstack.diagnose.render import headline

    verdict = diagnose([folder])
    progress.note(f"diagnosis ({verdict.confidence} confidence): {headline(verdict)}")
    if verdict.file is not None:
        progress.note(f"  {verdict.file}:{verdict.line}: {verdict.text}")
    progress.note(f"evidence, victims and what to do: amlstack diagnose {folder}")


def _cancel(progress: Progress, rehearsal: Rehearsal, job_id: str, folder: Path) -> None:
    from amlstack.cli.rehearsal.follow import follow

    progress.step("interrupted: cancelling the job")
    rehearsal.arm.post(f"{job_id}/cancel")
    follow(rehearsal.arm, job_id, folder, status=lambda status: progress.step(f"job is {status}"), line=lambda *_: None)
