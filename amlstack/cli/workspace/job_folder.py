"""The subject of a diagnosis or report: a job of the sandbox, a folder, or a job of a workspace.

A job of a workspace becomes a folder of logs on this machine.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.cli.console import say
from amlstack.cli.logs.files import JobLogs, inside
from amlstack.cli.logs.follower import label
from amlstack.cli.workspace import job_search, refusals, status, workspace_place
from amlstack.sandbox.files import environments
from amlstack.sandbox.store.store import JobRow, Store, UnknownJobError, folder, job_folder

if TYPE_CHECKING:
    from amlstack.cli.workspace.job_search import WorkspaceJob
    from amlstack.cli.workspace.options import AskedWorkspace
    from amlstack.cli.workspace.workspace_place import WorkspacePlace
    from amlstack.diagnose import Diagnosis

_PROCESS: Final = re.compile(r"(?:std_log_process|70_driver_log)_(\d+)\.txt")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_. -]+){0,3}")


@dataclass(frozen=True, slots=True)
class NamedSubject:
    """The subject that a person named.

    Attributes:
        folder: Where its logs are; or the path that was named.
        record: A job of this home's sandbox, with the tables that it is in; None for anything else.
        job: A job of a workspace; None for anything else.
    """

    folder: Path
    record: tuple[Store, JobRow] | None = None
    job: WorkspaceJob | None = None


@contextlib.contextmanager
def _fetched(asked: AskedWorkspace, subject: str) -> Iterator[NamedSubject]:
    """The folder of a job, as long as the context lasts; of a sweep or pipeline of the first child that failed.

    What the service says ends the verb (`refusals`). The folder holds the logs of all attempts under the names that run
    history gives them, and a ``report.json`` as the sandbox writes one, with what the service says of the end.
    """
    with tempfile.TemporaryDirectory(prefix="amlstack-job-") as folder:
        with refusals.opened(asked) as (where, _):
            job = _culprit(where, job_search.find(where, subject))
            path = inside(Path(folder), job.name)
            path.mkdir()
            _collect(where, job, path)
        yield NamedSubject(path, job=job)


def _culprit(where: WorkspacePlace, job: WorkspaceJob) -> WorkspaceJob:
    """The first trial or step that failed; the job itself where nothing is below it, or nothing failed."""
    children = job_search.children(where, job)
    failed = [child for child in children if child.get("status") == "Failed"]
    if not failed:
        return job
    say(f"{label(job.kind, failed[0])} ({failed[0]['runId']}) failed first of {len(children)}", err=True)
    return _culprit(where, job_search.find(where, f"{job.workspace}/jobs/{failed[0]['runId']}"))


def _collect(where: WorkspacePlace, job: WorkspaceJob, folder: Path) -> None:
    logs = JobLogs(where.arm, job.workspace, job.name, folder, whole=True)
    logs.look()
    write_whole(folder / "report.json", json.dumps(_record(job, logs.details, folder)))


def _record(job: WorkspaceJob, details: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The sandbox's own record, as far as a workspace tells it: it has no exit codes."""
    properties = job.record.properties
    error = (details.get("error") or {}).get("error") or {}
    count = status.processes_of(properties)
    nodes = status.nodes_of(properties)
    files = sorted({int(found[1]) for path in folder.rglob("*.txt") if (found := _PROCESS.fullmatch(path.name))})
    # Without a log no process of it has run, and the cause is in what the service says.
    ranks = [] if not files else list(range(count)) if count and len(files) >= count else files
    per_node = max(1, (count or len(ranks) or 1) // nodes)
    return {
        "job": job.name,
        "workspace": job.workspace,
        "status": job.record.status,
        "error": {"code": error.get("code"), "message": error.get("message")} if error.get("message") else None,
        "created": _seconds(details.get("createdTimeUtc")) or (job.created.timestamp() if job.created else None),
        "started": _seconds(details.get("startTimeUtc")),
        "ended": _seconds(details.get("endTimeUtc")),
        "command": properties.get("command"),
        "nodes": nodes,
        "world_size": status.ranks_of(properties),
        "environment": str(properties.get("environmentId") or "").rpartition("/environments/")[2] or None,
        "ranks": [
            {"rank": rank, "node": min(rank // per_node, nodes - 1), "local_rank": rank % per_node, "code": None}
            for rank in ranks
        ],
    }


def _seconds(text: Any) -> float | None:
    found = None if text is None else job_search.when(text)
    return None if found is None else found.astimezone(dt.UTC).timestamp()


@contextlib.contextmanager
def find_subject(subject: str, asked: AskedWorkspace) -> Iterator[NamedSubject]:
    """A job of this home's sandbox, else a path, else a job of a workspace, as long as the context lasts.

    A run's own name comes before a path, and a path before the name of a run's job. What names the workspace wrongly
    ends the verb.

    Raises:
        UnknownJobError: It reads like a name, and no job is meant, or several may be.
        StateError: The sandbox's tables cannot be read.
    """
    with contextlib.ExitStack() as held:
        found = None if asked.any else _here(subject, asked, held)
        yield found or held.enter_context(_fetched(asked, subject))


def _here(subject: str, asked: AskedWorkspace, held: contextlib.ExitStack) -> NamedSubject | None:
    """The subject on this machine; None where it may be a job of a workspace."""
    if _has_sandbox():
        store = held.enter_context(contextlib.closing(Store(paths.home())))
        try:
            row = _job(store, subject)
        except UnknownJobError:
            if _may_be_elsewhere(subject, asked):
                return None
            raise
        if row is not None:
            path, here = job_folder(paths.home(), row.id), Path.cwd()
            return NamedSubject(path.relative_to(here) if path.is_relative_to(here) else path, (store, row))
    return NamedSubject(Path(subject)) if Path(subject).exists() or not _may_be_elsewhere(subject, asked) else None


def _job(store: Store, subject: str) -> JobRow | None:
    from amlstack.report import jobs as of_job

    if (named := store.jobs.get(subject)) is not None:
        return named
    if Path(subject).exists():
        return None
    try:
        return of_job.find(store, subject)
    except UnknownJobError:
        if Path(subject).suffix or subject.rstrip("/").count("/") > 1 or subject.endswith("/"):
            return None  # a misspelt path: its reader names what lies beside it
        raise


def _may_be_elsewhere(subject: str, asked: AskedWorkspace) -> bool:
    with refusals.answered():
        return _NAME.fullmatch(subject) is not None and workspace_place.is_named(asked)


def with_authors_files(verdict: Diagnosis, folders: Iterable[Path]) -> Diagnosis:
    """A verdict on jobs' folders that names the author's files, where it is known where they lie, and no copies."""
    named = authors_files(folders)
    if verdict.source is not None:
        verdict = replace(verdict, source=replace(verdict.source, file=named(verdict.source.file)))
    return verdict if verdict.text is None else replace(verdict, text=named(verdict.text))


def authors_files(folders: Iterable[Path]) -> Callable[[str], str]:
    """From a text with paths of copies, in any of these jobs' folders, to the same with those of the author's files."""
    jobs = folder(paths.home()).resolve() / "jobs"
    keys = [one.resolve().name for one in folders if one.resolve().parent == jobs]
    copies: list[environments.CodeCopies] = []
    if keys and _has_sandbox():
        with contextlib.closing(Store(paths.home())) as store:
            copies = [environments.code_of(store, row) for key in keys if (row := store.jobs.get(key)) is not None]

    def named(text: str) -> str:
        for each in copies:
            text = each.authors(text)
        return text

    return named


def _has_sandbox() -> bool:
    return (folder(paths.home()) / "state.db").exists()
