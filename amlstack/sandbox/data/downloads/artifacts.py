"""The files that a run keeps by itself (logs, ``outputs/``), as blobs where Azure ML has them.

They lie in the datastore ``workspaceartifactstore`` under ``ExperimentRun/dcid.<job>/``. A client that lists or reads
there finds them once the job has ended: they get a second name in the blobs' folder, no copy.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Final

from amlstack.sandbox.store.store import job_folder

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow, Store

DATASTORE: Final = "workspaceartifactstore"
CONTAINER: Final = "azureml"
KEPT: Final = ("user_logs", "logs", "outputs")
"""Folders of a job's folder that belong to the run."""
_NAME = re.compile(r"ExperimentRun/dcid\.(?P<job>[^/]+)(/.*)?")


def prefix(job: str) -> str:
    """Where a job's files lie in the container."""
    return f"ExperimentRun/dcid.{job}/"


def ensure(store: Store, account: str, container: str, name: str) -> None:
    """Makes blobs of a job's files, if a name or prefix is asked for that lies among them and they are none yet."""
    found = _NAME.fullmatch(name) if container == CONTAINER else None
    if found is None:
        return
    for workspace in store.resources.of_type("Microsoft.MachineLearningServices/workspaces"):
        if str(workspace.body["properties"].get("storageAccount", "")).rsplit("/", 1)[-1] == account:
            job = store.jobs.find(workspace.id, found["job"])
            if job is not None and not job.active:
                publish(store, job, account)


def publish(store: Store, job: JobRow, account: str) -> int:
    """Makes blobs of the files of a job that has ended; how many, which is none the second time."""
    root, count = job_folder(store.home, job.id), 0
    if next(store.blobs.listed(account, CONTAINER, prefix(job.name)), None) is not None:
        return 0
    with store.transaction():
        for folder in KEPT:
            for file in sorted((root / folder).rglob("*")):
                if file.is_file():
                    fresh = store.blobs.fresh()
                    _second_name(file, fresh)
                    store.blobs.put(account, CONTAINER, f"{prefix(job.name)}{file.relative_to(root)}", fresh)
                    count += 1
    return count


def forget(store: Store, job: JobRow) -> None:
    """Takes the blobs of a job's files away again, which goes."""
    workspace = store.resources.get(job.workspace)
    if workspace is not None:
        account = str(workspace.body["properties"].get("storageAccount", "")).rsplit("/", 1)[-1]
        for blob in tuple(store.blobs.listed(account, CONTAINER, prefix(job.name))):
            store.blobs.delete(blob)


def _second_name(file: Path, fresh: Path) -> None:
    fresh.unlink(missing_ok=True)
    try:
        fresh.hardlink_to(file)
    except OSError:  # another disk
        shutil.copyfile(file, fresh)
