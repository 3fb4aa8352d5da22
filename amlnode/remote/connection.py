"""JSON lines on a socket."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

SOCKET = "AMLNODE_SOCKET"
"""Variable: path of the socket at which `ssh` and `pdsh` of the first node hand in commands."""
LONGEST = 1 << 20
PATIENCE = 60.0
"""Seconds within which a node that lives answers, however busy it is."""


def proof(job: str, *words: object) -> str:
    """Shows that the sender knows the job's name, without naming it: a host that merely connects learns nothing.

    Args:
        job: Name of the run.
        words: What the proof is for: the other side's challenge, which it has never used before, and what is claimed.
    """
    return hmac.new(job.encode(), json.dumps([str(word) for word in words]).encode(), hashlib.sha256).hexdigest()


class HungUpError(Exception):
    """The other side is gone, or uses another protocol."""


class Connection:
    """One connection, read and written a JSON object at a time."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._pending = b""

    def fileno(self) -> int:
        """For selectors."""
        return self.link.fileno()

    def send(self, **what: Any) -> None:
        """Send one object.

        Raises:
            HungUpError: The other side is gone.
        """
        try:
            self.link.sendall(json.dumps(what).encode() + b"\n")
        except OSError as error:
            raise HungUpError(str(error)) from None

    def receive(self) -> dict[str, Any]:
        """The next object.

        Raises:
            HungUpError: The connection ended, or what came is none.
        """
        while b"\n" not in self._pending:
            try:
                more = self.link.recv(1 << 16)
            except OSError as error:
                raise HungUpError(str(error)) from None
            if not more or len(self._pending) > LONGEST:
                raise HungUpError("hung up")
            self._pending += more
        text, _, self._pending = self._pending.partition(b"\n")
        try:
            found = json.loads(text)
        except ValueError as error:
            raise HungUpError(str(error)) from None
        if not isinstance(found, dict):
            raise HungUpError(text.decode(errors="replace"))
        return found

    def buffered(self) -> bool:
        """True where an object has come completely: a selector does not see it any more."""
        return b"\n" in self._pending

    def close(self) -> None:
        """Hang up; a peer that waits sees it at once."""
        self.link.close()
