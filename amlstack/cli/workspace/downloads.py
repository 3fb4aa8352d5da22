"""Files of a job on their way to this machine: listed, resumed, and under their final name only once they are whole."""

from __future__ import annotations

import hashlib
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.credentials import scrub
from amlstack.cli.logs.files import inside
from amlstack.provider import blobs
from amlstack.provider.arm import ArmClient, ArmError
from amlstack.provider.blobs import ContainerAccess
from amlstack.provider.resource import Call, Services
from amlstack.provider.runs import Runs
from amlstack.rpc import Host, ProviderError

if TYPE_CHECKING:
    import datetime as dt


ARTIFACTS: Final = "workspaceartifactstore"
"""The datastore in which Azure ML keeps what a run writes by itself."""
READER: Final = "Storage Blob Data Reader"
_PARALLEL: Final = 8
_ATTEMPTS: Final = 4
"""A download goes on this many times after its connection broke; the storage client repeats requests by itself."""
_LOOK: Final = 0.2
_SHORT: Final = re.compile(r"azureml://(?:.+/)?datastores/(?P<store>[^/]+)/paths/(?P<path>.*)", re.IGNORECASE)
_BLOB: Final = re.compile(r"(?P<account>https://[^/]+\.blob\.[^/]+)/(?P<container>[^/]+)/?(?P<path>.*)")


class UnreadableAddressError(Exception):
    """An output lies where this verb does not read; the message is for the user."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A blob, and where it goes.

    Attributes:
        container: Of the blob.
        blob: Its name.
        target: The file.
        size: Bytes.
        etag: Of its content.
        changed: When it was written last.
    """

    container: ContainerAccess
    blob: str
    target: Path
    size: int
    etag: str
    changed: dt.datetime

    @property
    def part(self) -> Path:
        """The file that holds its bytes until all are there: other content has another file."""
        mark = hashlib.sha256(f"{self.blob}\n{self.etag}".encode()).hexdigest()[:12]
        return self.target.with_name(f".{self.target.name[:200]}.{mark}.part")

    @property
    def is_there(self) -> bool:
        """True where an earlier download has brought this very content."""
        try:
            seen = self.target.stat()
        except OSError:
            return False
        return seen.st_size == self.size and int(seen.st_mtime) == int(self.changed.timestamp())


