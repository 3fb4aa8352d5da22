"""``amlstack logs``: the lines of all ranks of a job, while it runs or after."""

from __future__ import annotations

from typing import Annotated

import typer

from amlstack.cli.console import say
from amlstack.cli.workspace import options

app = typer.Typer(add_completion=False)

Job = Annotated[str, typer.Argument(help="A run's name, or its job's; of a step PARENT/STEP.", show_default=False)]
Rank = Annotated[int | None, typer.Option("--rank", metavar="N", min=0, help="The lines of this rank alone.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")]


@app.command()
def logs(
    job: Job,
    stack: options.Stack = None,
    workspace: options.Workspace = None,
    group: options.Group = None,
    subscription: options.Subscription = None,
    *,
    sandbox: options.Sandbox = False,
    rank: Rank = None,
    follow: Follow = False,
) -> None:
    """Print the logs of a job: the lines of all ranks, each with the rank that wrote it, also while it runs.

    Of a sweep or a pipeline those of every trial and step. With --follow it goes on to the job's end: a connection that
    is lost is made again, and the lines go on where they stopped. Ctrl-C ends this command and not the job.

    Lines go to the standard output, states to the other. Which workspace: see `amlstack status --help`.

    Exit status: 0 printed, 1 the service refused or does not answer, 2 there is no such job or workspace, 130 Ctrl-C.

    Examples:
        amlstack logs ddp-torchrun --follow

        amlstack logs sweep/3 --rank 0 --stack prod
    """
    from amlstack.cli.logs.follower import follow as follow_job
    from amlstack.cli.workspace import job_search, refusals, workspace_place

    asked = options.AskedWorkspace(stack, workspace, group, subscription, sandbox)
    with refusals.answered() as reached:
        reached.place = where = workspace_place.find(asked, options.announce)
        say(where.line, err=True)
        found = job_search.find(where, job)
        if found.active:
            reached.interrupted = f"{found.name} goes on: `amlstack cancel {found.name}` ends it"
        status = follow_job(where.arm, found.arm_id, Plain(), rank, once=not follow)
        if not follow:
            say(f"{found.name} is {status}", err=True)


class Plain:
    """Lines to the standard output, news to the other."""

    def line(self, who: str, text: str) -> None:
        """One line of a rank."""
        say(f"[{who}] {text}")

    def news(self, text: str) -> None:
        """Another state."""
        say(text, err=True)
