"""``amlstack download``: what a job wrote, to this machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.base.text import did_you_mean
from amlstack.cli.console import Progress, end
from amlstack.cli.logs.files import JobLogs, RefusedNameError, inside
from amlstack.cli.logs.follower import label
from amlstack.cli.workspace import job_search, refusals
from amlstack.cli.workspace.downloads import Downloads, UnreadableAddressError
from amlstack.cli.workspace.options import AskedWorkspace
from amlstack.provider.runs import Runs
from amlstack.rpc import ProviderError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.cli.workspace.downloads import RemoteFile
    from amlstack.cli.workspace.job_search import WorkspaceJob
    from amlstack.cli.workspace.workspace_place import WorkspacePlace

Job = Annotated[str, typer.Argument(help="A run's name, or its job's; of a step PARENT/STEP.")]
Outputs = Annotated[
    list[str] | None, typer.Option("--outputs", "-o", metavar="NAME", help="This named output alone. Repeatable.")
]
Logs = Annotated[bool, typer.Option("--logs", help="The logs alone, also of a job that runs.")]
To = Annotated[Path | None, typer.Option(metavar="DIR", help="Where to; a folder of the job's name when absent.")]


def download(asked: AskedWorkspace, job: Job, *, outputs: Outputs = None, logs: Logs = False, to: To = None) -> int:
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
    progress = Progress()
    with refusals.opened(asked) as (where, reached):
        found = job_search.find(where, job)
        folder = (to or Path(found.name)).absolute()
        reached.interrupted = "interrupted; the same command goes on from here"
        downloads = Downloads(where.arm, found.workspace, progress.note)
        copied = 0
        try:
            for each, below in _jobs(where, found, folder):
                if logs:
                    copied += _logs(where, each, below, progress)
                else:
                    _files(each, below, outputs, downloads, progress)
                if outputs is not None and not logs:
                    break
        except (ProviderError, RefusedNameError) as error:
            progress.fail(str(error))
            return 1
    if count := copied + downloads.done:
        progress.done(f"{count} file{'' if count == 1 else 's'} in {folder}")
    else:
        progress.done(f"{found.name} has written nothing" + (" yet" if found.active else ""))
    return 0


def _jobs(place: WorkspacePlace, job: WorkspaceJob, folder: Path) -> Iterator[tuple[WorkspaceJob, Path]]:
    """A job and all that is below it, each with the folder that takes its files."""
    yield job, folder
    for child in job_search.children(place, job):
        below = job_search.find(place, f"{job.workspace}/jobs/{child['runId']}")
        yield from _jobs(place, below, inside(folder, label(job.kind, child).replace("/", "-").replace(" ", "-")))


def _files(
    job: WorkspaceJob, folder: Path, outputs: list[str] | None, downloads: Downloads, progress: Progress
) -> None:
    """Files and named outputs of a job, or some of its outputs alone."""
    files: list[RemoteFile] = [] if outputs else downloads.artifacts(job.name, folder / "artifacts")
    files += _outputs(job, folder, outputs, downloads, progress)
    if files:
        size = sum(file.size for file in files)
        progress.step(f"{job.name}: {len(files)} file{'' if len(files) == 1 else 's'}, {size / 2**20:,.1f} MiB")
        downloads.fetch(files)


def _outputs(
    job: WorkspaceJob, folder: Path, wanted: list[str] | None, downloads: Downloads, progress: Progress
) -> list[RemoteFile]:
    declared = set(job.record.properties.get("outputs") or ())
    found = Runs(downloads.arm).plane.outputs(job.workspace, job.name) if declared or wanted else {}
    files: list[RemoteFile] = []
    for name in wanted if wanted is not None else sorted(found):
        if name not in found:
            if name in declared:
                end(f"The output `{name}` of {job.name} has not been written: it is {job.record.status}.", 1)
            near = did_you_mean(name, sorted(found)) or "It has no named outputs."
            end(f"{job.name} has no output `{name}`. {near}")
        try:
            files += downloads.at(found[name][1], inside(folder / "named-outputs", name))
        except UnreadableAddressError as error:
            progress.note(f"the output `{name}` is left out: {error}")
    return files


def _logs(place: WorkspacePlace, job: WorkspaceJob, folder: Path, progress: Progress) -> int:
    """The logs of a job, as they are now: how many files."""
    staging = folder / ".logs.part"
    logs = JobLogs(place.arm, job.workspace, job.name, staging, whole=True)
    logs.look()
    for name in sorted(logs.refused):
        progress.fail(f"left out: the service names a log {name[:200]!r}, which leads out of the folder")
    copies = [path for path in sorted(staging.rglob("*")) if path.is_file()]
    for path in copies:
        final = folder / "artifacts" / path.relative_to(staging)
        final.parent.mkdir(parents=True, exist_ok=True)
        path.replace(final)
    shutil.rmtree(staging, ignore_errors=True)
    return len(copies)
