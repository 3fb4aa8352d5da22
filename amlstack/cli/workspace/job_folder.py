"""A job of any workspace as a folder of logs on this machine, for what reads such folders: diagnosis and report."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.files import write_whole
from amlstack.cli.console import say
from amlstack.cli.logs.files import JobLogs, inside
from amlstack.cli.logs.follower import label
from amlstack.cli.workspace import found_jobs, options, place, queue, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.cli.workspace.found_jobs import WorkspaceJob
    from amlstack.cli.workspace.place import WorkspacePlace

_PROCESS: Final = re.compile(r"(?:std_log_process|70_driver_log)_(\d+)\.txt")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_. -]+){0,3}")


def is_meant(asked: options.AskedWorkspace, subject: str) -> bool:
    """Whether a subject that is no file and no job of this home's sandbox may be a job of a named workspace.

    Raises:
        NoWorkspaceError: What names the workspace is wrong.
    """
    return _NAME.fullmatch(subject) is not None and place.is_named(asked)


@contextlib.contextmanager
def fetched(asked: options.AskedWorkspace, subject: str) -> Iterator[tuple[Path, WorkspaceJob]]:
    """The folder of a job, as long as the context lasts; of a sweep or pipeline of the first child that failed.

    What the service says ends the verb (`refusals`). The folder holds the logs of all attempts under the names that run
    history gives them, and a ``report.json`` as the sandbox writes one, with what the service says of the end.
    """
    with tempfile.TemporaryDirectory(prefix="amlstack-job-") as folder:
        with refusals.answered() as reached:
            reached.place = where = place.find(asked, options.announce)
            say(where.line, err=True)
            job = _culprit(where, found_jobs.find(where, subject))
            path = inside(Path(folder), job.name)
            path.mkdir()
            _collect(where, job, path)
        yield path, job


def _culprit(where: WorkspacePlace, job: WorkspaceJob) -> WorkspaceJob:
    """The first trial or step that failed; the job itself where nothing is below it, or nothing failed."""
    children = found_jobs.children(where, job)
    failed = [child for child in children if child.get("status") == "Failed"]
    if not failed:
        return job
    say(f"{label(job.kind, failed[0])} ({failed[0]['runId']}) failed first of {len(children)}", err=True)
    return _culprit(where, found_jobs.find(where, f"{job.workspace}/jobs/{failed[0]['runId']}"))


def _collect(where: WorkspacePlace, job: WorkspaceJob, folder: Path) -> None:
    logs = JobLogs(where.arm, job.workspace, job.name, folder, whole=True)
    logs.look()
    write_whole(folder / "report.json", json.dumps(_record(job, logs.details, folder)))


def _record(job: WorkspaceJob, details: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the sandbox's own record says, as far as a workspace tells it: it has no exit codes."""
    properties = job.record.properties
    error = (details.get("error") or {}).get("error") or {}
    count = queue.processes_of(properties)
    nodes = queue.nodes_of(properties)
    files = sorted({int(found[1]) for path in folder.rglob("*.txt") if (found := _PROCESS.fullmatch(path.name))})
    # Without a log no process of it has run, and the cause is in what the service says.
    ranks = [] if not files else list(range(count)) if count and len(files) >= count else files
    per_node = max(1, (count or len(ranks) or 1) // nodes)
    return {
        "job": job.name,
        "workspace": job.workspace,
        "status": job.record.status,
        "error": {"code": error.get("code"), "message": error.get("message")} if error.get("message") else None,
        "created": _seconds(details.get("createdUtc")) or (job.created.timestamp() if job.created else None),
        "started": _seconds(details.get("startTimeUtc")),
        "ended": _seconds(details.get("endTimeUtc")),
        "command": properties.get("command"),
        "nodes": nodes,
        "world_size": queue.ranks_of(properties),
        "environment": str(properties.get("environmentId") or "").rpartition("/environments/")[2] or None,
        "ranks": [
            {"rank": rank, "node": min(rank // per_node, nodes - 1), "local_rank": rank % per_node, "code": None}
            for rank in ranks
        ],
    }


def _seconds(text: Any) -> float | None:
    found = None if text is None else found_jobs.when(text)
    return None if found is None else found.astimezone(dt.UTC).timestamp()
