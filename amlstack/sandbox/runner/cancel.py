"""A request to end: SIGTERM, seen between two steps by a flag and while waiting by a pipe."""

from __future__ import annotations

import contextlib
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class CanceledError(Exception):
    """The job was cancelled while it was prepared."""


class Cancel:
    """Listens to SIGTERM from its creation on; one per process, in the main thread.

    Attributes:
        requested: Somebody asked for the end.
        fd: Becomes readable when that happens.
    """

    def __init__(self) -> None:
        self.requested = False
        self._raises = False
        self.fd, writer = os.pipe()
        for end in (self.fd, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._heard)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _heard(self, *_: Any) -> None:
        self.requested = True
        if self._raises:
            self._raises = False
            raise CanceledError

    def drain(self) -> None:
        """Empties the pipe."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    @contextmanager
    def interrupts(self) -> Iterator[None]:
        """Within it a request raises `CanceledError` at once, even out of a blocking call."""
        if self.requested:
            raise CanceledError
        self._raises = True
        try:
            yield
        finally:
            self._raises = False
