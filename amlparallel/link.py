"""One JSON object a line, over a socket or a pipe."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any, Dict, Protocol

Message = Dict[str, Any]


class Writer(Protocol):
    """The end to which a message is written."""

    def write(self, words: bytes, /) -> object:
        """Takes bytes."""

    def flush(self) -> object:
        """Sends them."""


class Reader(Protocol):
    """The end from which a message is read."""

    def readline(self) -> bytes:
        """One line; shorter at the end."""


def send(stream: Writer, **message: Any) -> None:
    """Writes one."""
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def receive(stream: Reader) -> Message | None:
    """Reads one; None where the other side has gone."""
    line = stream.readline()
    return json.loads(line) if line.endswith(b"\n") else None


class Timed:
    """Reads from a pipe, and waits no longer than it is asked to.

    Args:
        descriptor: The pipe's end; stays the caller's.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._heard = b""

    def receive(self, seconds: float) -> Message | None:
        """One message; None where the other side has gone.

        Raises:
            TimeoutError: None came in time.
        """
        until = time.monotonic() + seconds
        while b"\n" not in self._heard:
            if not select.select([self._descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError
            words = os.read(self._descriptor, 1 << 16)
            if not words:
                return None
            self._heard += words
        line, _, self._heard = self._heard.partition(b"\n")
        found: Message = json.loads(line)
        return found
