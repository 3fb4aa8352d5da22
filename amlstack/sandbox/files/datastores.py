"""Files of datastores: account and container, signatures for them, and the files that a run keeps by itself.

Logs and ``outputs/`` of a run lie in the datastore ``workspaceartifactstore`` under ``ExperimentRun/dcid.<job>/``.
A client that lists or reads there finds them once the job has ended: they get a second name among the blobs, no copy.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import re
import shutil
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from amlstack.sandbox.protocol.entra import sign
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.store.store import job_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow, Store

VERSION = "2025-07-05"
HOURS = 24


def grant(key: str, account: str, container: str, permissions: str, *, hours: float = HOURS) -> str:
    """The query string (without ``?``) that opens one container.

    Args:
        key: The sandbox's signing key.
        account: Storage account.
        container: Container.
        permissions: Letters of r (read), a (add), c (create), w (write), d (delete), l (list).
        hours: From now to its end; a negative number gives one that has expired.
    """
    end = dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours)
    words = {"sv": VERSION, "sr": "c", "sp": permissions, "se": end.strftime("%Y-%m-%dT%H:%M:%SZ"), "spr": "https"}
    return urlencode({**words, "sig": _signature(key, account, container, words)})


_OF_ACCOUNT: Final = ("sv", "ss", "srt", "sp", "se")
_OF_CONTAINER: Final = ("sv", "sr", "sp", "se", "spr")


def account_grant(key: str, account: str, *, hours: float = HOURS) -> str:
    """The query string (without ``?``) that opens all containers of an account, as Azure Machine Learning gives it.

    Args:
        key: The sandbox's signing key.
        account: Storage account.
        hours: From now to its end.
    """
    end = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    words = {"sv": VERSION, "ss": "bf", "srt": "co", "sp": "rcuwdl", "se": end}
    signature = _signature(key, account, "", words)
    return urlencode({"sv": VERSION, "sig": signature, **{name: words[name] for name in ("se", "srt", "ss", "sp")}})


def account_key(key: str, account: str) -> str:
    """The key of an account: 64 bytes in Base64, as Azure's keys are."""
    return base64.b64encode(hmac.digest(key.encode(), f"account key\n{account}".encode(), hashlib.sha512)).decode()


def check_grant(key: str, query: Mapping[str, str], account: str, container: str, needs: str) -> None:
    """Refuses (403) a query without a good signature for this container and one of the permissions in ``needs``."""
    whole = "srt" in query  # only a signature for a whole account says what it opens of that
    words = {name: query.get(name, "") for name in (_OF_ACCOUNT if whole else _OF_CONTAINER)}
    container = "" if whole else container
    # As bytes: a text that is not ASCII cannot be compared.
    if not hmac.compare_digest(_signature(key, account, container, words).encode(), query.get("sig", "").encode()):
        message = (
            "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
            "correctly including the signature."
        )
        raise Refused(403, "AuthenticationFailed", message)
    end = dt.datetime.fromisoformat(words["se"])
    if end < dt.datetime.now(dt.UTC):
        message = f"Server failed to authenticate the request: Signature not valid in the specified time frame: {end}."
        raise Refused(403, "AuthenticationFailed", message)
    if not set(needs) & set(words["sp"]):
        message = "This request is not authorized to perform this operation using this permission."
        raise Refused(403, "AuthorizationPermissionMismatch", message)


def _signature(key: str, account: str, container: str, words: Mapping[str, str]) -> str:
    return sign(key, "sas", account, container, *words, *words.values())


CONTAINER: Final[Mapping[str, str]] = {
    "AzureBlob": "containerName",
    "AzureDataLakeGen2": "filesystem",
    "AzureFile": "fileShareName",
}
"""By type: the property that names the container."""


DEFAULT_STORE: Final = "workspaceblobstore"
"""The datastore that every workspace has as its default."""
MODELS: Final[Mapping[str, str]] = {
    "custom_model": "CustomModel",
    "mlflow_model": "MLFlowModel",
    "triton_model": "TritonModel",
}
"""Types of outputs that are models: the word of a body, and that of run history. All others are data."""


