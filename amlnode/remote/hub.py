"""The first node's hub: the job's nodes wait here for commands, `ssh` and `pdsh` hand theirs in at a local socket.

Nodes dial in, as the training itself does, so that a node runs only the commands of its own job's address.
Each connection carries JSON lines of one command; a node has always one waiting. When the caller goes away, the
connection is closed, and the node ends the command.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import queue
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

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


@contextlib.contextmanager
def short(local: Path) -> Iterator[str]:
    """A path of a socket that a call takes: 107 bytes at most, and folders for temporary files may lie deeper."""
    folder = os.open(local.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{local.name}"
    finally:
        os.close(folder)


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


class Hub:
    """Runs in threads of the first node's process.

    Args:
        server: Listens for the nodes.
        local: Path of the socket for `ssh` and `pdsh`, in a folder that is this user's alone.
        job: Name of the run: nodes prove that they know it, so that two jobs that share a port never mix.
        names: The nodes' names, by number.
    """

    def __init__(self, server: socket.socket, local: Path, job: str, names: Sequence[str]) -> None:
        self.job = job
        self.names = tuple(names)
        self._waiting: list[queue.Queue[Connection]] = [queue.Queue() for _ in names]
        self._addresses: dict[int, str] = {}
        self._peers: dict[int, str] = {}
        self._dismissed: set[int] = set()
        self._over = threading.Event()
        self._changed = threading.Condition()
        self._local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with short(local) as path:
            self._local.bind(path)
        self._local.listen(64)
        for listener, serve in ((server, self._admit), (self._local, self._relay)):
            threading.Thread(target=self._accept, args=(listener, serve), daemon=True).start()

    def missing(self, wait: float) -> tuple[str, ...]:
        """Waits until every other node is there; the names of those that are not after ``wait`` seconds."""
        until = time.monotonic() + wait
        others = range(1, len(self.names))
        with self._changed:
            while set(others) - self._addresses.keys() and time.monotonic() < until:
                self._changed.wait(until - time.monotonic())
            return tuple(self.names[number] for number in others if number not in self._addresses)

    def end(self) -> None:
        """Send every node that all is over, and wait until each has received it."""
        self._over.set()
        for number, waiting in enumerate(self._waiting):
            with contextlib.suppress(queue.Empty):
                while True:
                    self._dismiss(number, waiting.get_nowait())
        until = time.monotonic() + PATIENCE
        with self._changed:
            while self._addresses.keys() - self._dismissed and time.monotonic() < until:
                self._changed.wait(until - time.monotonic())
        self._local.close()

    def _accept(self, listener: socket.socket, serve: Callable[[Connection], None]) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except socket.timeout:
                continue
            except OSError:
                return
            link.settimeout(None)
            threading.Thread(target=self._served, args=(Connection(link), serve), daemon=True).start()

    @staticmethod
    def _served(line: Connection, serve: Callable[[Connection], None]) -> None:
        # Another protocol is ignored.
        with contextlib.suppress(HungUpError, OSError, KeyError, TypeError, ValueError):
            serve(line)
            return
        line.close()

    def _admit(self, line: Connection) -> None:
        """A node has come, to wait for its next command."""
        line.link.settimeout(PATIENCE)
        challenge = secrets.token_hex(16)
        line.send(challenge=challenge)
        hello = line.receive()
        number = int(hello["node"])
        known = hmac.compare_digest(str(hello["proof"]), proof(self.job, challenge, number))
        if not known or not 0 <= number < len(self.names) or not self._same_peer(number, line):
            line.close()
            return
        line.send(proof=proof(self.job, hello["challenge"]))
        line.link.settimeout(None)
        if self._over.is_set():
            self._dismiss(number, line)
            return
        self._waiting[number].put(line)
        with self._changed:
            self._addresses.setdefault(number, str(hello.get("address") or line.link.getpeername()[0]))
            self._changed.notify_all()
        if self._over.is_set():  # it came while `end` went through those that wait
            with contextlib.suppress(queue.Empty):
                self._dismiss(number, self._waiting[number].get_nowait())

    def _same_peer(self, number: int, line: Connection) -> bool:
        """True where a node dials from where it first did: another host that knows the job's name is not that node."""
        peer = str(line.link.getpeername()[0])
        with self._changed:
            return self._peers.setdefault(number, peer) == peer

    def _dismiss(self, number: int, line: Connection) -> None:
        with contextlib.suppress(HungUpError):
            line.send(over=True)
        line.close()
        with self._changed:
            self._dismissed.add(number)
            self._changed.notify_all()

    def _relay(self, line: Connection) -> None:
        """A program hands in a command for a node."""
        request = line.receive()
        try:
            number = self.names.index(request["node"])
        except ValueError:
            line.send(code=255, why=f"there is no node {request['node']}; there are {', '.join(self.names)}")
            line.close()
            return
        if request["run"] == "hostname -I":
            # Not the node's own name: the address at which the others reach it.
            line.send(out=self._addresses[number] + "\n", to=1)
            line.send(code=0)
            line.close()
            return
        try:
            node = self._waiting[number].get(timeout=PATIENCE)
        except queue.Empty:
            line.send(code=255, why=f"{request['node']} is gone")
            line.close()
            return
        try:
            node.send(run=request["run"], folder=request["folder"])
            self._pass_on(node, line)
        except HungUpError:
            with contextlib.suppress(HungUpError):
                line.send(code=255, why=f"{request['node']} is gone")
        finally:
            node.close()
            line.close()

    @staticmethod
    def _pass_on(node: Connection, line: Connection) -> None:
        """Passes all messages of the node to the caller, until the exit code or until the caller is gone."""
        while True:
            ready, _, _ = select.select([node, line], [], [])
            if line in ready:
                return
            message = node.receive()
            while True:
                line.send(**message)
                if "code" in message:
                    return
                if not node.buffered():
                    break
                message = node.receive()
