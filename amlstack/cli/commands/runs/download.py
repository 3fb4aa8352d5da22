"""``amlstack download``: what a job wrote, to this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.cli.console import say
from amlstack.cli.workspace import options

if TYPE_CHECKING:
    from amlstack.cli.console import Progress
    from amlstack.cli.workspace.downloads import Downloads, RemoteFile
    from amlstack.cli.workspace.job_search import WorkspaceJob
    from amlstack.cli.workspace.workspace_place import WorkspacePlace

app = typer.Typer(add_completion=False)

Job = Annotated[str, typer.Argument(help="A run's name, or its job's; of a step PARENT/STEP.", show_default=False)]
Outputs = Annotated[
    list[str] | None, typer.Option("--outputs", "-o", metavar="NAME", help="This named output alone. Repeatable.")
]
Logs = Annotated[bool, typer.Option("--logs", help="The logs alone, also of a job that runs.")]
To = Annotated[
    Path | None, typer.Option("--to", metavar="DIR", help="Where to; a folder of the job's name when absent.")
]


@app.command()
def download(
    job: Job,
    stack: options.Stack = None,
    workspace: options.Workspace = None,
    group: options.Group = None,
    subscription: options.Subscription = None,
    *,
    sandbox: options.Sandbox = False,
    outputs: Outputs = None,
    logs: Logs = False,
    to: To = None,
) -> None:
    """Download what a job wrote: its logs and files, and its named outputs.

    They come to DIR as azure-ai-ml lays them out: `artifacts/user_logs`, `artifacts/outputs`, and `named-outputs/NAME`;
    of a sweep or a pipeline also those of each trial and step, in a folder of its name. The same command again goes on
    where one was interrupted, and leaves what is there and has not changed. No file has its name before it is whole.

    Reading storage that goes by identities takes the role Storage Blob Data Reader. Which workspace: see
    `amlstack status --help`.

    Exit status: 0 all is there, 1 something could not be downloaded, 2 there is no such job, output or workspace, 130
    Ctrl-C.

    Examples:
        amlstack download ddp-torchrun --logs

        amlstack download train --outputs model --to ./model --stack prod
    """
    from amlstack.cli.console import Progress
    from amlstack.cli.logs.files import RefusedNameError
    from amlstack.cli.workspace import job_search, refusals, workspace_place
    from amlstack.cli.workspace.downloads import Downloads
    from amlstack.rpc import ProviderError

    progress = Progress()
    asked = options.AskedWorkspace(stack, workspace, group, subscription, sandbox)
    with refusals.answered() as reached:
        reached.place = where = workspace_place.find(asked, options.announce)
        say(where.line, err=True)
        found = job_search.find(where, job)
        folder = (to or Path(found.name)).absolute()
        reached.interrupted = "interrupted; the same command goes on from here"
        downloads = Downloads(where, found.workspace, progress.note)
        try:
            if logs:
                count = _logs(where, found, folder, progress)
            else:
                _files(where, found, folder, outputs, downloads, progress)
                count = downloads.done
        except (ProviderError, RefusedNameError) as error:
            progress.fail(str(error))
            raise typer.Exit(1) from None
    if count:
        progress.done(f"{count} file{'' if count == 1 else 's'} in {folder}")
    else:
        progress.done(f"{found.name} has written nothing" + (" yet" if found.active else ""))


def _files(  # noqa: PLR0917 - called once
    place: WorkspacePlace,
    job: WorkspaceJob,
    folder: Path,
    outputs: list[str] | None,
    downloads: Downloads,
    progress: Progress,
) -> None:
    """Files and named outputs of a job and of what is below it; or of one job some outputs alone."""
    from amlstack.cli.logs.files import inside
    from amlstack.cli.logs.follower import label
    from amlstack.cli.workspace import job_search

    files: list[RemoteFile] = [] if outputs else downloads.artifacts(job.name, folder / "artifacts")
    files += _outputs(place, job, folder, outputs, downloads, progress)
    if files:
        size = sum(file.size for file in files)
        progress.step(f"{job.name}: {len(files)} file{'' if len(files) == 1 else 's'}, {size / 2**20:,.1f} MiB")
        downloads.fetch(files)
    if outputs is None:
        for child in job_search.children(place, job):
            below = job_search.find(place, f"{job.workspace}/jobs/{child['runId']}")
            own = inside(folder, label(job.kind, child).replace("/", "-").replace(" ", "-"))
            _files(place, below, own, None, downloads, progress)


def _outputs(  # noqa: PLR0917 - called once
    place: WorkspacePlace,
    job: WorkspaceJob,
    folder: Path,
    wanted: list[str] | None,
    downloads: Downloads,
    progress: Progress,
) -> list[RemoteFile]:
    from amlstack.base.text import did_you_mean
    from amlstack.cli.logs.files import inside
    from amlstack.cli.workspace.downloads import UnreadableAddressError
    from amlstack.provider.runs import Runs

    declared = set(job.record.properties.get("outputs") or ())
    found = Runs(place.arm).plane.outputs(job.workspace, job.name) if declared or wanted else {}
    files: list[RemoteFile] = []
    for name in wanted if wanted is not None else sorted(found):
        if name not in found:
            if name in declared:
                say(f"The output `{name}` of {job.name} has not been written: it is {job.record.status}.", err=True)
                raise typer.Exit(1)
            near = did_you_mean(name, sorted(found)) or "It has no named outputs."
            say(f"{job.name} has no output `{name}`. {near}", err=True)
            raise typer.Exit(2)
        try:
            files += downloads.at(found[name][1], inside(folder / "named-outputs", name))
        except UnreadableAddressError as error:
            progress.note(f"the output `{name}` is left out: {error}")
    return files


def _logs(place: WorkspacePlace, job: WorkspaceJob, folder: Path, progress: Progress) -> int:
    """The logs of a job and of what is below it, as they are now."""
    import shutil

    from amlstack.cli.logs.files import JobLogs, inside
    from amlstack.cli.logs.follower import label
    from amlstack.cli.workspace import job_search

    count = 0
    staging = folder / ".logs.part"
    logs = JobLogs(place.arm, job.workspace, job.name, staging, whole=True)
    logs.look()
    for name in sorted(logs.refused):
        progress.fail(f"left out: the service names a log {name[:200]!r}, which leads out of the folder")
    for path in sorted(staging.rglob("*")):
        if path.is_file():
            final = folder / "artifacts" / path.relative_to(staging)
            final.parent.mkdir(parents=True, exist_ok=True)
            path.replace(final)
            count += 1
    shutil.rmtree(staging, ignore_errors=True)
    for child in job_search.children(place, job):
        below = job_search.find(place, f"{job.workspace}/jobs/{child['runId']}")
        own = inside(folder, label(job.kind, child).replace("/", "-").replace(" ", "-"))
        count += _logs(place, below, own, progress)
    return count
