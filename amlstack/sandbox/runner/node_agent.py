"""The agent of one node: starts the node's ranks, reports their ends, and takes everything below it down with itself.

``python -m amlstack.sandbox.runner.node_agent PLAN.json`` reads its plan as the first line of stdin (the file, which is
for mpirun's ranks and for people, has no variables), and then commands (``{"grace": seconds}``: stop;
``{"start": true}``: the rsh sockets of all nodes are open; ``{"over": true}``: mpirun has ended) and writes one JSON
line per event to stdout. It adopts orphans, so nothing that a rank starts can leave the node; when its runner ends in
whatever way, stdin ends, and the node is wiped.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.processes import adopt_orphans, die_with_parent
from amlstack.sandbox import processes
from amlstack.sandbox.runner import namespace, usage
from amlstack.sandbox.store.folders import USUAL

if TYPE_CHECKING:
    from collections.abc import Mapping

LAUNCHER = -1
"""Stands for the rank of mpirun, which is no rank."""


@dataclass(frozen=True, slots=True)
class RankProcess:
    """One process that Azure ML would start: its number in the job, environment, folder and log file.

    mpirun is one with the number `LAUNCHER`.
    """

    rank: int
    local_rank: int
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    log: str


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The plan of what one node runs.

    Attributes:
        node: Its number.
        ranks: What its agent starts.
        started: Ranks that mpirun starts there.
        rsh: Path of the socket through which mpirun starts commands; empty for none.
        env, cwd: What a command from outside starts with.
        private: Variables of ``env`` that no rank shall see.
        shm: Bytes of /dev/shm that its processes share; None for the machine's own.
        mounts: Source and target of the inputs that its processes can only read.
        own: Source and target of what is the node's own at a path that all nodes have.
        sampled: The agent reports what the node uses, since nobody else sees it.
    """

    node: int
    ranks: tuple[RankProcess, ...]
    started: tuple[RankProcess, ...] = ()
    rsh: str = ""
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = ""
    private: tuple[str, ...] = ()
    shm: int | None = None
    mounts: tuple[tuple[str, str], ...] = ()
    own: tuple[tuple[str, str], ...] = ()
    sampled: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """The ranks of the job that are on this node, whoever starts them."""
        return tuple(rank.rank for rank in self.started or self.ranks)

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    def kept(self) -> str:
        """The same without variables, for a file: they may be secrets of a job."""
        bare = [[replace(rank, env={}) for rank in ranks] for ranks in (self.ranks, self.started)]
        return replace(self, ranks=tuple(bare[0]), started=tuple(bare[1]), env={}).dumps()

    @staticmethod
    def loads(text: str) -> NodePlan:
        """The inverse of `dumps`."""
        data = json.loads(text)
        for name in ("ranks", "started"):
            data[name] = tuple(RankProcess(**{**rank, "argv": tuple(rank["argv"])}) for rank in data[name])
        for name in ("mounts", "own"):
            data[name] = tuple((source, target) for source, target in data[name])
        return NodePlan(**{**data, "private": tuple(data["private"])})


LINE = 65536
"""Bytes that a message may have; they come in one piece, since a line is written at once."""


@dataclass(slots=True)
class RshSocket:
    """A node's rsh socket: runs what mpirun's ``rsh`` asks for, and reports the ranks that mpirun started.

    A Unix socket of one line per connection. ``{"run": text}`` comes with two open files, for output and errors, and
    has a shell run the text on this node; ``{"rank": n, "pid": p}`` says that a rank lives, a following ``{"code": c}``
    how it ended. A rank whose connection ends without a code was killed.

    Attributes:
        path: Of the socket.
        env, cwd: What a command from outside starts with.
        listener: Becomes readable on a new connection.
        ranks: Rank by the connection that reported it.
        running: Connections that wait for a command's end, by its pid.
    """

    path: str
    env: Mapping[str, str]
    cwd: str
    listener: socket.socket = field(init=False)
    ranks: dict[socket.socket, int] = field(default_factory=dict)
    running: dict[int, socket.socket] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)  # on another machine nobody has made it yet
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
                report("start", rank=message["rank"], pid=message["pid"])
            elif "code" in message:
                report("exit", rank=self.ranks.pop(connection), code=message["code"])
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
        Path(self.path).unlink(missing_ok=True)
        for made in Path(self.path).parents[:2]:
            with contextlib.suppress(OSError):  # it holds more, where the runner made it
                made.rmdir()

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
            preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
        )
        child.returncode = 0  # its end is taken by the agent, by pid
        for file in files:
            os.close(file)
        self.running[child.pid] = connection

    def _close(self, connection: socket.socket) -> None:
        rank = self.ranks.pop(connection, None)
        if rank is not None:
            report("exit", rank=rank, code=-int(signal.SIGKILL))
        connection.close()


