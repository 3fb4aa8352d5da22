"""``amlstack submit``: a job file to a workspace, judged first, under the id that its stack gives it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amlstack.cli.console import say
from amlstack.cli.workspace import options

if TYPE_CHECKING:
    from amlstack.cli.console import Progress
    from amlstack.cli.workspace.refusals import Reached
    from amlstack.cli.workspace.submission import Submission
    from amlstack.cli.workspace.workspace_place import WorkspacePlace
    from infra.runs import Run

app = typer.Typer(add_completion=False)

File = Annotated[Path, typer.Argument(help="Job file: Python, or Azure ML CLI v2 YAML.", show_default=False)]
Only = Annotated[str | None, typer.Option("--job", help="Name of one job, when the file has several.")]
Name = Annotated[
    str | None,
    typer.Option("--name", help="Another name than the file's: its runs' ids begin with it.", show_default=False),
]
Rerun = Annotated[
    str | None, typer.Option("--rerun", metavar="WORD", help="Run once more what has run: another word, another run.")
]
Watch = Annotated[bool, typer.Option("--watch", help="Print the logs of all ranks until it ends, and exit like it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it is submitted and costs something.")]


@app.command()
def submit(
    file: File,
    stack: options.Stack = None,
    workspace: options.Workspace = None,
    group: options.Group = None,
    subscription: options.Subscription = None,
    *,
    sandbox: options.Sandbox = False,
    only: Only = None,
    name: Name = None,
    rerun: Rerun = None,
    watch: Watch = False,
    yes: Yes = False,
) -> None:
    """Submit a job file to a workspace.

    The file is judged as `pulumi up` judges it, before anything is sent; its cost is shown, and on a terminal it asks
    (without one it needs --yes; on the sandbox nothing costs anything). Code and data are uploaded once for each
    content.

    With --stack the run has the id that `amlstack up --stack NAME` would give it, and a later `up` of a stack that
    lists the file adopts it. What runs already, or has run, is not submitted again: --rerun WORD runs it once more.

    Which workspace: a stack's (--stack), else --workspace with --resource-group and --subscription, else
    .azureml/config.json, else the environment, else the sandbox (docs/workspaces.md). Schedules are made by `up`.

    Exit status: 0 submitted (with --watch: completed), 1 refused, failed or answered with no, 2 wrong use, 130 Ctrl-C.

    Examples:
        amlstack submit job.yml --stack prod

        amlstack submit job.yml --workspace aml-team -g rg-team --watch

        amlstack submit examples/ddp_torchrun/job.py --stack sandbox --watch
    """
    import threading

    from amlstack.base.findings import errors
    from amlstack.catalog import clock
    from amlstack.cli.console import Progress, print_findings
    from amlstack.cli.stack_files import NoStackError
    from amlstack.cli.workspace import refusals, workspace_place
    from amlstack.cli.workspace import submission as declaring
    from amlstack.cli.workspace.submission import Submission
    from amlstack.rpc import ProviderError

    progress = Progress()
    if not file.is_file():
        say(f"There is no file {file}.", err=True)
        raise typer.Exit(2)
    cancelled = threading.Event()
    with refusals.answered() as reached:
        asked = options.AskedWorkspace(stack, workspace, group, subscription, sandbox)
        reached.place = where = workspace_place.find(asked, options.announce)
        say(where.line, err=True)
        try:
            declared = (
                declaring.of_workspace(file, where, clock.today(), cancelled)
                if stack is None
                else declaring.of_stack(file, stack, clock.today())
            )
        except NoStackError as error:
            say(str(error), err=True)
            raise typer.Exit(2) from None
        print_findings(declared.findings)
        if wrong := errors(declared.findings):
            progress.fail(f"{len(wrong)} error{'' if len(wrong) == 1 else 's'}; nothing was sent")
            raise typer.Exit(1)
        runs = _chosen(declared.runs, only, name, rerun)
        reached.interrupted = (
            "interrupted; what was accepted runs: `amlstack status`. The same command goes on from here"
        )
        submission = Submission(where, declared, progress, cancelled)
        try:
            sent = [run_id for run in runs if (run_id := _one(submission, run, yes=yes)) is not None]
        except ProviderError as error:
            progress.fail(error.message.replace("the next `up`", "the same command"))
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            cancelled.set()
            raise
        if len(sent) < len(runs):
            raise typer.Exit(1)
        if watch:
            raise typer.Exit(max(_watched(reached, where, run_id, progress) for run_id in sent))


def _chosen(runs: tuple[Run, ...], only: str | None, name: str | None, rerun: str | None) -> list[Run]:
    """The runs that are meant, under the name and with the word that were asked for."""
    from dataclasses import replace

    from amlstack.base.text import did_you_mean

    found = [run for run in runs if only is None or run.name == only]
    if not found:
        near = did_you_mean(only or "", [run.name for run in runs])
        say(f"The file declares no job `{only}`. {near}" if only else "The file declares no job.", err=True)
        raise typer.Exit(2)
    if schedules := [run.name for run in found if run.is_schedule]:
        say(
            f"`{schedules[0]}` is a schedule, which converges instead of running once: list its file under "
            "amlstack:jobs of a stack, and `amlstack up` makes it.",
            err=True,
        )
        raise typer.Exit(2)
    if name is not None:
        if len(found) > 1:
            say(
                f"The file declares {len(found)} jobs: name one with --job, so that it can have another --name.",
                err=True,
            )
            raise typer.Exit(2)
        found = [replace(found[0], name=name)]
    if rerun is not None:
        found = [replace(run, plan=_again(run, rerun)) for run in found]
    return found


def _again(run: Run, rerun: str) -> Any:
    from dataclasses import replace

    plan: Any = run.plan
    return replace(plan, job=plan.job.model_copy(update={"rerun": rerun}))


def _one(submission: Submission, run: Run, *, yes: bool) -> str | None:
    """Submits a run; its name in the workspace, or None after a no."""
    from amlstack.cli import console

    progress, place = submission.progress, submission.place
    run_id, record = submission.foreseen(run)
    if record is not None:
        progress.done(f"{run_id} is there already: {record.status}")
        return run_id
    for line in _plan(run):
        progress.note(line)
    if not yes and not place.is_local:
        if not console.on_a_terminal():
            progress.fail("nothing was sent: there is no terminal to ask on. `--yes` submits without a question")
            raise typer.Exit(2)
        if not console.confirmed(f"Submit `{run.name}` to the workspace {place.workspace.rpartition('/')[2]}?"):
            progress.note("nothing was sent")
            return None
    progress.step(f"submitting {run_id}")
    run_id = submission.send(run)
    progress.done(f"submitted {run_id}")
    _links(place, run_id, progress)
    return run_id


def _plan(run: Run) -> list[str]:
    from jobs.planning.plans import costs

    prices, found = costs(run.plan), []
    for step, part in run.plan.parts.items():
        where = part.target.cluster or "serverless compute"
        size = f" ({part.target.size})" if part.target.size else ""
        price = prices.get(step)
        cost = (
            str(price) if price else "cost unknown: no price in the catalogue (`amlstack sizes --refresh` asks Azure)"
        )
        nodes = f"{part.nodes} node{'' if part.nodes == 1 else 's'}"
        found.append(f"{f'{step}: ' if step else ''}{part.world_size} ranks on {nodes} of {where}{size}; {cost}")
    return found


def _links(place: WorkspacePlace, run_id: str, progress: Progress) -> None:
    from amlstack.cli.workspace import job_search

    progress.note(f"studio: {job_search.studio_of_job(place.arm, job_search.find(place, run_id))}")
    again = f" --stack {place.stack}" if place.stack else ""
    progress.note(f"`amlstack logs {run_id}{again}` follows it, `amlstack cancel {run_id}{again}` ends it")


def _watched(reached: Reached, place: WorkspacePlace, run_id: str, progress: Progress) -> int:
    from amlstack.cli.logs.follower import InProgress, follow
    from amlstack.provider.runs import COMPLETED

    reached.interrupted = (
        f"{run_id} goes on: `amlstack cancel {run_id}` ends it, `amlstack logs {run_id} --follow` follows it"
    )
    job_id = f"{place.workspace}/jobs/{run_id}"
    return 0 if follow(place.arm, job_id, InProgress(progress)) == COMPLETED else 1
