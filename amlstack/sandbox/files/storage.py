"""The data of a job in the sandbox's storage: code, inputs and outputs as URIs, blobs as files on this disk.

Files of datastores have an account, a container, and signatures for them. Logs and ``outputs/`` of a run lie in the
datastore ``workspaceartifactstore`` under ``ExperimentRun/dcid.<job>/``. A client that lists or reads there finds them
once the job has ended: they get a second name among the blobs, no copy. Outputs of a completed job that are named
become data assets and models.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlencode, urlsplit

from amlstack.sandbox.contract import RefusedError
from amlstack.sandbox.protocol.addresses import BLOB as BLOB_SUFFIX
from amlstack.sandbox.protocol.entra import sign
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.store.store import JobRow, Store, folder, job_folder


def locate_blob(uri: str) -> tuple[str, str, str] | None:
    """Account, container and name (may be empty) behind a blob address; None when it is none of ours.

    Both ``https://127.0.0.1:PORT/blob/<account>/<container>/<name>`` (whatever the port was when it was written) and
    ``https://<account>.blob.core.windows.net/<container>/<name>`` are taken.
    """
    parts = urlsplit(uri)
    words = [unquote(word) for word in parts.path.strip("/").split("/")]
    host = parts.hostname or ""
    if parts.scheme != "https" or not all(words):
        return None
    if host.endswith(BLOB_SUFFIX):
        return host.removesuffix(BLOB_SUFFIX), words[0], "/".join(words[1:])
    if host in {"127.0.0.1", "localhost", "::1"} and words[0] == "blob" and len(words) >= 3:
        return words[1].partition(".")[0], words[2], "/".join(words[3:])
    return None


DATASTORE = re.compile(
    r"azureml://(?:subscriptions/(?P<subscription>[^/]+)/resourcegroups/(?P<group>[^/]+)/(?:providers/[^/]+/)?"
    r"workspaces/(?P<workspace>[^/]+)/)?datastores/(?P<store>[^/]+)(?:/paths)?/(?P<path>.*)",
    re.IGNORECASE,
)
_ASSET = re.compile(
    r"(?:azureml:)?(?P<workspace>/subscriptions/[^/]+/resourceGroups/[^/]+/providers/"
    r"Microsoft\.MachineLearningServices/workspaces/[^/]+)/(?P<kind>data|models)/(?P<asset>[^/]+)/versions/(?P<number>[^/]+)"
    r"|azureml:(?P<name>[^/:@]+)(?::(?P<version>[^/:@]+)|@(?P<label>[^/:@]+))",
    re.IGNORECASE,
)
"""A version of data or of a model by its ARM id, or data as `azureml:NAME:VERSION`, `azureml:NAME@latest`."""
JOB_OUTPUT = re.compile(
    r"azureml://jobs/(?P<job>[^/]+)/outputs/(?P<output>[^/]+)(?:/paths)?(?:/(?P<path>.*))?", re.IGNORECASE
)
"""Output of another job of the workspace."""
_ADDRESS = {"data": "dataUri", "models": "modelUri"}
"""The property of each kind of asset that holds its address."""


@dataclass(frozen=True, slots=True)
class Location:
    """A blob, or all blobs below a prefix."""

    account: str
    container: str
    path: str


@dataclass(frozen=True, slots=True)
class Storage:
    """The sandbox's storage as one workspace sees it."""

    store: Store
    workspace: str

    def locate(self, uri: str, what: str) -> Location | Path:
        """The location of a URI's data: in the sandbox's storage, or (an absolute path, file://) on this disk.

        Args:
            uri: ``azureml://…/datastores/NAME/paths/P``, a blob URL of the sandbox, a data version, or a local path.
            what: Whose URI it is, for the message.

        Raises:
            RefusedError: It is something that the sandbox cannot read.
        """
        if found := DATASTORE.fullmatch(uri):
            return self._datastore(found, what)
        if found := _ASSET.fullmatch(uri):
            return self.locate(self._data_uri(found, uri, what), what)
        if found := JOB_OUTPUT.fullmatch(uri):
            return self.locate(self._job_output(found, what), what)
        parts = urlsplit(uri)
        words = unquote(parts.path).strip("/").split("/")
        if parts.scheme == "https" and words[0] == "blob" and len(words) >= 3:
            _check_path("/".join(words[1:]), what)
            return Location(words[1].partition(".")[0], words[2], "/".join(words[3:]))
        named = locate_blob(uri)  # by Azure's own name of an account, where that lies here
        if named is not None and any(each.name == named[1] for each in self.store.blobs.containers(named[0])):
            _check_path("/".join(named[1:]), what)
            return Location(*named)
        if parts.scheme == "file" or (not parts.scheme and uri.startswith("/")):
            return Path(unquote(parts.path))
        message = (
            f"{what} lies at {uri}, which the sandbox cannot read. It reads azureml://datastores/NAME/paths/…, "
            "data of its workspaces by name, blobs of its own storage, and absolute paths of this machine."
        )
        raise RefusedError(message)

    def _datastore(self, found: re.Match[str], what: str) -> Location:
        name = found["store"]
        workspace = self.workspace
        if found["workspace"]:
            workspace = (
                f"/subscriptions/{found['subscription']}/resourceGroups/{found['group']}"
                f"/providers/Microsoft.MachineLearningServices/workspaces/{found['workspace']}"
            )
        _check_path(found["path"], what)
        resource = self.store.resources.get(f"{workspace}/datastores/{name}")
        if resource is None:
            kind = "Microsoft.MachineLearningServices/workspaces/datastores"
            known = ", ".join(row.name for row in self.store.resources.under(workspace, kind)) or "none"
            message = f"{what} lies in the datastore {name!r}, which the workspace does not have. It has: {known}."
            raise RefusedError(message)
        account, container = account_and_container(resource.body["properties"])
        return Location(account, container, found["path"].strip("/"))

    def _job_output(self, found: re.Match[str], what: str) -> str:
        """The location of a job's output.

        Raises:
            RefusedError: There is no such job, or it has no such output.
        """
        job = self.store.jobs.find(self.workspace, found["job"])
        if job is None:
            raise RefusedError(f"{what} is an output of the job {found['job']!r}, which the workspace does not have.")
        outputs = job.properties.get("outputs") or {}
        if found["output"] == "artifacts":
            path = f"{artifact_prefix(job.name)}{found['path'] or ''}"
            return f"azureml://datastores/{ARTIFACT_STORE}/paths/{path}"
        if found["output"] not in outputs:
            known = ", ".join(outputs) or "none"
            raise RefusedError(f"{what} is the output {found['output']!r} of the job {job.name}, which has {known}.")
        uri = output_uri(job.name, found["output"], (outputs[found["output"]] or {}).get("uri"))
        return f"{uri.rstrip('/')}/{found['path'] or ''}"

    def _data_uri(self, found: re.Match[str], uri: str, what: str) -> str:
        """The location of the data of a version; ``latest`` is the newest one that is not archived.

        Raises:
            RefusedError: There is no such data, or they lie at a version of other data.
        """
        workspace, name = found["workspace"] or self.workspace, found["asset"] or found["name"]
        kind = (found["kind"] or "data").lower()
        versions = f"Microsoft.MachineLearningServices/workspaces/{kind}/versions"
        rows = self.store.resources.under(f"{workspace}/{kind}/{name}", versions)
        wanted = found["number"] or found["version"]
        if found["label"]:
            active = [row for row in rows if not row.body["properties"].get("isArchived")]
            one = active[-1] if active and found["label"].lower() == "latest" else None
        else:
            one = next((row for row in rows if row.name.lower() == wanted.lower()), None)
        if one is None:
            known = ", ".join(row.name for row in rows) or "no version"
            raise RefusedError(f"{what} is {uri}, which the workspace does not have. Of {name!r} it has {known}.")
        address = str(one.body["properties"][_ADDRESS[kind]])
        if _ASSET.fullmatch(address):
            raise RefusedError(f"{what} is {uri}, which lies at {address}, data by name; data lie at an address.")
        return address

    def files(self, place: Location) -> Iterator[tuple[str, Path]]:
        """The blobs at or below a location: path relative to it (empty for the blob itself), and its file.

        Raises:
            RefusedError: A name leads out of the folder.
        """
        _check_path(place.path, "What is read")
        blobs = self.store.blobs
        ensure_artifacts(self.store, place.account, place.container, place.path)
        if place.path and (one := blobs.get(place.account, place.container, place.path)) is not None and not one.folder:
            yield "", one.path
        prefix = f"{place.path}/" if place.path else ""
        for blob in blobs.under(place.account, place.container, prefix):
            if blob.folder:
                continue
            relative = blob.name.removeprefix(prefix)
            if ".." in relative.split("/") or relative.startswith("/"):
                raise RefusedError(f"The blob name {blob.name!r} leads out of its folder.")
            yield relative, blob.path

    def fetch(self, place: Location | Path, target: Path, what: str, *, link: bool = False) -> None:
        """Puts a copy of the data at ``target``.

        Args:
            place: Where they are.
            target: The file or folder to make.
            what: Whose data it is, for the message.
            link: What is stored gets a second name instead of a copy (where both lie on one disk): for a folder that
                cannot be written to.

        Raises:
            RefusedError: There is nothing.
        """
        if isinstance(place, Path):
            if not place.exists():
                raise RefusedError(f"{what} is {place}, which does not exist.")
            target.parent.mkdir(parents=True, exist_ok=True)
            if place.is_dir():
                shutil.copytree(place, target, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copyfile(place, target)
            return
        found, copy = False, second_name if link else shutil.copyfile
        for relative, file in self.files(place):
            found = True
            one = target / relative if relative else target
            one.parent.mkdir(parents=True, exist_ok=True)
            copy(file, one)
        if not found:
            message = f"{what} is at {place.container}/{place.path} in {place.account}, where nothing is stored."
            raise RefusedError(message)

    def has_files(self, uri: str) -> bool:
        """True where there are files at an address of the sandbox's storage."""
        try:
            place = self.locate(uri, "The data")
            return isinstance(place, Location) and any(True for _ in self.files(place))
        except RefusedError:
            return False

    def mount(self, place: Location, *, file: bool = False) -> Path:
        """The folder or file of a location mounted for writing, with what is stored there already.

        It outlives the job, as what is written to a mount does, and is shared by the nodes.

        Args:
            place: The location.
            file: It is to become one file: its folder is made, and nothing at its own path.
        """
        root = folder(self.store.home) / "mounts"
        shared = root / place.account / place.container / place.path
        if not shared.resolve().is_relative_to(root.resolve()):
            raise RefusedError(f"{place.container}/{place.path} in {place.account} leads out of the folder of mounts.")
        if file:
            shared.parent.mkdir(parents=True, exist_ok=True)
        elif not place.path or self.store.blobs.get(place.account, place.container, place.path) is None:
            shared.mkdir(parents=True, exist_ok=True)
        for relative, blob in self.files(place):
            one = shared / relative if relative else shared
            if not one.exists() or one.stat().st_mtime < blob.stat().st_mtime:
                one.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(blob, one)
        return shared

    def publish(self, source: Path, place: Location) -> int:
        """Makes blobs of one file, or of those below a folder, except those stored unchanged; how many."""
        blobs = self.store.blobs
        published = 0
        for file in (source, *sorted(source.rglob("*"))):
            if not file.is_file():
                continue
            below = file.relative_to(source).as_posix() if file != source else ""
            name = "/".join(part for part in (place.path, below) if part)
            there = blobs.get(place.account, place.container, name)
            if there is not None and there.changed >= file.stat().st_mtime:
                continue
            fresh = blobs.fresh()
            shutil.copyfile(file, fresh)
            blobs.put(place.account, place.container, name, fresh)
            published += 1
        return published


def _check_path(path: str, what: str) -> None:
    if ".." in path.replace("\\", "/").split("/") or "\0" in path:
        raise RefusedError(f"{what} lies at {path!r}, which leads out of its folder.")


def merge(source: Path, target: Path) -> None:
    """Moves the files below one folder into another; a file that is there already gives way to a newer one."""
    for file in sorted(source.rglob("*")) if source.is_dir() else ():
        if not file.is_file():
            continue
        goal = target / file.relative_to(source)
        if goal.exists() and goal.stat().st_mtime > file.stat().st_mtime:
            continue
        goal.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_symlink() and file.stat().st_dev == target.stat().st_dev:
            file.replace(goal)
        else:
            shutil.copyfile(file, goal)


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


_ML: Final = "Microsoft.MachineLearningServices/workspaces"


def register(store: Store, job: JobRow, places: Mapping[str, str] | None = None) -> None:
    """Registers each output that has an ``assetName``, under its ``assetVersion`` or the next number.

    A version that is there already stays as it is: assets never change.

    Args:
        store: All state.
        job: It has completed.
        places: Where the outputs lie that its steps have written; of a job without steps they lie where it says.
    """
    for name, port in (job.properties.get("outputs") or {}).items():
        if not isinstance(port, dict) or not port.get("assetName"):
            continue
        kind = str(port.get("jobOutputType") or "uri_folder")
        uri = (places or {}).get(name) or output_uri(job.name, name, port.get("uri"))
        common: dict[str, Any] = {"isAnonymous": False, "isArchived": False, "tags": {}, "properties": {}}
        if kind in MODELS:
            own = {"modelUri": uri, "modelType": kind, "jobName": job.name, "flavors": {}}
            _put(store, job.workspace, "models", port, {**common, **own})
        else:
            _put(store, job.workspace, "data", port, {**common, "dataUri": uri, "dataType": kind})


def _put(store: Store, workspace: str, word: str, port: dict[str, Any], properties: dict[str, Any]) -> None:
    container, kind = f"{workspace}/{word}/{port['assetName']}", f"{_ML}/{word}"
    numbers = [int(row.name) for row in store.resources.under(container, f"{kind}/versions") if row.name.isdecimal()]
    version = str(port.get("assetVersion") or max(numbers, default=0) + 1)
    if store.resources.get(container) is None:
        store.resources.put(container, kind, workspace, {"properties": {}})
    if store.resources.get(f"{container}/versions/{version}") is None:
        store.resources.put(
            f"{container}/versions/{version}", f"{kind}/versions", container, {"properties": properties}
        )
