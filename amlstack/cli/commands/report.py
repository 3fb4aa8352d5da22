"""``amlstack report``: one run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from amlstack.cli.console import say
from amlstack.cli.workspace import options

if TYPE_CHECKING:
    from amlstack.report import Report

app = typer.Typer(add_completion=False)

Subject = Annotated[str, typer.Argument(metavar="JOB|FOLDER", help="A job, or a folder of logs.", show_default=False)]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The file; otherwise .amlstack/reports/JOB.html.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is no report.")]


@app.command()
def report(
    subject: Subject,
    stack: options.Stack = None,
    workspace: options.Workspace = None,
    group: options.Group = None,
    subscription: options.Subscription = None,
    *,
    output: Output = None,
    sandbox: options.Sandbox = False,
    force: Force = False,
) -> None:
    """Write one run as one HTML file: verdict, ranks over time, loss, logs.

    The file needs no network and holds no script: mail it, or keep it beside the checkpoints. Without --output it lies
    in `reports/` of the sandbox's folder, which git ignores; its path is printed. JOB is the name of a run or
    of its job, ended or running, of this clone's sandbox, else of the workspace that options, .azureml/config.json
    or the environment name (`amlstack status --help`); of a sweep or pipeline of such a workspace the first trial or
    step that failed. FOLDER holds logs as `amlstack diagnose` reads them. Where there is no sandbox the file lies here.

    Exit status: 0 written, 1 the service refused or does not answer, 2 wrong use.

    Examples:
        amlstack report ddp-torchrun

        amlstack report ddp-torchrun --stack prod --output run.html

        amlstack report user_logs/ --output run.html
    """
    from amlstack.diagnose.diagnosis import headline
    from amlstack.report import render
    from amlstack.report.page import NotOursError, write

    made = _gathered(subject, options.AskedWorkspace(stack, workspace, group, subscription, sandbox))
    path = output or _reports() / f"{_file_name(made.title)}.html"
    try:
        write(path, render(made), force=force)
    except NotOursError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{path} cannot be written: {error.strerror}")
    say(f"{path}: {made.title}, {made.status or 'a folder of logs'}" + (", so far" if made.active else ""))
    if made.verdict is not None:
        say(headline(made.verdict))


def _gathered(subject: str, asked: options.AskedWorkspace) -> Report:
    """A job of this name on the sandbox, else a folder, else a job of a workspace, ended or running."""
    import time
    from dataclasses import replace

    from amlstack.cli.workspace.job_folder import find_subject
    from amlstack.report.jobs import NoLogsError, folder_report, job_report
    from amlstack.sandbox.store.database import StateError
    from amlstack.sandbox.store.inventory import UnknownJobError

    try:
        with find_subject(subject, asked) as found:
            if found.record is not None:
                return job_report(*found.record, time.time())
            if not found.folder.is_dir():
                _fail(
                    f"There is no folder {subject!r}, and no sandbox here whose job it could be (amlstack sandbox up)."
                )
            try:
                made = folder_report(found.folder, time.time())
            except NoLogsError as error:
                job = found.job
                _fail(f"The job {job.name} is {job.record.status} and has written no log." if job else str(error))
            return replace(made, active=found.job is not None and found.job.active)
    except (UnknownJobError, StateError) as error:
        _fail(str(error))


def _reports() -> Path:
    """The folder of reports, made where it is missing; this folder where there is no sandbox yet."""
    from amlstack.base import home as homes
    from amlstack.base import paths

    try:
        if not homes.is_used(paths.home()):
            return Path()
        homes.claim(paths.home())
    except homes.ForeignHomeError as error:
        _fail(str(error))
    folder = paths.home() / "reports"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _file_name(title: str) -> str:
    return "".join(each if each.isalnum() or each in "-_." else "-" for each in title).strip(".") or "report"


def _fail(message: str) -> NoReturn:
    say(message, err=True)
    raise typer.Exit(2)
