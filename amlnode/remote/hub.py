"""The first node's switchboard: the job's nodes wait here for commands, `ssh` and `pdsh` hand theirs in at the door.

Nodes dial in, as the training itself does, so that a node runs only what the address says that its own job was given.
Each connection carries one command; a node has always one waiting. When whoever asked goes away, the connection is
closed, and the node ends the command.
"""

from __future__ import annotations

import contextlib
import hmac
import queue
import secrets
import select
import socket
import threading
import time
from typing import TYPE_CHECKING

from amlnode.remote.wire import PATIENCE, HungUpError, Line, proof

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


class Hub:
    """Runs in threads of the first node's process.

    Args:
        server: Listens for the nodes.
        door: Path of the socket for `ssh` and `pdsh`, in a folder that is this user's alone.
        job: Name of the run: nodes prove that they know it, so that two jobs that share a port never mix.
        names: The nodes' names, by number.
    """

    def __init__(self, server: socket.socket, door: Path, job: str, names: Sequence[str]) -> None:
        self.job = job
        self.names = tuple(names)
        self._waiting: list[queue.Queue[Line]] = [queue.Queue() for _ in names]
        self._addresses: dict[int, str] = {}
        self._peers: dict[int, str] = {}
        self._told: set[int] = set()
        self._over = threading.Event()
        self._changed = threading.Condition()
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind(str(door))
        self._door.listen(64)
        for listener, serve in ((server, self._welcome), (self._door, self._asked)):
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
        """Tell every node that all is over, and wait until they have heard it."""
        self._over.set()
        for number, waiting in enumerate(self._waiting):
            with contextlib.suppress(queue.Empty):
                while True:
                    self._dismiss(number, waiting.get_nowait())
        until = time.monotonic() + PATIENCE
        with self._changed:
            while self._addresses.keys() - self._told and time.monotonic() < until:
                self._changed.wait(until - time.monotonic())
        self._door.close()

    def _accept(self, listener: socket.socket, serve: Callable[[Line], None]) -> None:
        while True:
            try:
                link, _ = listener.accept()
            except socket.timeout:
                continue
            except OSError:
                return
            link.settimeout(None)
            threading.Thread(target=self._served, args=(Line(link), serve), daemon=True).start()

    @staticmethod
    def _served(line: Line, serve: Callable[[Line], None]) -> None:
        # Whoever speaks another language is left alone.
        with contextlib.suppress(HungUpError, OSError, KeyError, TypeError, ValueError):
            serve(line)
            return
        line.close()

    def _welcome(self, line: Line) -> None:
        """A node has come, to wait for its next command."""
        line.link.settimeout(PATIENCE)
        challenge = secrets.token_hex(16)
        line.tell(challenge=challenge)
        hello = line.hear()
        number = int(hello["node"])
        known = hmac.compare_digest(str(hello["proof"]), proof(self.job, challenge, number))
        if not known or not 0 <= number < len(self.names) or not self._same_peer(number, line):
            line.close()
            return
        line.tell(proof=proof(self.job, hello["challenge"]))
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

    def _same_peer(self, number: int, line: Line) -> bool:
        """Whether a node dials from where it first did: another host that knows the job's name is not that node."""
        peer = str(line.link.getpeername()[0])
        with self._changed:
            return self._peers.setdefault(number, peer) == peer

    def _dismiss(self, number: int, line: Line) -> None:
        with contextlib.suppress(HungUpError):
            line.tell(over=True)
        line.close()
        with self._changed:
            self._told.add(number)
            self._changed.notify_all()

    def _asked(self, line: Line) -> None:
        """Somebody has a command for a node."""
        wish = line.hear()
        try:
            number = self.names.index(wish["node"])
        except ValueError:
            line.tell(code=255, why=f"there is no node {wish['node']}; there are {', '.join(self.names)}")
            line.close()
            return
        if wish["run"] == "hostname -I":
            # Not what the node calls itself: the address at which the others reach it.
            line.tell(out=self._addresses[number] + "\n", to=1)
            line.tell(code=0)
            line.close()
            return
        try:
            node = self._waiting[number].get(timeout=PATIENCE)
        except queue.Empty:
            line.tell(code=255, why=f"{wish['node']} is gone")
            line.close()
            return
        try:
            node.tell(run=wish["run"], folder=wish["folder"])
            self._pass_on(node, line)
        except HungUpError:
            with contextlib.suppress(HungUpError):
                line.tell(code=255, why=f"{wish['node']} is gone")
        finally:
            node.close()
            line.close()

    @staticmethod
    def _pass_on(node: Line, line: Line) -> None:
        """Everything that the node says goes to whoever asked, until the exit code or until nobody listens."""
        while True:
            ready, _, _ = select.select([node, line], [], [])
            if line in ready:
                return
            said = node.hear()
            while True:
                line.tell(**said)
                if "code" in said:
                    return
                if not node.more():
                    break
                said = node.hear()
