"""Blobs of a workspace's storage: containers and those behind datastores, and files of this machine sent into them.

Azure ML gives every upload a container of its own, with a SAS for that container alone. Reading a file of an earlier
upload takes the caller's own right to read blobs (`Storage Blob Data Reader`). The storage checks the content itself
when it copies; what this machine keeps of its uploads only says where to look.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import hashlib
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from amlstack.base import api_versions, paths
from amlstack.base.credentials import scrub
from amlstack.base.files import Kept
from amlstack.base.findings import errors
from amlstack.provider.arm import THROTTLED, ArmError, InterruptedWaitError, Response, exchange, pause
from amlstack.provider.arm.exchange import THROTTLED_PAUSE, THROTTLED_SECONDS
from amlstack.rpc import ErrorCode, ProviderError

if TYPE_CHECKING:
    from amlstack.provider.resource import Call, Services
    from amlstack.snapshot import File, Snapshot

AT_ONCE: Final = 8 * 1024 * 1024
"""Bytes of a file that is sent with one request, out of memory."""
_BLOCK: Final = 4 * 1024 * 1024
_RETRIES: Final = 5
_READS: Final = frozenset({"GET", "HEAD"})
BACKOFF: Final = (1, 2)
"""Seconds before a block is sent again: the first number, and the base of the power that is added each time."""
JITTER: Final = 1
"""Seconds by which that varies, so that parallel blocks do not come back together."""


STORAGE: Final = "https://storage.azure.com"
"""Whom a token for blobs is for, in every cloud."""
WRITER: Final = "Storage Blob Data Contributor"


@dataclass(frozen=True, slots=True)
class ContainerAccess:
    """A container, and what opens it: a signature, an account's key, or else the caller's own right.

    Attributes:
        url: Without a signature.
        signature: The query that opens it; empty for none.
        key: Of the account; empty for none.
    """

    url: str
    signature: str = field(default="", repr=False)
    key: str = field(default="", repr=False)

    @property
    def is_signed(self) -> bool:
        """True where its address opens it."""
        return bool(self.signature)


def remedy_of(error: Exception) -> str:
    """The remedy where the caller itself has no right to write blobs; empty for other errors."""
    if getattr(error, "status_code", None) not in (401, 403):
        return ""
    return f". Whoever deploys needs the role `{WRITER}` on the storage account"


def open_container(services: Services, call: Call, access: ContainerAccess) -> Any:
    """A client of a container, with the storage client's own retries.

    Args:
        services: The engine's log and its wish to end.
        call: Whose progress it is.
        access: The container.
    """
    exchange.load_azure_core()
    with exchange.LOADING:  # 0.15 s, needed for an upload only
        from azure.core.pipeline.transport import RequestsTransport  # noqa: PLC0415
        from azure.storage.blob import ContainerClient, ExponentialRetry  # noqa: PLC0415

    cancelled = services.cancelled

    class Transport(RequestsTransport):  # type: ignore[misc]  # it is loaded late, and has no type then
        """Sends nothing more once the engine wants to end; reads again what was throttled, as the client does not."""

        def send(self, request: Any, **options: Any) -> Any:
            waited = 0.0
            while True:
                if cancelled.is_set():
                    raise InterruptedWaitError
                answer = super().send(request, **options)
                if answer.status_code != THROTTLED or request.method not in _READS:
                    return answer
                headers = {name.lower(): value for name, value in answer.headers.items()}
                seconds = Response(THROTTLED, {}, headers).retry_after or THROTTLED_PAUSE
                waited += seconds
                if waited > THROTTLED_SECONDS:
                    return answer
                answer.internal_response.close()
                services.host.status(f"the storage asks to wait {seconds:.0f} s (429, too many requests)", call.urn)
                pause(seconds, cancelled)

    class Retries(ExponentialRetry):
        """The storage client's own retries, announced, with sleeps that can be interrupted."""

        def sleep(self, settings: Any, transport: Any) -> None:  # noqa: ARG002
            if seconds := self.get_backoff_time(settings):
                services.host.status(
                    f"the storage does not answer as it should; asking it again in {seconds:.0f} s", call.urn
                )
                pause(seconds, cancelled)

    initial, base = BACKOFF
    retries = Retries(initial_backoff=initial, increment_base=base, retry_total=_RETRIES, random_jitter_range=JITTER)
    credential = None if access.is_signed else access.key or services.arm.credential
    return ContainerClient.from_container_url(
        f"{access.url}?{access.signature}" if access.is_signed else access.url,
        credential=credential,
        transport=exchange.opened(Transport()),
        retry_policy=retries,
        max_single_put_size=AT_ONCE,
        max_block_size=_BLOCK,
    )


