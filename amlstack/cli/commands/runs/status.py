"""``amlstack status``: the jobs of a workspace, or one of them."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import typer

from amlstack.cli.console import say
from amlstack.cli.workspace import options

app = typer.Typer(add_completion=False)

Job = Annotated[
    str | None,
    typer.Argument(metavar="[JOB]", help="A run's name, or its job's; of a step PARENT/STEP.", show_default=False),
]
Most = Annotated[int, typer.Option("--most", "-n", min=1, help="How many jobs are shown, the newest first.")]


@app.command()
def status(
    job: Job = None,
    stack: options.Stack = None,
    workspace: options.Workspace = None,
    group: options.Group = None,
    subscription: options.Subscription = None,
    *,
    sandbox: options.Sandbox = False,
    most: Most = 20,
    as_json: options.Json = False,
) -> None:
    """Show the jobs of a workspace: type, status, compute, age, and why one waits; or all of one job.

    A job that waits is explained: its cluster's nodes and the jobs on them, errors of the cluster, or the quota, each
    with numbers. NODES and RANKS are what the job asks for; ranks are left out where its command leaves them open.

    Which workspace: a stack's (--stack), else --workspace with --resource-group and --subscription, else
    .azureml/config.json here or in a folder above, else the environment (AZUREML_ARM_WORKSPACE_NAME, …), else the
    sandbox. One line says which. docs/workspaces.md has it all.

    Exit status: 0 shown, 1 the service refused or does not answer, 2 there is no such job or workspace.

    Examples:
        amlstack status

        amlstack status --stack prod --most 50

        amlstack status ddp-torchrun --json
    """
    from amlstack.cli.console import print_json
    from amlstack.cli.workspace import job_search, refusals, workspace_place
    from amlstack.cli.workspace.status import Queue, details, lines, row, table

    asked = options.AskedWorkspace(stack, workspace, group, subscription, sandbox)
    with refusals.answered() as reached:
        reached.place = where = workspace_place.find(asked, options.announce)
        say(where.line, err=True)
        now = dt.datetime.now(dt.UTC)
        if job is not None:
            one = job_search.find(where, job)
            others = job_search.listed(where, most) if one.record.status in _waiting() else ()
            found = details(where, one, Queue(where.arm, others).why(one), now)
            if as_json:
                print_json(found)
            else:
                say("\n".join(lines(found)))
            return
        jobs = job_search.listed(where, most)
        queue = Queue(where.arm, jobs)
        rows = [row(each, queue.why(each), now) for each in jobs[:most]]
    if as_json:
        print_json(rows)
    elif rows:
        say("\n".join(table(rows)))
        if len(jobs) > most:
            say(f"and {len(jobs) - most} older (--most {len(jobs)} shows them)", err=True)
    else:
        say("no jobs", err=True)


def _waiting() -> frozenset[str]:
    from amlstack.cli.workspace.status import WAITING

    return WAITING