@dataclass
class Downloads:
    """Downloads of one workspace.

    Attributes:
        arm: Signed in to the resource manager.
        workspace: Its ARM id; empty where only addresses of blobs are asked for.
        report: Takes progress.
        done: Files that are there now, with those that were before.
        received: Bytes that came over the wire.
    """

    arm: ArmClient
    workspace: str
    report: Callable[[str], None]
    done: int = 0
    received: int = 0
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _accesses: dict[str, ContainerAccess] = field(default_factory=dict)
    _clients: dict[str, Any] = field(default_factory=dict)

    def artifacts(self, job: str, folder: Path) -> list[RemoteFile]:
        """The files that a run wrote by itself: ``user_logs/``, ``logs/``, ``outputs/``.

        Raises:
            ArmError, ProviderError, RefusedNameError: It cannot be listed.
        """
        return list(self._listed(self._access(ARTIFACTS), f"ExperimentRun/dcid.{job}/", folder))

    def at(self, uri: str, folder: Path) -> list[RemoteFile]:
        """The file or the files at an address of a named output.

        Raises:
            UnreadableAddressError: It is no address of blobs.
            ArmError, ProviderError, RefusedNameError: They cannot be listed.
        """
        if found := _SHORT.fullmatch(uri):
            access = self._access(found["store"])
        elif found := _BLOB.fullmatch(uri):
            access = ContainerAccess(f"{found['account']}/{found['container']}")
        else:
            raise UnreadableAddressError(f"It lies at {scrub(uri)}, and only blobs are downloaded.")
        path = found["path"].strip("/")
        files = list(self._listed(access, f"{path}/" if path else "", folder))
        return files or [
            each for each in self._listed(access, path, folder, whole=True) if each.blob.strip("/") == path
        ]

    def fetch(self, files: list[RemoteFile]) -> None:
        """Downloads files, several at once; what is there already is left.

        Raises:
            ProviderError: One could not be downloaded. The others that are whole stay, and halves are gone on with.
        """
        work: queue.SimpleQueue[RemoteFile] = queue.SimpleQueue()
        results: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        for file in files:
            work.put(file)

        def run() -> None:
            while not self._cancelled.is_set():
                try:
                    file = work.get_nowait()
                except queue.Empty:
                    return
                try:
                    self._one(file)
                except Exception as error:  # noqa: BLE001 - shown to the person by the caller
                    results.put(error)
                else:
                    results.put(None)

        for _ in range(min(_PARALLEL, len(files))):
            threading.Thread(target=run, daemon=True).start()
        try:
            for _ in files:
                if (failure := results.get()) is not None:
                    raise _explained(failure)
                self.done += 1
        finally:
            self._cancelled.set()
        self._cancelled = threading.Event()

    def _one(self, file: RemoteFile) -> None:
        if file.is_there:
            return
        file.target.parent.mkdir(parents=True, exist_ok=True)
        if not self._resume(file):
            return
        os.utime(file.part, (file.changed.timestamp(), file.changed.timestamp()))
        file.part.replace(file.target)

    def _resume(self, file: RemoteFile) -> bool:
        """Brings what is missing of a file; False where the work has ended before, and a half is there."""
        from azure.core import MatchConditions
        from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError

        for attempt in range(_ATTEMPTS):
            with file.part.open("ab") as out:
                there = out.tell()
                if there >= file.size:
                    out.truncate(file.size)
                    return True
                try:
                    stream = self._client(file.container).download_blob(
                        file.blob, offset=there, etag=file.etag, match_condition=MatchConditions.IfNotModified
                    )
                    for part in stream.chunks():
                        out.write(part)
                        with self._lock:
                            self.received += len(part)
                        if self._cancelled.is_set():
                            return False
                except (ServiceRequestError, ServiceResponseError, HttpResponseError) as error:
                    if getattr(error, "status_code", None) == 416 and file.size == 0:
                        return True
                    # A body that was cut is an HttpResponseError without an answer, and no ServiceResponseError.
                    if getattr(error, "response", None) is not None or attempt == _ATTEMPTS - 1:
                        raise
                    self.report(f"the connection was lost at {file.target.name}, going on with it")
        if file.part.stat().st_size != file.size:
            raise ProviderError(
                f"{file.blob} ended at {file.part.stat().st_size} of {file.size} bytes. The same again goes on."
            )
        return True

    def _listed(
        self, access: ContainerAccess, prefix: str, folder: Path, *, whole: bool = False
    ) -> Iterator[RemoteFile]:
        from azure.core.exceptions import AzureError

        try:
            for blob in self._client(access).list_blobs(name_starts_with=prefix, include=["metadata"]):
                name = str(blob.name)
                relative = name.rsplit("/", 1)[-1] if whole else name.removeprefix(prefix)
                is_folder = (blob.metadata or {}).get("hdi_isfolder") == "true" or not relative or name.endswith("/")
                if not is_folder:
                    target = inside(folder, relative)
                    yield RemoteFile(access, name, target, int(blob.size or 0), str(blob.etag), blob.last_modified)
        except AzureError as error:
            raise _explained(error) from None

    def _access(self, datastore: str) -> ContainerAccess:
        if datastore not in self._accesses:
            self._accesses[datastore] = blobs.datastore_access(self._services, self.workspace, datastore)
        return self._accesses[datastore]

    def _client(self, access: ContainerAccess) -> Any:
        with self._lock:
            if access.url not in self._clients:
                self._clients[access.url] = blobs.open_container(self._services, Call(urn=""), access)
            return self._clients[access.url]

    @property
    def _services(self) -> Services:
        return Services(self.arm, Runs(self.arm), ProgressHost(self.report), threading.Event())


class ProgressHost(Host):
    """Takes what the provider's resources and clients say of their work, in the place of the engine."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self._report = report
        self._shown = ""

    def _log(self, severity: str, message: str, urn: str, *, ephemeral: bool = False) -> None:
        text = self.clean(message, urn).replace("the next `up`", "the same command")
        if severity == "DEBUG" or (ephemeral and (text == self._shown or text.startswith("submitted "))):
            return
        self._shown = text
        self._report(f"warning: {text}" if severity == "WARNING" else text)


def _explained(error: Exception) -> Exception:
    """An error of the storage as a sentence; those of ours as they are."""
    if isinstance(error, ProviderError | ArmError):
        return error
    if isinstance(error, OSError):
        return ProviderError(f"{error.filename or 'A file'} cannot be written: {error.strerror or error}")
    if getattr(error, "status_code", None) in (401, 403):
        return ProviderError(
            f"The storage does not let you read ({scrub(str(error)).splitlines()[0][:200]}). Whoever downloads needs "
            f"the role `{READER}` on the storage account."
        )
    return ProviderError(f"The download failed: {scrub(str(error)).splitlines()[0][:300] or type(error).__name__}")
