"""``amlstack cancel``: asks for the end of a job, and waits for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.cli.console import say
from amlstack.cli.workspace import options

if TYPE_CHECKING:
    from amlstack.cli.progress import Progress
    from amlstack.cli.workspace.found_jobs import WorkspaceJob
    from amlstack.cli.workspace.place import WorkspacePlace

app = typer.Typer(add_completion=False)

FIRST_PAUSE, LONGEST_PAUSE, LOCAL_PAUSE = 0.05, 5.0, 2.0
"""Seconds between two looks at a job that is to end; each pause is half as long again as the one before."""

Job = Annotated[str, typer.Argument(help="A run's name, or its job's as in the job's file; of a step PARENT/STEP.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Ask for the end and do not wait for it.")]


@app.command()
def cancel(
    job: Job,
    stack: options.Stack = None,
    workspace: options.Workspace = None,
    group: options.Group = None,
    subscription: options.Subscription = None,
    *,
    sandbox: options.Sandbox = False,
    no_wait: NoWait = False,
) -> None:
    """Cancel a job and wait for its end.

    A job's name means its active run; where several are active the verb lists them and ends none. The beginning of a
    name is never enough. Which workspace: see `amlstack status --help`.

    Exit status: 0 when the job is canceled (with --no-wait: asked to end), 1 when it ended in another way or the
    service refused, 2 when there is no such job or workspace, 130 Ctrl-C, after which the job ends all the same.

    Examples:
        amlstack cancel train

        amlstack cancel ddp-torchrun-3f97dd4a3c --stack prod --no-wait
    """
    from amlstack.cli.progress import Progress
    from amlstack.cli.workspace import found_jobs, place, refusals
    from amlstack.provider.runs import Runs

    progress = Progress()
    asked = options.AskedWorkspace(stack, workspace, group, subscription, sandbox)
    with refusals.answered() as reached:
        reached.place = where = place.find(asked, options.announce)
        say(where.line, err=True)
        found = found_jobs.find(where, job, running=True)
        if not found.active:
            status = found.record.status
            canceled = status == CANCELED
            (progress.done if canceled else progress.fail)(f"job {found.name} has ended before: {status}")
            raise typer.Exit(0 if canceled else 1)
        progress.step(f"cancelling job {found.name}")
        reached.interrupted = (
            f"interrupted; whether job {found.name} was asked to end is not known: the same command asks again"
        )
        Runs(where.arm).cancel(found.workspace, found.name)
        reached.interrupted = f"job {found.name} was asked to end and will; this command does not wait for it any more"
        if no_wait:
            progress.done(f"job {found.name} was asked to end")
            return
        status = _ended(where, found, progress)
    if status == CANCELED:
        progress.done(f"job {found.name} is canceled; its logs stay")
        return
    progress.fail(f"job {found.name} ended before it could be canceled: {status}")
    raise typer.Exit(1)


CANCELED = "Canceled"


def _ended(place: WorkspacePlace, job: WorkspaceJob, progress: Progress) -> str:
    """The job's last status, once it has ended; ``gone`` when its record vanished meanwhile.

    Raises:
        ArmError: The service refused, or has not answered for a long time.
    """
    from amlstack.cli.workspace.followed import ENDED, GONE, SilentService
    from amlstack.provider.arm import ArmError
    from amlstack.provider.runs import Runs

    runs, seen, pause = Runs(place.arm), "", FIRST_PAUSE
    patience = SilentService(place, progress.note)
    while True:
        try:
            record = runs.get(job.workspace, job.name)
        except ArmError as error:
            patience.lost(error)
        else:
            patience.answered()
            status = GONE if record is None else record.status
            if status in ENDED:
                return status
            if status != seen:
                seen = status
                progress.step(f"job is {status}")
        time.sleep(pause)
        pause = min(1.5 * pause, LOCAL_PAUSE if place.is_local else LONGEST_PAUSE)
