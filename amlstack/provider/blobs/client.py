"""Microsoft's client of the blob storage, made so that it announces retries and ends when the engine wants to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.provider.arm import THROTTLED, InterruptedWaitError, Response, azure_core, pause
from amlstack.provider.arm.retries import THROTTLED_PAUSE, THROTTLED_SECONDS

if TYPE_CHECKING:
    from amlstack.provider.resource import Call, Services

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
        """Whether its address opens it."""
        return bool(self.signature)


def remedy(error: Exception) -> str:
    """What helps where the caller itself has no right to write blobs; empty for other errors."""
    if getattr(error, "status_code", None) not in (401, 403):
        return ""
    return f". Whoever deploys needs the role `{WRITER}` on the storage account"


def container(services: Services, call: Call, access: ContainerAccess) -> Any:
    """A client of a container, with the storage client's own retries.

    Args:
        services: The engine's log and its wish to end.
        call: Whose progress it is.
        access: The container.
    """
    azure_core.load()
    with azure_core.LOADING:  # 0.15 s, needed for an upload only
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
        transport=Transport(),
        retry_policy=retries,
        max_single_put_size=AT_ONCE,
        max_block_size=_BLOCK,
    )