_ACCOUNTS = "providers/Microsoft.Storage/storageAccounts"
_CONTAINERS = {"AzureBlob": "containerName", "AzureDataLakeGen2": "filesystem"}
"""Types that hold blobs, with the property that names the container."""
_OWN = frozenset({"None", "AccountKey", "Sas"})


def datastore_access(services: Services, workspace: str, datastore: str) -> ContainerAccess:
    """The container of a datastore, opened as azure-ai-ml opens it.

    One that keeps a key or a signature hands it out; at one that goes by identities the caller's own right counts.

    Args:
        services: For requests to the workspace.
        workspace: ARM id of the workspace.
        datastore: Name of the datastore.

    Raises:
        ArmError: The workspace cannot be asked.
        ProviderError: There is no such datastore, or it holds no blobs.
    """
    place = f"{workspace}/datastores/{datastore}"
    answer = services.arm.get(place, allow=(404,))
    if answer.status == 404:
        services.runs.require_workspace(workspace)
        raise ProviderError(f"the workspace has no datastore {datastore}")
    properties: dict[str, Any] = answer.body["properties"]
    kind = str(properties.get("datastoreType"))
    if kind not in _CONTAINERS:
        raise ProviderError(
            f"the datastore {datastore} is of the type {kind}; data of this machine go to one of "
            f"{' or '.join(_CONTAINERS)}"
        )
    url = f"{_account(services, workspace, properties)}/{properties[_CONTAINERS[kind]]}"
    credentials = str((properties.get("credentials") or {}).get("credentialsType") or "None")
    if credentials == "None" or credentials not in _OWN:
        return ContainerAccess(url)
    secrets = services.arm.post(f"{place}/listSecrets", {}).body
    return ContainerAccess(url, str(secrets.get("sasToken") or "").lstrip("?"), str(secrets.get("key") or ""))


def _account(services: Services, workspace: str, properties: dict[str, Any]) -> str:
    """The address of a datastore's storage account: as the account has it where its id is known."""
    account = str(properties["accountName"])
    subscription, group = properties.get("subscriptionId"), properties.get("resourceGroup")
    known = f"/subscriptions/{subscription}/resourceGroups/{group}/{_ACCOUNTS}/{account}"
    if not subscription or not group:
        owner = services.arm.get(workspace, allow=(404,)).body
        known = str((owner.get("properties") or {}).get("storageAccount") or "") if isinstance(owner, dict) else ""
    if known.rpartition("/")[2].casefold() == account.casefold():
        # An account in a DNS zone of its own, or in another cloud, has another address than its name says.
        found = services.arm.get(known, api_versions.STORAGE, allow=(403, 404))
        endpoints = (found.body.get("properties") or {}).get("primaryEndpoints") or {} if found.status == 200 else {}
        if endpoints.get("blob"):
            return str(endpoints["blob"]).rstrip("/")
    protocol, endpoint = properties.get("protocol") or "https", properties.get("endpoint") or "core.windows.net"
    return f"{protocol}://{account}.blob.{endpoint}"


def unchanged(found: Snapshot, digest: str, what: str) -> Snapshot:
    """The files, when they still have the content that was planned.

    Args:
        found: The files as they are now.
        digest: The hash that was planned.
        what: The files, for the message.

    Raises:
        ProviderError: Something is wrong with the files, or they have changed.
    """
    if wrong := errors(found.findings):
        raise ProviderError("; ".join(str(finding) for finding in wrong))
    if found.hash != digest:
        raise ProviderError(
            f"{what} has changed since it was hashed ({digest[:10]}… is now {found.hash[:10]}…). "
            "Run `up` again while nothing writes to it",
            ErrorCode.ABORTED,
        )
    return found


