"""Verbs on one run: ``diagnose`` and ``report`` read its logs, ``shell`` and ``forward`` reach its nodes."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack import processes
from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.base.findings import errors
from amlstack.cli.commands.runs import Job
from amlstack.cli.console import Json, end, ended_by, print_findings, print_json, say
from amlstack.cli.workspace.options import AskedWorkspace

if TYPE_CHECKING:
    from amlstack.cli.workspace.job_folder import NamedSubject
    from amlstack.cli.workspace.job_search import WorkspaceJob
    from amlstack.report.logs import Report

Subjects = Annotated[list[str], typer.Argument(metavar="JOB|PATH...", help="Jobs, log files, or folders of them.")]
Reported = Annotated[
    list[str], typer.Argument(metavar="JOB...|FOLDER", help="A job, several side by side, or a folder of logs.")
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="The file; otherwise .amlstack/reports/JOB.html.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is no report.")]


def diagnose(subjects: Subjects, asked: AskedWorkspace, *, as_json: Json = False) -> int:
    """Name the first true cause in the logs of a distributed run.

    Reads v2's user_logs (std_log_process_NN.txt), v1's azureml-logs (70_driver_log_N.txt), mpi_log.txt, torchrun's
    error files and tables, and captured output whose lines name their ranks. Says who is to blame and who is only a
    victim, what to do, and how sure it is; or that the cause is not in these logs, and where it is.

    JOB is the name of a run, or of its job; of a sweep or a pipeline the first trial or step that failed is read. It
    is looked for on this clone's sandbox first, else in the workspace that options, .azureml/config.json or the
    environment name (`amlstack status --help`): the logs of all its attempts are then read from there, and nothing of
    them stays on this machine.

    Exit status: 0 no failure, 1 its cause is named, 2 wrong use or logs that cannot be read, 3 a failure whose cause is
    not in these logs.

    Examples:
        amlstack diagnose train

        amlstack diagnose train --stack prod

        amlstack diagnose user_logs/ --json
    """
    from amlstack.cli.workspace.job_folder import with_authors_files
    from amlstack.diagnose import diagnosis, judge, read, with_stand_in

    with contextlib.ExitStack() as held:
        named = [held.enter_context(_found(subject, asked)).folder for subject in subjects]
        folders = [each for folder in named for each in _culprits(folder)]
        found = read(folders)
        print_findings(found.findings, err=True)
        if errors(found.findings) or found.empty:
            return 2
        verdict = with_authors_files(with_stand_in(judge(found), folders), folders)
    if as_json:
        print_json(verdict.as_dict())
    else:
        say(diagnosis.report(verdict))
    if verdict.found:
        return 1
    return 3 if verdict.fatal else 0


@contextlib.contextmanager
def _found(subject: str, asked: AskedWorkspace) -> Iterator[NamedSubject]:
    """The job, folder or path of a name; that of a job of a workspace lasts as long as the context."""
    from amlstack.cli.workspace.job_folder import find_subject
    from amlstack.sandbox.store.database import StateError
    from amlstack.sandbox.store.store import UnknownJobError

    with ended_by(UnknownJobError, StateError), find_subject(subject, asked) as found:
        yield found


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


def report(subjects: Reported, asked: AskedWorkspace, *, output: Output = None, force: Force = False) -> None:
    """Write one run as one HTML file: verdict, ranks over time, loss, logs; or several side by side.

    The file needs no network and holds no script: mail it, or keep it beside the checkpoints. Without --output it lies
    in `reports/` of the sandbox's folder, which git ignores; its path is printed. JOB is the name of a run or
    of its job, ended or running, of this clone's sandbox, else of the workspace that options, .azureml/config.json
    or the environment name (`amlstack status --help`); of a sweep or pipeline of such a workspace the first trial or
    step that failed. FOLDER holds logs as `amlstack diagnose` reads them. Where there is no sandbox the file lies here.
    Of several jobs the page has what `amlstack compare` shows: inputs, parameters, metrics, time, cost and speed.

    Exit status: 0 written, 1 the service refused or does not answer, 2 wrong use.

    Examples:
        amlstack report ddp-torchrun

        amlstack report ddp-torchrun --stack prod --output run.html

        amlstack report user_logs/ --output run.html

        amlstack report sweep/0 sweep/1 --output trials.html
    """
    from amlstack.diagnose.diagnosis import headline
    from amlstack.report.page import NotOursError, render, write

    if len(subjects) > 1:
        made = _side_by_side(subjects, asked)
    else:
        with _found(subjects[0], asked) as found:
            made = _gathered(subjects[0], found)
    path = output or _reports() / f"{_file_name(made.title)}.html"
    try:
        with ended_by(NotOursError):
            write(path, render(made), force=force)
    except OSError as error:
        end(f"{path} cannot be written: {error.strerror}")
    say(
        f"{path}: {made.title}, {made.status or ('compared' if made.compared else 'a folder of logs')}"
        + (", so far" if made.active else "")
    )
    if made.verdict is not None:
        say(headline(made.verdict))


def _side_by_side(subjects: list[str], asked: AskedWorkspace) -> Report:
    from amlstack.cli.workspace import job_search, refusals, status
    from amlstack.report.logs import Report

    with refusals.opened(asked) as (where, _):
        now = dt.datetime.now(dt.UTC)
        jobs = [job_search.find(where, job) for job in subjects]
        runs = [status.read_run(where, job, now) for job in jobs]
    names = tuple(str(run["name"]) for run in runs)
    rows = tuple((name, *cells) for name, cells in status.rows_of(runs).items())
    active = any(job.active for job in jobs)
    title = f"{names[0]} and {len(names) - 1} more"
    return Report(title, "", active, now.timestamp(), compared=(("", *names), *rows))


def _gathered(subject: str, found: NamedSubject) -> Report:
    from amlstack.report.jobs import NoLogsError, folder_report, job_report

    if found.record is not None:
        return job_report(*found.record, time.time())
    if not found.folder.is_dir():
        end(f"There is no folder {subject!r}, and no sandbox here whose job it could be (amlstack sandbox up).")
    try:
        made = folder_report(found.folder, time.time())
    except NoLogsError as error:
        job = found.job
        end(f"The job {job.name} is {job.record.status} and has written no log." if job else str(error))
    return replace(made, active=found.job is not None and found.job.active)


def _reports() -> Path:
    """The folder of reports, made where it is missing; this folder where there is no sandbox yet."""
    with ended_by(homes.ForeignHomeError):
        if not homes.is_used(paths.home()):
            return Path()
        homes.claim(paths.home())
    folder = paths.home() / "reports"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _file_name(title: str) -> str:
    return "".join(each if each.isalnum() or each in "-_." else "-" for each in title).strip(".") or "report"


Node = Annotated[int, typer.Option(metavar="N", min=0, help="The node, from 0.")]
Port = Annotated[int, typer.Argument(min=1, max=65535, help="A port on which the job listens.")]


def shell(asked: AskedWorkspace, job: Job, *, node: Node = 0) -> int:
    """Open a shell on a node of a job that runs on the sandbox, as its first process there sees the node.

    It has that process's variables, its folder and its inputs, and ends with the job. Without a terminal it runs the
    commands that come on the standard input. On Azure it prints the `az ml job connect-ssh` that does this.

    Exit status: that of the shell; 1 the job does not run there, or the service refused; 2 wrong use, or on Azure.

    Examples:
        amlstack shell ddp-torchrun --node 1

        echo 'env | grep NCCL' | amlstack shell ddp-torchrun
    """
    from amlstack.sandbox.processes import MARK, NODE

    found = _of_sandbox(asked, job, node)
    on_node = processes.find_marked(NODE, str(node))
    pid = next((pid for pid in on_node if (processes.mark_of(pid, MARK) or "").endswith(f":{found.name}")), None)
    if pid is None:
        end(f"Nothing of {found.name} runs on node {node}: it is {found.record.status}.", 1)
    of = Path("/proc", str(pid))
    given = (of / "environ").read_bytes().decode(errors="surrogateescape").split("\0")
    apart = {kind: (of / "ns" / kind).readlink() != Path("/proc/self/ns", kind).readlink() for kind in ("user", "mnt")}
    enter = [
        "nsenter",
        "--target",
        str(pid),
        "--wd",
        "--mount",
        *(["--user", "--preserve-credentials"] * apart["user"]),
    ]
    if apart["mnt"] and shutil.which("nsenter") is None:
        say("nsenter (util-linux) is not installed: mounted inputs are not seen", err=True)
    ended = subprocess.run(
        [*(enter if apart["mnt"] and shutil.which("nsenter") else ()), "bash"],
        env=dict(each.split("=", 1) for each in given if "=" in each),
        cwd=(of / "cwd").readlink(),
        check=False,
    )
    return ended.returncode


def forward(asked: AskedWorkspace, job: Job, port: Port, *, node: Node = 0) -> int:
    """Print the address of a port on which a job of the sandbox listens; on Azure the command that forwards it.

    Nodes of the sandbox share this machine's network: what listens there can be reached as it is.

    Exit status: 0 printed, 1 nothing listens there, or the service refused; 2 wrong use, or on Azure.

    Examples:
        amlstack forward train 6006
    """
    found = _of_sandbox(asked, job, node, f' --ssh-args "-L {port}:localhost:{port}"')
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError as error:
        end(f"Nothing of {found.name} ({found.record.status}) answers on port {port}: {error.strerror}.", 1)
    say(f"http://127.0.0.1:{port}")
    return 0


def _of_sandbox(asked: AskedWorkspace, job: str, node: int, more: str = "") -> WorkspaceJob:
    """A job of the sandbox; the verb ends with 2, and with Azure's own command, for a job of Azure."""
    from amlstack.cli.workspace import job_search, refusals

    with refusals.opened(asked) as (where, _):
        found = job_search.find(where, job)
    if not where.is_local:
        end(_on_azure(found, node, more))
    return found


def _on_azure(found: WorkspaceJob, node: int, more: str) -> str:
    services = (found.record.properties.get("services") or {}).values()
    has = any(str(each.get("jobServiceType")).lower() == "ssh" for each in services if isinstance(each, dict))
    _, _, _, _, group, *_, workspace = found.workspace.split("/")
    return (
        f"{'' if has else 'The job has no service of the type `ssh`: declare one with `ssh_public_keys`. '}"
        f"Azure ML lets its owner in: `az ml job connect-ssh --name {found.name} --node-index {node} "
        f"--private-key-file-path KEY --workspace-name {workspace} --resource-group {group}{more}`."
    )
