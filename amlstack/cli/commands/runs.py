"""Verbs on the jobs of a workspace, on Azure or on the sandbox."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import typer

from amlstack.base.findings import errors
from amlstack.cli.console import Json, Progress, end, ended_by, on_a_terminal, print_json, say
from amlstack.cli.workspace.options import AskedWorkspace

CANCELED = "Canceled"

Job = Annotated[str, typer.Argument(help="A run's name, or its job's; of a step PARENT/STEP.")]
OneJob = Annotated[
    str | None, typer.Argument(metavar="[JOB]", help="A run's name, or its job's; of a step PARENT/STEP.")
]
Jobs = Annotated[list[str], typer.Argument(metavar="JOB…", help="Runs, or jobs; of a step or trial PARENT/STEP.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A value that differs: inputs.lr=0.1.")
]
NewName = Annotated[str | None, typer.Option(help="Name of the new run.")]
AgreedTo = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it is submitted and costs something.")]
Subject = Annotated[
    str, typer.Argument(metavar="[JOB|workspace]", help="A run's name, or its job's, or the workspace itself.")
]
Most = Annotated[int, typer.Option("--most", "-n", min=1, help="How many jobs are shown, the newest first.")]
Rank = Annotated[int | None, typer.Option(metavar="N", min=0, help="The lines of this rank alone.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Ask for the end and do not wait for it.")]
Browser = Annotated[
    bool | None,
    typer.Option("--browser/--no-browser", help="Open it in a browser; unset: on a terminal, and not for the sandbox."),
]


def status(asked: AskedWorkspace, job: OneJob = None, *, most: Most = 20, as_json: Json = False) -> None:
    """Show the jobs of a workspace: type, status, compute, age, and why one waits; or all of one job.

    A job that waits is explained: its cluster's nodes and the jobs on them, errors of the cluster, or the quota, each
    with numbers. NODES and RANKS are what the job asks for; ranks are left out where its command leaves them open.

    Which workspace: a stack's (--stack), else --workspace with --resource-group and --subscription, else
    .azureml/config.json here or in a folder above, else the environment (AZUREML_ARM_WORKSPACE_NAME, …), else the
    sandbox. One line says which. docs/how-to/workspaces.md has it all.

    Exit status: 0 shown, 1 the service refused or does not answer, 2 there is no such job or workspace.

    Examples:
        amlstack status

        amlstack status --stack prod --most 50

        amlstack status ddp-torchrun --json
    """
    from amlstack.cli.workspace import job_search, refusals
    from amlstack.cli.workspace import status as shown

    with refusals.opened(asked) as (where, _):
        now = dt.datetime.now(dt.UTC)
        if job is not None:
            one = job_search.find(where, job)
            others = job_search.listed(where, most) if one.record.status in shown.WAITING else ()
            found = shown.details(where, one, shown.Queue(where.arm, others).why(one), now)
            if as_json:
                print_json(found)
            else:
                say("\n".join(shown.lines(found)))
            return
        jobs = job_search.listed(where, most)
        queue = shown.Queue(where.arm, jobs)
        rows = [shown.row(each, queue.why(each), now) for each in jobs[:most]]
    if as_json:
        print_json(rows)
    elif rows:
        say("\n".join(shown.table(rows)))
        if len(jobs) > most:
            say(f"and {len(jobs) - most} older (--most {len(jobs)} shows them)", err=True)
    else:
        say("no jobs", err=True)


def compare(asked: AskedWorkspace, jobs: Jobs, *, as_json: Json = False) -> None:
    """Show runs side by side: what differs in their inputs, parameters, metrics, time, cost and speed.

    Metrics and parameters are those that the runs logged by MLflow; a metric's last value counts. Steps per second are
    those of the first metric that was logged by steps. The cost is that of the nodes while the run ran, at the
    catalogue's price of the region; on the sandbox there is none. Which workspace: see `amlstack status --help`.

    Exit status: 0 shown, 1 the service refused or does not answer, 2 there is no such job or workspace.

    Examples:
        amlstack compare bert-3f97dd4a3c bert-98ab12cd34

        amlstack compare sweep/0 sweep/1 sweep/2 --json
    """
    from amlstack.cli.workspace import job_search, refusals, status

    with refusals.opened(asked) as (where, _):
        now = dt.datetime.now(dt.UTC)
        found = [status.read_run(where, job_search.find(where, job), now) for job in jobs]
    if as_json:
        print_json(found)
    else:
        say("\n".join(status.comparison_lines(found)))


def logs(asked: AskedWorkspace, job: Job, *, rank: Rank = None, follow: Follow = False) -> None:
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
    from amlstack.cli.workspace import job_search, refusals

    with refusals.opened(asked) as (where, reached):
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


def cancel(asked: AskedWorkspace, job: Job, *, no_wait: NoWait = False) -> int:
    """Cancel a job and wait for its end.

    A job's name means its active run; of two or more active ones the verb lists them and ends none. The beginning of a
    name is never enough. Which workspace: see `amlstack status --help`.

    Exit status: 0 when the job is canceled (with --no-wait: asked to end), 1 when it ended in another way or the
    service refused, 2 when there is no such job or workspace, 130 Ctrl-C, after which the job ends all the same.

    Examples:
        amlstack cancel train

        amlstack cancel ddp-torchrun-3f97dd4a3c --stack prod --no-wait
    """
    from amlstack.cli.logs.follower import InProgress, follow
    from amlstack.cli.workspace import job_search, refusals
    from amlstack.provider.runs import Runs

    progress = Progress()
    with refusals.opened(asked) as (where, reached):
        found = job_search.find(where, job, running=True)
        if not found.active:
            status = found.record.status
            canceled = status == CANCELED
            (progress.done if canceled else progress.fail)(f"job {found.name} has ended before: {status}")
            return 0 if canceled else 1
        progress.step(f"cancelling job {found.name}")
        reached.interrupted = (
            f"interrupted; whether job {found.name} was asked to end is not known: the same command asks again"
        )
        Runs(where.arm).cancel(found.workspace, found.name)
        reached.interrupted = f"job {found.name} was asked to end and will; this command does not wait for it any more"
        if no_wait:
            progress.done(f"job {found.name} was asked to end")
            return 0
        status = follow(where.arm, found.arm_id, InProgress(progress), lines=False)
    if status == CANCELED:
        progress.done(f"job {found.name} is canceled; its logs stay")
        return 0
    progress.fail(f"job {found.name} ended before it could be canceled: {status}")
    return 1


def resubmit(
    asked: AskedWorkspace, job: Job, *, changes: Set = None, name: NewName = None, yes: AgreedTo = False
) -> int:
    """Submit a run once more, with some values changed.

    The new run has the code, data, environment and command of the old one, as the workspace keeps them. The rules of
    the policy pack judge it first. It belongs to no stack: no `up` adopts, edits or ends it. Settings are compute,
    display_name, experiment_name, instance_count, timeout (seconds), inputs.NAME, environment_variables.NAME and
    tags.NAME. Which workspace: see `amlstack status --help`.

    Exit status: 0 submitted, 1 refused or answered with no, 2 wrong use, or there is no such job or workspace.

    Examples:
        amlstack resubmit bert-3f97dd4a3c --set inputs.lr=0.0002

        amlstack resubmit bert --stack prod --set instance_count=4 --set tags.why=more-nodes --yes
    """
    from amlstack.catalog import clock
    from amlstack.cli import console
    from amlstack.cli.workspace import job_search, refusals, submission
    from amlstack.provider.runs import version_for
    from policies import gate

    progress = Progress()
    with refusals.opened(asked) as (where, _):
        found = job_search.find(where, job)
        with ended_by(submission.NoSettingError):
            body = submission.body_of(found, changes or [])
        findings = submission.judge(where, found, body, gate.Gate(gate.read(None)[0], clock.today()))
        console.print_findings(findings)
        if errors(findings):
            progress.fail("nothing was sent")
            return 1
        made = name or submission.new_name(found)
        if where.arm.get(f"{found.workspace}/jobs/{made}", allow=(404,)).status != 404:
            end(f"There is a job `{made}` already.")
        question = f"Submit `{made}` to the workspace {found.workspace.rpartition('/')[2]}?"
        if not yes and not where.is_local and not console.submission_confirmed(progress, question):
            return 1
        where.arm.put(f"{found.workspace}/jobs/{made}", body, version_for(body["properties"]))
    progress.done(f"submitted {made}")
    progress.note(f"`amlstack compare {found.name} {made}` shows what differs")
    return 0


def open_studio(asked: AskedWorkspace, subject: Subject = "workspace", *, browser: Browser = None) -> int:
    """Print the studio's address of a job or of the workspace, and open it.

    The address alone goes to the standard output; a job's interactive services (`services`) with theirs to the other.
    Jobs of the sandbox have an address too, at which the studio shows nothing: it is printed as Azure would give it.
    Which workspace: see `amlstack status --help`.

    Exit status: 0 printed, 1 the service refused or does not answer, 2 there is no such job or workspace.

    Examples:
        amlstack open

        amlstack open ddp-torchrun --stack prod --no-browser
    """
    import webbrowser

    from amlstack.cli.workspace import job_search, refusals

    with refusals.opened(asked) as (where, _):
        services: dict[str, object] = {}
        if subject == "workspace":
            url = job_search.studio_of_workspace(where.arm, where.workspace)
        else:
            found = job_search.find(where, subject)
            url = job_search.studio_of_job(where.arm, found)
            services = found.record.properties.get("services") or {}
    say(url)
    for name, each in services.items():
        if isinstance(each, dict) and name not in {"Tracking", "Studio"}:  # which every job has
            at, state = each.get("endpoint") or "no address yet", each.get("status") or "not started"
            say(f"{name} ({each.get('jobServiceType')}): {at}, {state}", err=True)
    opens = on_a_terminal() and not where.is_local if browser is None else browser
    if opens and not webbrowser.open(url):
        end("no browser was found", 1)
    return 0
