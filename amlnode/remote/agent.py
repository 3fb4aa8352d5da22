"""A node that runs the commands of the first node, until all is over.

One thread: children are to die with it, and the kernel counts the thread that started them.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from amlnode.processes import adopt_orphans, descendants, die_with_parent, kill_below, reap_one
from amlnode.rank import NodeError
from amlnode.remote.command_lines import pkill_pattern
from amlnode.remote.hub import PATIENCE, Connection, HungUpError, proof

PAUSE = 0.2
"""Seconds between two attempts to reach the first node, which may start later."""

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


class CommandAgent:
    """One node.

    Args:
        host, port: Where the first node's hub is.
        job: Name of the run.
        node: This node's number.
        address: At which the others reach this node; empty for the one that it dials from.
    """

    def __init__(self, host: str, port: int, job: str, node: int, address: str = "") -> None:
        self.host, self.port, self.job, self.node, self.address = host, port, job, node, address
        self.selector = selectors.DefaultSelector()
        self.running: list[Running] = []

    def serve(self, wait: float) -> int:
        """Run commands until the first node sends that all is over: 0. When it is gone without that: 1.

        Args:
            wait: Seconds that the first node may come later.

        Raises:
            NodeError: It cannot be reached.
        """
        adopt_orphans()
        reader, writer = os.pipe()
        for end in (reader, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, _leave)
        self.selector.register(reader, selectors.EVENT_READ, "wake")
        try:
            idle = self._dial(wait)
            while True:
                # A command may have come together with the greeting: no selector would show it again.
                events = () if idle.buffered() else self.selector.select(self._due())
                readable = idle.buffered()
                for key, _ in events:
                    if key.data == "wake":
                        os.read(reader, 4096)
                    elif key.data is None:
                        readable = True
                    else:
                        key.data.handle(key)
                if readable:
                    request = self._request(idle)
                    if request is None or "over" in request:
                        return 0 if request else 1
                    line, idle = idle, self._dial(PATIENCE)
                    self._run(request, line)
                for one in tuple(self.running):
                    if one.ended():
                        self.running.remove(one)
        finally:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            wipe()

    def _due(self) -> float | None:
        deadlines = [one.kill_at for one in self.running if one.kill_at is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _dial(self, wait: float) -> Connection:
        """A new connection, on which the next command will come."""
        until = time.monotonic() + wait
        reason: object = "no answer"
        while True:
            try:
                line = Connection(socket.create_connection((self.host, self.port), timeout=max(1.0, wait)))
                theirs, ours = str(line.receive().get("challenge")), secrets.token_hex(16)
                mine = proof(self.job, theirs, self.node)
                line.send(challenge=ours, proof=mine, node=self.node, address=self.address)
                if hmac.compare_digest(str(line.receive().get("proof")), proof(self.job, ours)):
                    line.link.settimeout(None)
                    self.selector.register(line.link, selectors.EVENT_READ, None)
                    return line
                reason = "another job listens there"
                line.close()
            except (OSError, HungUpError) as error:
                reason = error
            if time.monotonic() >= until:
                break
            time.sleep(PAUSE)
        raise NodeError(
            f"Node {self.node} could not reach node 0 at {self.host}:{self.port} within {wait:g} s ({reason})",
            "The first node starts the ranks of all nodes",
            "See node 0's log: it may have failed, or started later than --wait; else a network rule closes the port.",
        )

    def _request(self, line: Connection) -> dict[str, Any] | None:
        """The first node's next request; None when it is gone."""
        self.selector.unregister(line.link)
        with contextlib.suppress(HungUpError):
            return line.receive()
        return None

    def _run(self, request: dict[str, Any], line: Connection) -> None:
        command = str(request["run"])
        pattern = pkill_pattern(command)
        if pattern is not None:
            self._kill(pattern, line)
            return
        # Folders of the first node in a command mean this node's own: a job's code may lie elsewhere on each.
        command = command.replace(str(request["folder"]), str(Path.cwd())) if request["folder"] else command
        self.running.append(Running(command, line, self.selector))

    def _kill(self, pattern: str, line: Connection) -> None:
        """Do the work of ``pkill -f`` among the processes that this node's commands have started."""
        found = 0
        for pid in descendants(os.getpid(), spare=-1):
            with contextlib.suppress(OSError, re.error):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if re.search(pattern, words):
                    os.kill(pid, signal.SIGTERM)
                    found += 1
        with contextlib.suppress(HungUpError):
            line.send(code=0 if found else 1)
        line.close()


def wipe() -> None:
    """Kill everything below this process, which adopts orphans, and wait until it is gone."""
    while True:
        kill_below(-1)
        if not reap_one(-1):
            return


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)


def main(words: list[str]) -> int:
    """``python -m amlnode.remote.agent HOST PORT JOB ADDRESS``: the first node runs commands as the others do."""
    die_with_parent()
    return CommandAgent(words[0], int(words[1]), words[2], 0, words[3]).serve(PATIENCE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
