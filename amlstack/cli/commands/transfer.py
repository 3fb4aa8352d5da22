"""Jobs to a workspace and their results from it: `amlstack submit` and `amlstack download`."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amlstack.base.findings import errors
from amlstack.base.text import did_you_mean
from amlstack.catalog import clock
from amlstack.cli import console
from amlstack.cli.console import Progress, end, ended_by, print_findings
from amlstack.cli.logs.files import JobLogs, RefusedNameError, inside
from amlstack.cli.logs.follower import InProgress, follow, label
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.stack_files import NoStackError
from amlstack.cli.workspace import job_search, refusals
from amlstack.cli.workspace.downloads import Downloads, RemoteFile, UnreadableAddressError
from amlstack.cli.workspace.options import AskedWorkspace
from amlstack.provider.runs import COMPLETED, Runs
from amlstack.rpc import ProviderError

if TYPE_CHECKING:
    from amlstack.cli.workspace.job_search import WorkspaceJob
    from amlstack.cli.workspace.refusals import Reached
    from amlstack.cli.workspace.submission import Submission
    from amlstack.cli.workspace.workspace_place import WorkspacePlace
    from infra.runs import Run

File = Annotated[Path, typer.Argument(help="Job file: Python, or Azure ML CLI v2 YAML.")]
Only = Annotated[str | None, typer.Option("--job", help="Name of one job, when the file has several.")]
Name = Annotated[str | None, typer.Option(help="Another name than the file's: its runs' ids begin with it.")]
Rerun = Annotated[
    str | None, typer.Option(metavar="WORD", help="Run once more what has run: another word, another run.")
]
Watch = Annotated[bool, typer.Option("--watch", help="Print the logs of all ranks until it ends, and exit like it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it is submitted and costs something.")]


def submit(
    file: File,
    asked: AskedWorkspace,
    *,
    only: Only = None,
    name: Name = None,
    rerun: Rerun = None,
    nodes: scales.Nodes = None,
    ranks: scales.Ranks = None,
    both: scales.Both = None,
    watch: Watch = False,
    yes: Yes = False,
) -> int:
    """Submit a job file to a workspace.

    It judges the file as `pulumi up` does, before it sends anything, shows the cost, and on a terminal asks
    (without one it needs --yes; on the sandbox nothing costs anything). It uploads code and data once for each
    content.

    With --stack the run has the id that `amlstack up --stack NAME` would give it, and a later `up` of a stack that
    lists the file adopts it. What runs already, or has run, is not submitted again: --rerun WORD runs it once more.

    On the sandbox `-j 2x2` starts no more than two nodes with two ranks each, as a rehearsal does; the body keeps its
    counts, and so does the id. On Azure every declared rank starts.

    Which workspace: a stack's (--stack), else --workspace with --resource-group and --subscription, else
    .azureml/config.json, else the environment, else the sandbox (docs/how-to/workspaces.md). `up` makes schedules.

    Exit status: 0 submitted (with --watch: completed), 1 refused, failed or answered with no, 2 wrong use, 130 Ctrl-C.

    Examples:
        amlstack submit job.yml --stack prod

        amlstack submit job.yml --workspace aml-team -g rg-team --watch

        amlstack submit job.yml --sandbox -j 2x2 --watch
    """
    from amlstack.cli.workspace import submission

    progress = Progress()
    if not file.is_file():
        end(f"There is no file {file}.")
    cancelled = threading.Event()
    scale = scales.chosen(nodes, ranks, both)
    with refusals.opened(asked) as (where, reached):
        if scale is not None and not where.is_local:
            end(
                "`-j` scales a job down to this machine, and Azure starts every rank that it declares. Declare fewer, "
                f"or scale it here: `amlstack submit {file} --sandbox -j {scale}`."
            )
        with ended_by(NoStackError):
            declared = (
                submission.of_workspace(file, where, clock.today(), cancelled)
                if asked.stack is None
                else submission.of_stack(file, asked.stack, clock.today())
            )
        print_findings(declared.findings)
        if wrong := errors(declared.findings):
            progress.fail(f"{len(wrong)} error{'' if len(wrong) == 1 else 's'}; nothing was sent")
            return 1
        runs = _chosen(declared.runs, only, name, rerun)
        reached.interrupted = (
            "interrupted; what was accepted runs: `amlstack status`. The same command goes on from here"
        )
        sending = submission.Submission(where, declared, progress, cancelled, scale)
        try:
            sent = [run_id for run in runs if (run_id := _one(sending, run, yes=yes)) is not None]
        except ProviderError as error:
            progress.fail(error.message.replace("the next `up`", "the same command"))
            return 1
        except KeyboardInterrupt:
            cancelled.set()
            raise
        if len(sent) < len(runs):
            return 1
        ended = [_followed(sending, reached, run_id) for run_id in sent if watch]
        return int(any(status != COMPLETED for status in ended))


def _chosen(runs: tuple[Run, ...], only: str | None, name: str | None, rerun: str | None) -> list[Run]:
    """The runs that are meant, under the name and with the word that were asked for."""
    found = [run for run in runs if only is None or run.name == only]
    if not found:
        near = did_you_mean(only or "", [run.name for run in runs])
        end(f"The file declares no job `{only}`. {near}" if only else "The file declares no job.")
    if schedules := [run.name for run in found if run.is_schedule]:
        end(
            f"`{schedules[0]}` is a schedule, which converges instead of running once: list its file under "
            "amlstack:jobs of a stack, and `amlstack up` makes it."
        )
    if name is not None:
        if len(found) > 1:
            end(f"The file declares {len(found)} jobs: name one with --job, so that it can have another --name.")
        found = [replace(found[0], name=name)]
    return found if rerun is None else [_again(run, rerun) for run in found]


def _again(run: Run, rerun: str) -> Run:
    plan: Any = run.plan
    return replace(run, plan=replace(plan, job=plan.job.model_copy(update={"rerun": rerun})))


def _one(sending: Submission, run: Run, *, yes: bool) -> str | None:
    """Submits a run; its name in the workspace, or None after a no."""
    progress, place = sending.progress, sending.place
    run_id, record = sending.foreseen(run)
    if record is not None:
        progress.done(f"{run_id} is there already: {record.status}")
        return run_id
    for line in _plan(run):
        progress.note(line)
    question = f"Submit `{run.name}` to the workspace {place.workspace.rpartition('/')[2]}?"
    if not yes and not place.is_local and not console.submission_confirmed(progress, question):
        return None
    if place.is_local and not scales.agreed(progress, run.plan, sending.scale, yes=yes or not console.on_a_terminal()):
        return None
    progress.step(f"submitting {run_id}")
    run_id = sending.send(run)
    progress.done(f"submitted {run_id}")
    if not place.is_local:
        progress.note(f"studio: {job_search.studio_of_job(place.arm, job_search.find(place, run_id))}")
    again = f" --stack {place.stack}" if place.stack else ""
    progress.note(f"`amlstack logs {run_id}{again}` follows it, `amlstack cancel {run_id}{again}` ends it")
    return run_id


def _plan(run: Run) -> Iterator[str]:
    from jobs.planning.plans import costs

    prices = costs(run.plan)
    for step, part in run.plan.parts.items():
        where = part.target.cluster or "serverless compute"
        size = f" ({part.target.size})" if part.target.size else ""
        cost = prices.get(step) or "cost unknown: no price in the catalogue (`amlstack sizes --refresh` asks Azure)"
        nodes = f"{part.nodes} node{'' if part.nodes == 1 else 's'}"
        yield f"{f'{step}: ' if step else ''}{part.world_size} ranks on {nodes} of {where}{size}; {cost}"


def _followed(sending: Submission, reached: Reached, run_id: str) -> str:
    """The status in which a run ended, after the logs of all its ranks."""
    reached.interrupted = (
        f"{run_id} goes on: `amlstack cancel {run_id}` ends it, `amlstack logs {run_id} --follow` follows it"
    )
    job_id = f"{sending.place.workspace}/jobs/{run_id}"
    return follow(sending.place.arm, job_id, InProgress(sending.progress))


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
