"""``amlstack open``: where the studio shows a job or the workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from amlstack.cli.console import say
from amlstack.cli.workspace import options

app = typer.Typer(add_completion=False)

Subject = Annotated[
    str, typer.Argument(metavar="[JOB|workspace]", help="A run's name, or its job's, or the workspace itself.")
]
Browser = Annotated[
    bool | None,
    typer.Option("--browser/--no-browser", help="Open it in a browser; unset: on a terminal, and not for the sandbox."),
]


@app.command()
def open(  # noqa: A001 - the verb
    subject: Subject = "workspace",
    stack: options.Stack = None,
    workspace: options.Workspace = None,
    group: options.Group = None,
    subscription: options.Subscription = None,
    *,
    sandbox: options.Sandbox = False,
    browser: Browser = None,
) -> None:
    """Print the studio's address of a job or of the workspace, and open it.

    The address alone goes to the standard output. Jobs of the sandbox have an address too, at which the studio shows
    nothing: it is printed as Azure would give it. Which workspace: see `amlstack status --help`.

    Exit status: 0 printed, 1 the service refused or does not answer, 2 there is no such job or workspace.

    Examples:
        amlstack open

        amlstack open ddp-torchrun --stack prod --no-browser
    """
    from amlstack.cli import console
    from amlstack.cli.workspace import job_search, refusals, workspace_place

    asked = options.AskedWorkspace(stack, workspace, group, subscription, sandbox)
    with refusals.answered() as reached:
        reached.place = where = workspace_place.find(asked, options.announce)
        say(where.line, err=True)
        if subject == "workspace":
            url = job_search.studio_of_workspace(where.arm, where.workspace)
        else:
            url = job_search.studio_of_job(where.arm, job_search.find(where, subject))
    say(url)
    if browser or (browser is None and console.on_a_terminal() and not where.is_local):
        import webbrowser

        if not webbrowser.open(url):
            say("no browser was found", err=True)
            raise typer.Exit(1)