LEAST_BYTES: Final = 4096
"""A smaller file is sent: a request for a copy is as long."""
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_UPLOADS: Final = 8
_VERSION: Final = "1"


@dataclass(frozen=True, slots=True)
class UploadSources:
    """The earlier uploads into one storage account.

    Attributes:
        account: Its address, as the workspace gives those of containers.
        kept: Where they are kept.
    """

    account: str
    kept: Kept

    @classmethod
    def in_container(cls, container: str) -> UploadSources:
        """Those of the account that a container is in; ``container`` is its address without a signature."""
        return cls(container.rstrip("/").rpartition("/")[0], Kept(paths.cache() / "uploads", _VERSION, _MOST_BYTES))

    def read(self) -> dict[str, str]:
        """The address of a blob, without a signature, by the SHA-256 of its content; of two, the newer."""
        found: dict[str, str] = {}
        for folder, names in self._uploads():
            found |= {digest: f"{folder}/{quote(name)}" for digest, name in names.items()}
        return found

    def add(self, folder: str, snapshot: Snapshot) -> None:
        """Keeps where the files of an upload are; the oldest uploads are forgotten.

        Args:
            folder: Address of the files' folder, without a signature.
            snapshot: The files.
        """
        names = {snapshot.digests[file.relative]: file.relative for file in snapshot.files if file.size >= LEAST_BYTES}
        if names:
            self.kept.write(self.account, [*self._uploads()[1 - _MOST_UPLOADS :], [folder, names]])

    def _uploads(self) -> list[tuple[str, Mapping[str, str]]]:
        """From the oldest to the newest."""
        return self.kept.read(self.account) or []


_PARALLEL: Final = 16
_STREAMS: Final = 4
"""Parallel blocks of one large file; small files are parallel among each other."""
_LARGE: Final = 4
"""Larger files that are sent at the same time. With `_PARALLEL` small ones they need less than 256 MiB of memory."""
_MOST_COPIED: Final = 5_000 * 1024 * 1024
"""Bytes: the storage's own bound for a copy."""
_SHOWN: Final = 1.0
"""Seconds between two messages about progress."""
_LOOK: Final = 0.2
"""Seconds between two looks at whether the engine wants to end."""


def upload(services: Services, call: Call, target: ContainerAccess, folder: str, snapshot: Snapshot) -> None:
    """Sends every file, with progress as engine status messages. The bytes of a content are sent once.

    Files with the content of another one of the snapshot are copied by the storage. Those that an earlier upload of
    this machine has sent are copied, too, as long as the caller may read them there; else they are sent.

    Args:
        services: The engine's log and its wish to end.
        call: Whose progress it is.
        target: The container.
        folder: The files' folder in it.
        snapshot: The files.

    Raises:
        ProviderError: A file could not be sent, or the engine wants to end. Nothing is registered then.
    """
    sources = UploadSources.in_container(target.url)
    try:
        with open_container(services, call, target) as container:
            work = _Upload(services, call, container, folder, snapshot, sources.read(), is_signed=target.is_signed)
            firsts = {snapshot.digests[file.relative]: file for file in reversed(snapshot.files)}
            work.send([file for file in snapshot.files if firsts[snapshot.digests[file.relative]] is file])
            work.firsts = firsts
            work.send([file for file in snapshot.files if firsts[snapshot.digests[file.relative]] is not file])
    except InterruptedWaitError:
        raise ProviderError(
            "interrupted while uploading; nothing was registered, and the next `up` uploads again", ErrorCode.ABORTED
        ) from None
    except Exception as error:  # noqa: BLE001  whatever the storage client raises may quote the signed URL
        remedy = "" if target.is_signed else remedy_of(error)
        raise ProviderError(f"the upload failed: {scrub(str(error))[:500]}{remedy}", ErrorCode.UNAVAILABLE) from None
    sources.add(f"{target.url.rstrip('/')}/{folder}", snapshot)


