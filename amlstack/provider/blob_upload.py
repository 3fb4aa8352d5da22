"""Sends the files of a snapshot into the container that a workspace offers."""

from __future__ import annotations

import contextvars
import queue
import threading
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.redaction import scrub
from amlstack.provider.arm import InterruptedWaitError, pause
from amlstack.rpc import ErrorCode, ProviderError

if TYPE_CHECKING:
    from amlstack.provider.resource import Call, Services
    from amlstack.snapshot import File, Snapshot

_PARALLEL: Final = 16
_STREAMS: Final = 4
"""Parallel blocks of one large file; small files are parallel among each other."""
_RETRIES: Final = 5
BACKOFF: Final = (1, 2)
"""Seconds before a block is sent again: the first number, and the base of the power that is added each time."""
JITTER: Final = 1
"""Seconds by which that varies, so that parallel blocks do not come back together."""
_LOOK: Final = 0.2
"""Seconds between two looks at whether the engine wants to end."""


def upload(services: Services, call: Call, signed: str, folder: str, snapshot: Snapshot) -> None:
    """Sends every file, with progress as engine status messages.

    Args:
        services: The engine's log and its wish to end.
        call: Whose progress it is.
        signed: URL of the container, with its signature.
        folder: The files' folder in it.
        snapshot: The files.

    Raises:
        ProviderError: A file could not be sent, or the engine wants to end. Nothing is registered then.
    """
    try:
        with _container(services, call, signed) as container:
            _send(services, call, container, folder, snapshot)
    except InterruptedWaitError:
        raise ProviderError(
            "interrupted while uploading; nothing was registered, and the next `up` uploads again", ErrorCode.ABORTED
        ) from None
    except Exception as error:  # noqa: BLE001  whatever the storage client raises may quote the signed URL
        raise ProviderError(f"the upload failed: {scrub(str(error))[:500]}", ErrorCode.UNAVAILABLE) from None


def _container(services: Services, call: Call, signed: str) -> Any:
    # 0.15 s, needed for an upload only.
    from azure.core.pipeline.transport import RequestsTransport  # noqa: PLC0415
    from azure.storage.blob import ContainerClient, ExponentialRetry  # noqa: PLC0415

    cancelled = services.cancelled

    class Transport(RequestsTransport):  # type: ignore[misc]  # it is loaded late, and has no type then
        """Sends nothing more once the engine wants to end."""

        def send(self, request: Any, **options: Any) -> Any:
            if cancelled.is_set():
                raise InterruptedWaitError
            return super().send(request, **options)

    class Retries(ExponentialRetry):
        """The storage client's own retries, announced, with sleeps that can be interrupted."""

        def sleep(self, settings: Any, transport: Any) -> None:  # noqa: ARG002
            if seconds := self.get_backoff_time(settings):
                services.host.status(f"the storage does not take a file; sending it again in {seconds:.0f} s", call.urn)
                pause(seconds, cancelled)

    initial, base = BACKOFF
    retries = Retries(initial_backoff=initial, increment_base=base, retry_total=_RETRIES, random_jitter_range=JITTER)
    return ContainerClient.from_container_url(signed, transport=Transport(), retry_policy=retries)


def _send(services: Services, call: Call, container: Any, folder: str, snapshot: Snapshot) -> None:
    """Several files at once, in daemon threads: a file whose connection hangs must not keep an interrupted upload."""
    files: queue.SimpleQueue[File] = queue.SimpleQueue()
    results: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
    stop = threading.Event()
    for file in snapshot.files:
        files.put(file)

    def work() -> None:
        while not stop.is_set():
            try:
                file = files.get_nowait()
            except queue.Empty:
                return
            results.put(_sent(container, folder, file))

    for _ in range(min(_PARALLEL, len(snapshot.files))):
        threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
    try:
        for done in range(1, len(snapshot.files) + 1):
            if (error := _next(results, services.cancelled)) is not None:
                raise error
            services.host.status(f"uploaded {done} of {len(snapshot.files)} files", call.urn)
    finally:
        stop.set()


def _next(results: queue.SimpleQueue[BaseException | None], cancelled: threading.Event) -> BaseException | None:
    while not cancelled.is_set():
        try:
            return results.get(timeout=_LOOK)
        except queue.Empty:
            continue
    raise InterruptedWaitError


def _sent(container: Any, folder: str, file: File) -> BaseException | None:
    """Sends one file; what went wrong, if something did."""
    try:
        with file.path.open("rb") as stream:
            container.upload_blob(
                f"{folder}/{file.relative}", stream, length=file.size, overwrite=True, max_concurrency=_STREAMS
            )
    except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
        return error
    return None