@dataclass(slots=True)
class NodeAgent:
    """The agent's state between two events.

    Attributes:
        plan: What it runs.
        running: Rank numbers by the pid of their first process.
        deadline: Monotonic time at which a stop turns into SIGKILL; None without a stop.
        rsh: The socket through which mpirun starts commands; None for none.
        over: mpirun has ended: no command will come any more.
    """

    plan: NodePlan
    running: dict[int, int] = field(default_factory=dict)
    deadline: float | None = None
    rsh: RshSocket | None = None
    over: bool = False

    def start(self) -> None:
        """Starts every rank; one that cannot start counts as ended with 127, a shell's code."""
        for rank in self.plan.ranks:
            with Path(rank.log).open("ab") as log:
                try:
                    child = subprocess.Popen(
                        rank.argv,
                        env=rank.env,
                        cwd=rank.cwd,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        process_group=0,
                        umask=USUAL,
                        preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
                    )
                except OSError as error:
                    log.write(f"{error}\n".encode())
                    report("exit", rank=rank.rank, code=127)
                    continue
            child.returncode = 0  # its end is taken by `reap`, by pid; Popen shall not look for it
            self.running[child.pid] = rank.rank
            report("start", rank=rank.rank, pid=child.pid)

    def stop(self, grace: float) -> None:
        """Asks every rank's process group to end; what is left after ``grace`` seconds is killed."""
        if self.deadline is not None:
            return
        self.deadline = time.monotonic() + grace
        for pid in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)

    def reap(self) -> None:
        """Takes the ends of all processes that have ended, the adopted ones included."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                self.ended(*ended)

    def ended(self, pid: int, status: int) -> None:
        """Reports the end of a rank; other processes' ends are not reported."""
        code = os.waitstatus_to_exitcode(status)
        if self.rsh is not None:
            self.rsh.ended(pid, code)
        rank = self.running.pop(pid, None)
        if rank == LAUNCHER:
            report("launcher", code=code)
        elif rank is not None:
            report("exit", rank=rank, code=code)

    def left(self) -> float | None:
        """Seconds until the stop's deadline; None when there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def idle(self) -> bool:
        """Nothing is left to wait for: all ranks ended and, in a stop, also whatever they had started."""
        if self.running:
            return self.left() == 0
        if self.rsh is not None and not self.over and self.deadline is None:
            return False
        return self.deadline is None or self.left() == 0 or not processes.descendants(os.getpid())

    def finish(self) -> None:
        """Kills what is left of the ranks, reporting them, then everything else."""
        for pid in tuple(self.running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.ended(pid, os.waitpid(pid, 0)[1])
        if self.rsh is not None:
            self.rsh.finish()
        processes.wipe()

    def obey(self, commands: bytes) -> None:
        """Carries out the runner's commands, one a line."""
        for line in commands.splitlines():
            message = json.loads(line)
            if "over" in message:
                self.over = True
            elif "start" in message:
                self.start()
            else:
                self.stop(message["grace"])


def report(event: str, **values: Any) -> None:
    """Writes one event; a runner that is gone no longer listens."""
    line = json.dumps({"event": event, "at": time.time(), **values}) + "\n"
    with contextlib.suppress(BrokenPipeError):
        os.write(1, line.encode())


def main() -> int:
    """Runs one node to its end; 1 when the runner went first."""
    adopt_orphans()
    waker, wakened = os.pipe()
    for end in (waker, wakened):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakened, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # A Ctrl-C and the runner's end reach the agent through stdin alone, so that it always gets to wipe its node.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    first, newline, early = b"", b"", b""
    while not newline:
        if not (words := os.read(0, 1 << 20)):
            return 1
        first, newline, early = (first + words).partition(b"\n")
    plan = NodePlan.loads(first.decode())
    namespace.take(plan.shm, plan.mounts, plan.own)
    agent = NodeAgent(plan)
    used, rhythm = usage.NodeUsage(os.getpid()), usage.Rhythm()
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(waker, selectors.EVENT_READ)
        if plan.rsh:
            agent.rsh = RshSocket(plan.rsh, plan.env, plan.cwd)
            selector.register(agent.rsh.listener, selectors.EVENT_READ)
            report("ready")
        else:
            agent.start()
        agent.obey(early)
        while not agent.idle:
            if plan.sampled and rhythm.comes():
                report("usage", values=used.sample(processes.living(), usage.gpu_memory()))
            waits = [agent.left(), max(0.0, rhythm.due - time.monotonic()) if plan.sampled else None]
            for key, _ in selector.select(min((each for each in waits if each is not None), default=None)):
                if isinstance(key.fileobj, socket.socket):
                    _at_the_socket(agent, selector, key.fileobj)
                    continue
                words = os.read(key.fd, 4096)
                if key.fd == 0 and not words:
                    processes.wipe()
                    return 1
                if key.fd == 0:
                    agent.obey(words)
            agent.reap()
    agent.finish()
    report("end")
    return 0


def _at_the_socket(agent: NodeAgent, selector: selectors.BaseSelector, ready: socket.socket) -> None:
    """A new connection, or a message on one that is open."""
    if agent.rsh is None:  # pragma: no cover - sockets come from it
        return
    if ready is agent.rsh.listener:
        selector.register(agent.rsh.accept(), selectors.EVENT_READ)
        return
    here = ready.fileno()
    if not agent.rsh.receive(ready):
        selector.unregister(here)


if __name__ == "__main__":
    sys.exit(main())