class _Upload:
    """The files of one snapshot on their way.

    Attributes:
        firsts: By content, the file that was sent with it; empty until all of them are there.
    """

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        services: Services,
        call: Call,
        container: Any,
        folder: str,
        snapshot: Snapshot,
        sources: Mapping[str, str],
        *,
        is_signed: bool,
    ) -> None:
        self._services, self._call = services, call
        self._container, self._folder, self._snapshot = container, folder, snapshot
        self._sources = dict(sources)
        self._is_signed = is_signed
        self._token = functools.cache(lambda: services.arm.token(STORAGE))
        self._large = threading.BoundedSemaphore(_LARGE)
        self._sent: dict[str, int] = {}
        self._done = 0
        self._shown = time.monotonic()
        self.firsts: Mapping[str, File] = {}

    def send(self, batch: Sequence[File]) -> None:
        """Several files at once, in daemon threads: one whose connection hangs must not keep an interrupted upload."""
        files: queue.SimpleQueue[File] = queue.SimpleQueue()
        results: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        stop = threading.Event()
        for file in batch:
            files.put(file)

        def work() -> None:
            while not stop.is_set():
                try:
                    file = files.get_nowait()
                except queue.Empty:
                    return
                results.put(self._attempt(file))

        for _ in range(min(_PARALLEL, len(batch))):
            threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
        try:
            for _ in batch:
                if (error := self._next(results)) is not None:
                    raise error
                self._done += 1
                self._show()
        finally:
            stop.set()

    def _next(self, results: queue.SimpleQueue[BaseException | None]) -> BaseException | None:
        while not self._services.cancelled.is_set():
            try:
                return results.get(timeout=_LOOK)
            except queue.Empty:
                self._show()
        raise InterruptedWaitError

    def _show(self) -> None:
        """Progress, once a second and at the end."""
        total, now = len(self._snapshot.files), time.monotonic()
        if self._done == total:
            self._services.host.status(f"uploaded {total} of {total} files", self._call.urn)
        elif now - self._shown >= _SHOWN:
            self._shown = now
            sizes = f"{sum(list(self._sent.values())) / 1e6:.0f} MB sent of {self._snapshot.bytes / 1e6:.0f} MB"
            self._services.host.status(f"uploaded {self._done} of {total} files, {sizes}", self._call.urn)

    def _attempt(self, file: File) -> BaseException | None:
        """Copies or sends one file; what went wrong, if something did."""
        try:
            if file.size < LEAST_BYTES or not self._copied(file):
                self._send(file)
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            return error
        return None

    def _copied(self, file: File) -> bool:
        """True where the storage has made the file from one of the same content that it has already."""
        from azure.core.exceptions import HttpResponseError  # noqa: PLC0415 - as in `client`

        digest = self._snapshot.digests[file.relative]
        options: dict[str, Any] = {}
        if (first := self.firsts.get(digest)) is not None:
            source = self._blob(first).url  # with the signature, if there is one: it is for the whole container
            if not self._is_signed:
                options["source_authorization"] = f"Bearer {self._token()}"
        elif (source := self._sources.get(digest, "")) and _host(source) == _host(self._container.url):
            try:
                options["source_authorization"] = f"Bearer {self._token()}"
            except ArmError:
                self._sources.clear()
                return False
        if not source or file.size > _MOST_COPIED:
            return False
        with file.open() as stream:
            md5 = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).digest()
        try:
            self._blob(file).upload_blob_from_url(source, overwrite=True, source_content_md5=bytearray(md5), **options)
        except HttpResponseError as error:
            if options and error.status_code in (401, 403):
                self._sources.clear()  # nothing may be read there: not asked again
            return False
        return True

    def _send(self, file: File) -> None:
        def progress(sent: int, total: int | None) -> None:
            del total
            self._sent[file.relative] = sent

        with self._large if file.size > AT_ONCE else contextlib.nullcontext(), file.path.open("rb") as stream:
            self._blob(file).upload_blob(
                stream, length=file.size, overwrite=True, max_concurrency=_STREAMS, progress_hook=progress
            )

    def _blob(self, file: File) -> Any:
        return self._container.get_blob_client(f"{self._folder}/{file.relative}")


def _host(url: str) -> str:
    return urlsplit(url).netloc
