"""Files of this machine whose hash a resource was planned with, read once more before they are sent.

Blobs of a storage account by content, as this machine's earlier uploads left them.

Azure ML gives every upload a container of its own, with a SAS for that container alone. Reading a file of an earlier
upload takes the caller's own right to read blobs (`Storage Blob Data Reader`). The storage checks the content itself
when it copies; what is kept here only says where to look.

Sends the files of a snapshot into the container that a workspace offers.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import hashlib
import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from amlstack.base import paths
from amlstack.base.credentials import scrub
from amlstack.base.files import Kept
from amlstack.base.findings import errors
from amlstack.provider.arm import ArmError, InterruptedWaitError
from amlstack.provider.blobs import containers
from amlstack.rpc import ErrorCode, ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlstack.provider.resource import Call, Services
    from amlstack.snapshot import File, Snapshot


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


def upload(services: Services, call: Call, target: containers.ContainerAccess, folder: str, snapshot: Snapshot) -> None:
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
        with containers.container(services, call, target) as container:
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
        remedy = "" if target.is_signed else containers.remedy(error)
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
        self._token = functools.cache(lambda: services.arm.token(containers.STORAGE))
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

        with (
            self._large if file.size > containers.AT_ONCE else contextlib.nullcontext(),
            file.path.open("rb") as stream,
        ):
            self._blob(file).upload_blob(
                stream, length=file.size, overwrite=True, max_concurrency=_STREAMS, progress_hook=progress
            )

    def _blob(self, file: File) -> Any:
        return self._container.get_blob_client(f"{self._folder}/{file.relative}")


def _host(url: str) -> str:
    return urlsplit(url).netloc
