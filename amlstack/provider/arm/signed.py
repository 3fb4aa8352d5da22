"""Files behind signed addresses, read from a place on: logs that grow. No token is ever sent there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from amlstack.base.redaction import scrub
from amlstack.provider.arm import azure_core
from amlstack.provider.arm.answers import ArmError, Response, no_answer
from amlstack.provider.arm.retries import Attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from azure.core.pipeline.transport import RequestsTransport

CHUNK: Final = 4 * 1024 * 1024
"""Bytes that are asked for at once."""
_BEYOND: Final = 416
"""The status for a range that begins at the end of the file, or after it."""


class SignedFiles:
    """Reads them, over connections that are kept. Safe for use by several threads.

    Args:
        ca: PEM file of the authorities to trust; those of the environment when not given.
        cancelled: Ends every wait when it is set.
        announce: Takes the messages of requests that wait.
    """

    def __init__(
        self,
        ca: str | None = None,
        *,
        cancelled: threading.Event | None = None,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._ca, self._cancelled, self._announce = ca, cancelled, announce
        self._lock = threading.Lock()
        self._transport: RequestsTransport | None = None

    def read(self, url: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes of a file from a place on, part by part, to its end as it is now.

        Raises:
            ArmError: It cannot be read; a signature that has ended is a 403, a file that is gone a 404.
        """
        if urlsplit(url).scheme != "https":
            raise ArmError(0, "EndpointInvalid", f"{scrub(url).partition('?')[0]} is no https address")
        while True:
            status, part = self._part(url, offset)
            if status == _BEYOND:
                return
            if status != 206:  # all of it, whatever was asked for
                yield part[offset:]
                return
            if part:
                yield part
            offset += len(part)
            if len(part) < CHUNK:
                return

    def _part(self, url: str, offset: int) -> tuple[int, bytes]:
        content: list[bytes] = []

        def once() -> tuple[Response, str]:
            azure_core.load()
            from azure.core.exceptions import AzureError  # noqa: PLC0415
            from azure.core.rest import HttpRequest  # noqa: PLC0415

            headers = {"Range": f"bytes={offset}-{offset + CHUNK - 1}"}
            try:
                raw = self._connections().send(HttpRequest("GET", url, headers=headers))
                content[:] = [raw.read()]
            except (AzureError, OSError) as error:
                raise no_answer(url, error) from None
            return Response(raw.status_code, {}, {name.lower(): value for name, value in raw.headers.items()}, url), ""

        words = f"GET {urlsplit(url).path.rpartition('/')[2]}"
        response, _ = Attempts(words, False, self._cancelled, self._announce).run(once)
        if response.status >= 400 and response.status != _BEYOND:
            raise ArmError(response.status, f"Http{response.status}", f"{words} was answered with {response.status}")
        return response.status, content[0]

    def _connections(self) -> RequestsTransport:
        with self._lock:
            if self._transport is None:
                self._transport = azure_core.transport(self._ca)
            return self._transport
