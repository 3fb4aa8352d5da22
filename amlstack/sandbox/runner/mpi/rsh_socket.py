"""A node's door: how mpirun's ``rsh`` gets in from outside, and how ranks that mpirun started are known to the agent.

A Unix socket of one line per connection. ``{"run": text}`` comes with two open files, for output and errors, and has
a shell run the text on this node; ``{"rank": n, "pid": p}`` says that a rank lives, a following ``{"code": c}`` how it
ended. A rank whose connection ends without that word was killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.sandbox.runner import process_tree
from amlstack.sandbox.store.places import USUAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LINE = 65536
"""Bytes that a message may have; they come in one piece, since a line is written at once."""


@dataclass(slots=True)
class Door:
    """The agent's end of all connections.

    Attributes:
        path: Of the socket.
        env, cwd: What a command from outside starts with.
        say: Reports an event to the runner.
        listener: Becomes readable when somebody knocks.
        ranks: Rank by the connection that told it.
        running: Connections that wait for a command's end, by its pid.
    """

    path: str
    env: Mapping[str, str]
    cwd: str
    say: Callable[..., None]
    listener: socket.socket = field(init=False)
    ranks: dict[socket.socket, int] = field(default_factory=dict)
    running: dict[int, socket.socket] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(64)

    def accept(self) -> socket.socket:
        """Lets the next one in."""
        return self.listener.accept()[0]

    def heard(self, visitor: socket.socket) -> bool:
        """Takes one message; False when the visitor is done and was let out."""
        try:
            words, files, _, _ = socket.recv_fds(visitor, LINE, 2)
        except ConnectionError:
            words, files = b"", []
        if not words:
            self._left(visitor)
            return False
        for line in words.splitlines():
            message = json.loads(line)
            if "run" in message:
                self._run(visitor, str(message["run"]), files)
            elif "rank" in message:
                self.ranks[visitor] = message["rank"]
                self.say("start", rank=message["rank"], pid=message["pid"])
            elif "code" in message:
                self.say("exit", rank=self.ranks.pop(visitor), code=message["code"])
        return True

    def ended(self, pid: int, code: int) -> None:
        """Tells the one who asked for it how a command ended; other processes interest nobody."""
        visitor = self.running.pop(pid, None)
        if visitor is not None:
            try:
                visitor.sendall(b"%d\n" % code)
                visitor.shutdown(socket.SHUT_WR)
            except OSError:  # it did not wait
                return

    def finish(self) -> None:
        """Everything on the node is over: ranks that did not say how they ended were killed."""
        for visitor in tuple(self.ranks):
            self._left(visitor)
        self.listener.close()

    def _run(self, visitor: socket.socket, text: str, files: list[int]) -> None:
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
            preexec_fn=process_tree.die_with_parent,  # noqa: PLW1509 - this process has one thread
        )
        child.returncode = 0  # its end is taken by the agent, by pid
        for file in files:
            os.close(file)
        self.running[child.pid] = visitor

    def _left(self, visitor: socket.socket) -> None:
        rank = self.ranks.pop(visitor, None)
        if rank is not None:
            self.say("exit", rank=rank, code=-int(signal.SIGKILL))
        visitor.close()
