"""``amlstack cancel``: asks for the end of a job, and waits for it."""

from __future__ import annotations

from typing import Annotated

import typer

from amlstack.cli.console import say
from amlstack.cli.workspace import options

CANCELED = "Canceled"

app = typer.Typer(add_completion=False)

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
    from amlstack.cli.console import Progress
    from amlstack.cli.logs.follower import InProgress, follow
    from amlstack.cli.workspace import job_search, refusals, workspace_place
    from amlstack.provider.runs import Runs

    progress = Progress()
    asked = options.AskedWorkspace(stack, workspace, group, subscription, sandbox)
    with refusals.answered() as reached:
        reached.place = where = workspace_place.find(asked, options.announce)
        say(where.line, err=True)
        found = job_search.find(where, job, running=True)
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
        status = follow(where.arm, found.arm_id, InProgress(progress), lines=False)
    if status == CANCELED:
        progress.done(f"job {found.name} is canceled; its logs stay")
        return
    progress.fail(f"job {found.name} ended before it could be canceled: {status}")
    raise typer.Exit(1)
