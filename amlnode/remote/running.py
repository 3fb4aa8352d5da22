"""One command under way on a node: its output and exit code go to the caller."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from amlnode.processes import die_with_parent
from amlnode.remote.hub import HungUpError

if TYPE_CHECKING:
    from amlnode.remote.hub import Connection

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL for a command whose caller is gone."""
_OWN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
_FAMILIES = ("OMPI_", "PMIX_", "PMI_", "MPI_LOCAL")


def environ() -> dict[str, str]:
    """This process's environment without its own place: the ranks that a launcher starts have others."""
    return {name: value for name, value in os.environ.items() if name not in _OWN and not name.startswith(_FAMILIES)}


class Running:
    """One command under way."""

    def __init__(self, command: str, line: Connection, selector: selectors.BaseSelector) -> None:
        self.line = line
        self.selector = selector
        self.kill_at: float | None = None
        shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
        self.process = subprocess.Popen(
            [shell, "-c", command],
            env=environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
        )
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, self)
        selector.register(line.link, selectors.EVENT_READ, self)

    def handle(self, key: selectors.SelectorKey) -> None:
        """Output goes to the caller; anything from there means that the caller is gone."""
        if key.fileobj is self.line.link:
            self.selector.unregister(self.line.link)
            self.abandon()
        else:
            self.carry(key)

    def carry(self, key: selectors.SelectorKey) -> bool:
        """Pass on the command's output; whether there may be more at once."""
        try:
            chunk = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return False
        if not chunk:
            self.selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
            return False
        try:
            self.line.send(out=chunk.decode("latin-1"), to=1 if key.fileobj is self.process.stdout else 2)
        except HungUpError:
            self.abandon()
        return True

    def abandon(self) -> None:
        """The caller is gone: end the command."""
        if self.kill_at is None:
            self.kill_at = time.monotonic() + GRACE
            self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """To the whole process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def ended(self) -> bool:
        """True where the command has ended; then the rest of its output and its exit code are passed on."""
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            self.signal(signal.SIGKILL)
            self.kill_at = time.monotonic() + GRACE
        code = self.process.poll()
        if code is None:
            return False
        # What it left behind in its group holds its pipes open and would never end by itself.
        self.signal(signal.SIGKILL)
        for key in tuple(self.selector.get_map().values()):
            if key.data is self and key.fileobj is not self.line.link:
                while self.carry(key):
                    pass
                with contextlib.suppress(KeyError, ValueError):
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(self.line.link)
        with contextlib.suppress(HungUpError):
            self.line.send(code=128 - code if code < 0 else code)
        self.line.close()
        return True
