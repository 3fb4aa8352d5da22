"""The agent of one node: starts the node's ranks, reports their ends, and takes everything below it down with itself.

``python -m amlstack.sandbox.runner.node_agent CREW.json`` reads commands from stdin (``{"grace": seconds}``: stop;
``{"over": true}``: nothing will come through the door any more) and writes one JSON line per event to stdout. It adopts
orphans, so nothing that a rank starts can leave the node; when its runner ends in whatever way, stdin ends, and the
node is wiped.
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from amlstack.sandbox.runner import process_tree
from amlstack.sandbox.runner.files import namespace
from amlstack.sandbox.runner.mpi.rsh_socket import Door
from amlstack.sandbox.store.places import USUAL

LAUNCHER = -1
"""Stands for the rank of mpirun, which is no rank."""


@dataclass(frozen=True, slots=True)
class Rank:
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
class Crew:
    """What one node runs.

    Attributes:
        node: Its number.
        ranks: What its agent starts.
        started: Ranks that mpirun starts there.
        door: Socket through which mpirun gets in; empty for none.
        env, cwd: What a command from outside starts with.
        private: Variables of ``env`` that no rank shall see.
        shm: Bytes of /dev/shm that its processes share; None for the machine's own.
        mounts: Source and target of the inputs that its processes can only read.
    """

    node: int
    ranks: tuple[Rank, ...]
    started: tuple[Rank, ...] = ()
    door: str = ""
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = ""
    private: tuple[str, ...] = ()
    shm: int | None = None
    mounts: tuple[tuple[str, str], ...] = ()

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def loads(text: str) -> Crew:
        """The inverse of `dumps`."""
        data = json.loads(text)
        for name in ("ranks", "started"):
            data[name] = tuple(Rank(**{**rank, "argv": tuple(rank["argv"])}) for rank in data[name])
        mounts = tuple((source, target) for source, target in data["mounts"])
        return Crew(**{**data, "private": tuple(data["private"]), "mounts": mounts})


@dataclass(slots=True)
class Agent:
    """The agent's state between two events.

    Attributes:
        crew: What it runs.
        running: Rank numbers by the pid of their first process.
        deadline: Monotonic time at which a stop turns into SIGKILL; None while nobody asked for a stop.
        door: Where mpirun gets in; None for none.
        over: Nothing will come through it any more.
    """

    crew: Crew
    running: dict[int, int] = field(default_factory=dict)
    deadline: float | None = None
    door: Door | None = None
    over: bool = False

    def start(self) -> None:
        """Starts every rank; one that cannot start counts as ended with 127, as a shell would say."""
        for rank in self.crew.ranks:
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
                        preexec_fn=process_tree.die_with_parent,  # noqa: PLW1509 - this process has one thread
                    )
                except OSError as error:
                    log.write(f"{error}\n".encode())
                    say("exit", rank=rank.rank, code=127)
                    continue
            child.returncode = 0  # its end is taken by `reap`, by pid; Popen shall not look for it
            self.running[child.pid] = rank.rank
            say("start", rank=rank.rank, pid=child.pid)

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
        """Reports the end of a rank; other processes' ends interest nobody."""
        code = os.waitstatus_to_exitcode(status)
        if self.door is not None:
            self.door.ended(pid, code)
        rank = self.running.pop(pid, None)
        if rank == LAUNCHER:
            say("launcher", code=code)
        elif rank is not None:
            say("exit", rank=rank, code=code)

    def left(self) -> float | None:
        """Seconds until the stop's deadline; None when there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def idle(self) -> bool:
        """Nothing is left to wait for: all ranks ended and, in a stop, also whatever they had started."""
        if self.running:
            return self.left() == 0
        if self.door is not None and not self.over and self.deadline is None:
            return False
        return self.deadline is None or self.left() == 0 or not process_tree.descendants(os.getpid())

    def finish(self) -> None:
        """Kills what is left of the ranks, reporting them, then everything else."""
        for pid in tuple(self.running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.ended(pid, os.waitpid(pid, 0)[1])
        if self.door is not None:
            self.door.finish()
        process_tree.wipe()

    def told(self, words: bytes) -> None:
        """Does what the runner said, a line each."""
        for line in words.splitlines():
            message = json.loads(line)
            if "over" in message:
                self.over = True
            else:
                self.stop(message["grace"])


def say(event: str, **values: Any) -> None:
    """Writes one event; a runner that is gone no longer listens."""
    line = json.dumps({"event": event, "at": time.time(), **values}) + "\n"
    with contextlib.suppress(BrokenPipeError):
        os.write(1, line.encode())


def main(crew: Path) -> int:
    """Runs one crew to its end; 1 when the runner went first."""
    process_tree.adopt_orphans()
    waker, wakened = os.pipe()
    for end in (waker, wakened):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakened, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # A Ctrl-C and the runner's end reach the agent through stdin alone, so that it always gets to wipe its node.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    made = Crew.loads(crew.read_text())
    namespace.take(made.shm, made.mounts)
    agent = Agent(made)
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(waker, selectors.EVENT_READ)
        if made.door:
            agent.door = Door(made.door, made.env, made.cwd, say)
            selector.register(agent.door.listener, selectors.EVENT_READ)
        agent.start()
        while not agent.idle:
            for key, _ in selector.select(agent.left()):
                if isinstance(key.fileobj, socket.socket):
                    _at_the_door(agent, selector, key.fileobj)
                    continue
                words = os.read(key.fd, 4096)
                if key.fd == 0 and not words:
                    process_tree.wipe()
                    return 1
                if key.fd == 0:
                    agent.told(words)
            agent.reap()
    agent.finish()
    say("end")
    return 0


def _at_the_door(agent: Agent, selector: selectors.BaseSelector, ready: socket.socket) -> None:
    """Somebody knocked, or one who is in has something to say."""
    if agent.door is None:  # pragma: no cover - sockets come from it
        return
    if ready is agent.door.listener:
        selector.register(agent.door.accept(), selectors.EVENT_READ)
        return
    here = ready.fileno()
    if not agent.door.heard(ready):
        selector.unregister(here)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
