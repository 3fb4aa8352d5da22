"""``amlstack submit``: a job file to a workspace, judged first, under the id that its stack gives it."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amlstack.base.findings import errors
from amlstack.base.text import did_you_mean
from amlstack.catalog import clock
from amlstack.cli import console
from amlstack.cli.console import Progress, end, ended_by, print_findings
from amlstack.cli.logs.follower import InProgress, follow
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.stack_files import NoStackError
from amlstack.cli.workspace import job_search, refusals, submission
from amlstack.cli.workspace.options import AskedWorkspace
from amlstack.cli.workspace.submission import Submission
from amlstack.provider.runs import COMPLETED
from amlstack.rpc import ProviderError
from jobs.planning.plans import costs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.cli.workspace.refusals import Reached
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
        sending = Submission(where, declared, progress, cancelled, scale)
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
