"""The files that a run keeps by itself (logs, ``outputs/``), as blobs where Azure ML has them.

They lie in the datastore ``workspaceartifactstore`` under ``ExperimentRun/dcid.<job>/``. A client that lists or reads
there finds them once the job has ended: they get a second name in the blobs' folder, no copy.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from typing import TYPE_CHECKING, Final

from amlstack.sandbox.files.datastores import account_and_container
from amlstack.sandbox.store.store import job_folder

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow, Store

DATASTORE: Final = "workspaceartifactstore"
KEPT: Final = ("user_logs", "logs", "outputs")
"""Folders of a job's folder that belong to the run."""
_WORKSPACES: Final = "Microsoft.MachineLearningServices/workspaces"
_NAME = re.compile(r"ExperimentRun/dcid\.(?P<job>[^/]+)(/.*)?")


def prefix(job: str) -> str:
    """The path of a job's files in the container."""
    return f"ExperimentRun/dcid.{job}/"


def ensure(store: Store, account: str, container: str, name: str) -> None:
    """Makes blobs of a job's files, if a name or prefix is asked for that lies among them and they are none yet."""
    found = _NAME.fullmatch(name)
    if found is None:
        return
    for workspace in store.resources.of_type(_WORKSPACES):
        if _place(store, workspace.id) == (account, container):
            job = store.jobs.find(workspace.id, found["job"])
            if job is not None and not job.active:
                _publish(store, job, account, container)


def forget(store: Store, job: JobRow) -> None:
    """Takes the blobs of a job's files away, which is deleted."""
    if (place := _place(store, job.workspace)) is not None:
        for blob in tuple(store.blobs.listed(*place, prefix(job.name))):
            store.blobs.delete(blob)


def _place(store: Store, workspace: str) -> tuple[str, str] | None:
    """Account and container of the datastore; None where there is no such workspace."""
    row = store.resources.get(f"{workspace}/datastores/{DATASTORE}")
    return None if row is None else account_and_container(row.body["properties"])


def _publish(store: Store, job: JobRow, account: str, container: str) -> None:
    """Makes blobs of the files of a job that has ended; nothing the second time."""
    root = job_folder(store.home, job.id)
    if next(store.blobs.listed(account, container, prefix(job.name)), None) is not None:
        return
    with store.transaction():
        for folder in KEPT:
            for file in sorted((root / folder).rglob("*")):
                if file.is_file():
                    fresh = store.blobs.fresh()
                    second_name(file, fresh)
                    store.blobs.put(account, container, f"{prefix(job.name)}{file.relative_to(root)}", fresh)


def second_name(file: Path, fresh: Path) -> None:
    """Gives a file another name; a copy where it is a link: what a link leads to is not the run's, and stays as it is.

    Args:
        file: One of the run's.
        fresh: The other name, which becomes a blob's and is written to by nobody.
    """
    fresh.unlink(missing_ok=True)
    if not file.is_symlink():
        with contextlib.suppress(OSError):  # another disk
            fresh.hardlink_to(file)
            return
    shutil.copyfile(file, fresh)