def output_uri(
    job: str, output: str, declared: str | None = None, *, store: str = DEFAULT_STORE, kind: str | None = None
) -> str:
    """The location of a job's output: where it was declared to, else in a folder of its own, or as a file of its name.

    Args:
        job: Name of the job.
        output: Name of the output.
        declared: Its ``uri`` in the body; None or empty for none.
        store: Name of the datastore that the folder is in.
        kind: Its type; of a ``uri_file`` the address has no slash at its end, by which clients would list a folder.
    """
    end = "" if kind == "uri_file" else "/"
    return declared or f"azureml://datastores/{store}/paths/azureml/{job}/{output}{end}"


def account_and_container(properties: Mapping[str, Any]) -> tuple[str, str]:
    """Both names; empty where a datastore of another type has none."""
    name = CONTAINER.get(str(properties.get("datastoreType")), "")
    return str(properties.get("accountName") or ""), str(properties.get(name) or "")


ARTIFACT_STORE: Final = "workspaceartifactstore"
KEPT: Final = ("user_logs", "logs", "outputs")
"""Folders of a job's folder that belong to the run."""
_WORKSPACES: Final = "Microsoft.MachineLearningServices/workspaces"
_NAME = re.compile(r"ExperimentRun/dcid\.(?P<job>[^/]+)(/.*)?")


def artifact_prefix(job: str) -> str:
    """The path of a job's files in the container."""
    return f"ExperimentRun/dcid.{job}/"


def ensure_artifacts(store: Store, account: str, container: str, name: str) -> None:
    """Makes blobs of a job's files, if a name or prefix is asked for that lies among them and they are none yet."""
    found = _NAME.fullmatch(name)
    if found is None:
        return
    for workspace in store.resources.of_type(_WORKSPACES):
        if _place(store, workspace.id) == (account, container):
            job = store.jobs.find(workspace.id, found["job"])
            if job is not None and not job.active:
                _publish(store, job, account, container)


def forget_artifacts(store: Store, job: JobRow) -> None:
    """Takes the blobs of a job's files away, which is deleted."""
    if (place := _place(store, job.workspace)) is not None:
        for blob in tuple(store.blobs.listed(*place, artifact_prefix(job.name))):
            store.blobs.delete(blob)


def _place(store: Store, workspace: str) -> tuple[str, str] | None:
    """Account and container of the datastore; None where there is no such workspace."""
    row = store.resources.get(f"{workspace}/datastores/{ARTIFACT_STORE}")
    return None if row is None else account_and_container(row.body["properties"])


def _publish(store: Store, job: JobRow, account: str, container: str) -> None:
    """Makes blobs of the files of a job that has ended; nothing the second time."""
    root = job_folder(store.home, job.id)
    if next(store.blobs.listed(account, container, artifact_prefix(job.name)), None) is not None:
        return
    with store.transaction():
        for folder in KEPT:
            for file in sorted((root / folder).rglob("*")):
                if file.is_file():
                    fresh = store.blobs.fresh()
                    second_name(file, fresh)
                    name = f"{artifact_prefix(job.name)}{file.relative_to(root)}"
                    # Azure ML writes logs as append blobs (azure-ai-ml, test_pipeline_job_child_run_download, 2022-12).
                    store.blobs.put(account, container, name, fresh, extra={"appended": 1} if "log" in folder else {})


def second_name(file: Path, target: Path) -> None:
    """Gives a file another name, or a copy where another disk or a link does not allow it.

    What a link leads to is not the run's, and stays as it is.

    Args:
        file: One that is written to by nobody.
        target: The other name.

    Raises:
        FileExistsError: There is a file of that name.
    """
    if not file.is_symlink():
        try:
            target.hardlink_to(file)
        except FileExistsError:
            raise
        except OSError:  # another disk
            pass
        else:
            return
    shutil.copyfile(file, target)
