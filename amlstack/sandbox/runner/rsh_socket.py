"""A node's rsh socket: runs what mpirun's ``rsh`` asks for, and reports the ranks that mpirun started to the agent.

A Unix socket of one line per connection. ``{"run": text}`` comes with two open files, for output and errors, and has
a shell run the text on this node; ``{"rank": n, "pid": p}`` says that a rank lives, a following ``{"code": c}`` how it
ended. A rank whose connection ends without a code was killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.processes import orphans
from amlstack.sandbox.store.places import USUAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LINE = 65536
"""Bytes that a message may have; they come in one piece, since a line is written at once."""


@dataclass(slots=True)
class RshSocket:
    """The agent's end of all connections.

    Attributes:
        path: Of the socket.
        env, cwd: What a command from outside starts with.
        report: Reports an event to the runner.
        listener: Becomes readable on a new connection.
        ranks: Rank by the connection that reported it.
        running: Connections that wait for a command's end, by its pid.
    """

    path: str
    env: Mapping[str, str]
    cwd: str
    report: Callable[..., None]
    listener: socket.socket = field(init=False)
    ranks: dict[socket.socket, int] = field(default_factory=dict)
    running: dict[int, socket.socket] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(64)

    def accept(self) -> socket.socket:
        """Accepts the next connection."""
        return self.listener.accept()[0]

    def receive(self, connection: socket.socket) -> bool:
        """Takes one message; False when the connection ended and was closed."""
        try:
            words, files, _, _ = socket.recv_fds(connection, LINE, 2)
        except ConnectionError:
            words, files = b"", []
        if not words:
            self._close(connection)
            return False
        for line in words.splitlines():
            message = json.loads(line)
            if "run" in message:
                self._run(connection, str(message["run"]), files)
            elif "rank" in message:
                self.ranks[connection] = message["rank"]
                self.report("start", rank=message["rank"], pid=message["pid"])
            elif "code" in message:
                self.report("exit", rank=self.ranks.pop(connection), code=message["code"])
        return True

    def ended(self, pid: int, code: int) -> None:
        """Sends a command's exit code to the connection that asked for it; other processes are passed over."""
        connection = self.running.pop(pid, None)
        if connection is not None:
            try:
                connection.sendall(b"%d\n" % code)
                connection.shutdown(socket.SHUT_WR)
            except OSError:  # it did not wait
                return

    def finish(self) -> None:
        """Everything on the node is over: ranks without an exit code were killed."""
        for connection in tuple(self.ranks):
            self._close(connection)
        self.listener.close()

    def _run(self, connection: socket.socket, text: str, files: list[int]) -> None:
        out, err = files
        child = subprocess.Popen(
            ["/bin/sh", "-c", text],
            env=dict(self.env),
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            process_group=0,
            umask=USUAL,
            preexec_fn=orphans.die_with_parent,  # noqa: PLW1509 - this process has one thread
        )
        child.returncode = 0  # its end is taken by the agent, by pid
        for file in files:
            os.close(file)
        self.running[child.pid] = connection

    def _close(self, connection: socket.socket) -> None:
        rank = self.ranks.pop(connection, None)
        if rank is not None:
            self.report("exit", rank=rank, code=-int(signal.SIGKILL))
        connection.close()
