"""``amlstack diagnose``: logs of ranks → the first true cause."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.cli.console import print_findings, print_json, say
from amlstack.cli.workspace import options

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

app = typer.Typer(add_completion=False)

Subjects = Annotated[
    list[str],
    typer.Argument(metavar="JOB|PATH...", help="Jobs, log files, or folders of them.", show_default=False),
]


@app.command()
def diagnose(
    subjects: Subjects,
    stack: options.Stack = None,
    workspace: options.Workspace = None,
    group: options.Group = None,
    subscription: options.Subscription = None,
    *,
    sandbox: options.Sandbox = False,
    as_json: options.Json = False,
) -> None:
    """Name the first true cause in the logs of a distributed run.

    Reads v2's user_logs (std_log_process_NN.txt), v1's azureml-logs (70_driver_log_N.txt), mpi_log.txt, torchrun's
    error files and tables, and captured output whose lines name their ranks. Says who is to blame and who is only a
    victim, what to do, and how sure it is; or that the cause is not in these logs, and where it is.

    JOB is the name of a run, or of its job; of a sweep or a pipeline the first trial or step that failed is read. It
    is looked for on this clone's sandbox first, else in the workspace that options, .azureml/config.json or the
    environment name (`amlstack status --help`): the logs of all its attempts are then read from there, and nothing of
    them stays on this machine.

    Exit status: 0 a cause was found, 1 it is not in these logs, 2 wrong use.

    Examples:
        amlstack diagnose train

        amlstack diagnose train --stack prod

        amlstack diagnose user_logs/ --json
    """
    import contextlib

    from amlstack.base.findings import errors
    from amlstack.cli.workspace.job_folder import with_authors_files
    from amlstack.diagnose import judge, read, with_stand_in
    from amlstack.diagnose.diagnosis import report

    asked = options.AskedWorkspace(stack, workspace, group, subscription, sandbox)
    with contextlib.ExitStack() as held:
        folders = [each for subject in subjects for each in _culprits(_path(subject, asked, held))]
        found = read(folders)
        print_findings(found.findings, err=True)
        if errors(found.findings) or found.empty:
            raise typer.Exit(2)
        verdict = with_authors_files(with_stand_in(judge(found), folders), folders)
    if as_json:
        print_json(verdict.as_dict())
    else:
        say(report(verdict))
    raise typer.Exit(0 if verdict.found else 1)


def _path(subject: str, asked: options.AskedWorkspace, held: ExitStack) -> Path:
    """A job's folder, or the path itself; that of a job of a workspace as long as ``held`` is."""
    from amlstack.cli.workspace.job_folder import find_subject
    from amlstack.sandbox.store.database import StateError
    from amlstack.sandbox.store.inventory import UnknownJobError

    try:
        return held.enter_context(find_subject(subject, asked)).folder
    except UnknownJobError as error:
        say(f"There is no file or folder {subject!r}. {error}", err=True)
    except StateError as error:
        say(str(error), err=True)
    raise typer.Exit(2)


def _culprits(path: Path, above: tuple[Path, ...] = ()) -> list[Path]:
    """The folder to read: of a sweep or pipeline that of its first child that failed; all of them when none did.

    A ``report.json`` that is malformed, or leads back to a folder above it, says nothing about children.
    """
    try:
        children = json.loads((path / "report.json").read_text())["children"]
        failed = [child for child in children if child["status"] == "Failed"]
        words = [f"{child['place']} (job {child['job']}) failed first of {len(children)}" for child in failed[:1]]
        below = [path.parent / child["key"] for child in failed[:1] or children]
        here = (*above, path.resolve())
        if any(each.resolve() in here for each in below):
            return [path]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return [path]
    for line in words:
        say(line, err=True)
    return [each for folder in below for each in _culprits(folder, here)] or [path]
