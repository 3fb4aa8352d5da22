"""Sends the files of a snapshot into the container that a workspace offers."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import hashlib
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from amlstack.base.redaction import scrub
from amlstack.provider.arm import ArmError, InterruptedWaitError
from amlstack.provider.blobs import client
from amlstack.provider.blobs.sources import LEAST_BYTES, UploadSources
from amlstack.rpc import ErrorCode, ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlstack.provider.resource import Call, Services
    from amlstack.snapshot import File, Snapshot

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


def upload(services: Services, call: Call, target: client.ContainerAccess, folder: str, snapshot: Snapshot) -> None:
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
    sources = UploadSources.of(target.url)
    try:
        with client.container(services, call, target) as container:
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
        remedy = "" if target.is_signed else client.remedy(error)
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
        self._token = functools.cache(lambda: services.arm.token(client.STORAGE))
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
        """Whether the storage has made the file from one of the same content that it has already."""
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

        with self._large if file.size > client.AT_ONCE else contextlib.nullcontext(), file.path.open("rb") as stream:
            self._blob(file).upload_blob(
                stream, length=file.size, overwrite=True, max_concurrency=_STREAMS, progress_hook=progress
            )

    def _blob(self, file: File) -> Any:
        return self._container.get_blob_client(f"{self._folder}/{file.relative}")


def _host(url: str) -> str:
    return urlsplit(url).netloc
