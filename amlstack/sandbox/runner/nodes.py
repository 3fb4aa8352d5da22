"""The runner's side of the nodes: starts their agents, hears of every end, decides when the job is over.

A request to end is SIGTERM, seen between two steps by a flag and while waiting by a pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Literal

from amlstack.sandbox import processes, scheduling
from amlstack.sandbox.runner.node_agent import LAUNCHER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from amlstack.sandbox.runner.machines import JobNodes
    from amlstack.sandbox.runner.node_agent import NodePlan
    from amlstack.sandbox.runner.usage import Usage


class CanceledError(Exception):
    """The job was cancelled while it was prepared."""


class Cancel:
    """Listens to SIGTERM from its creation on; one per process, in the main thread.

    Attributes:
        requested: Somebody asked for the end.
        fd: Becomes readable when that happens.
    """

    def __init__(self) -> None:
        self.requested = False
        self._raises = False
        self.fd, writer = os.pipe()
        for end in (self.fd, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._heard)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _heard(self, *_: Any) -> None:
        self.requested = True
        if self._raises:
            self._raises = False
            raise CanceledError

    def drain(self) -> None:
        """Empties the pipe."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    @contextmanager
    def interrupts(self) -> Iterator[None]:
        """Within it a request raises `CanceledError` at once, even out of a blocking call."""
        if self.requested:
            raise CanceledError
        self._raises = True
        try:
            yield
        finally:
            self._raises = False


Reason = Literal["done", "failed", "canceled", "timeout", "lost", "preempted"]

SETTLE = 2.0
"""Seconds that the other ranks have to end by themselves after one failed: what they log then tells cause from victim.
AMLSTACK_SANDBOX_SETTLE overrides it."""

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL; AMLSTACK_SANDBOX_GRACE overrides it."""

LATE = 5.0
"""Seconds past its deadline after which an agent is taken for dead."""


@dataclass(frozen=True, slots=True)
class RankEnd:
    """The end of a process that the service started.

    Attributes:
        code: Exit code, negative for a signal; None when its node was lost.
        started, ended: Seconds since the epoch; None when unknown.
        stopped: It ended after the job was asked to stop.
    """

    rank: int
    node: int
    code: int | None
    started: float | None
    ended: float | None
    stopped: bool


@dataclass(slots=True)
class RunOutcome:
    """The end of the run.

    Attributes:
        reason: Why it is over.
        detail: The same in the words of what had the nodes; empty where the reason says all.
        lost: The first lost node.
        launcher: mpirun's code.
        ends: The processes in order of their ends.
    """

    reason: Reason = "done"
    detail: str = ""
    lost: int | None = None
    launcher: int | None = None
    ends: list[RankEnd] = field(default_factory=list)


@dataclass(slots=True)
class _Node:
    number: int
    agent: subprocess.Popen[bytes]
    ranks: set[int]
    started: dict[int, float] = field(default_factory=dict)
    heard: bytes = b""
    ready: bool = False

    def out(self) -> IO[bytes]:
        if self.agent.stdout is None:  # pragma: no cover - it is a pipe
            raise RuntimeError
        return self.agent.stdout

    def send(self, **values: Any) -> None:
        self.write(json.dumps(values).encode())

    def write(self, line: bytes) -> None:
        if self.agent.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.agent.stdin.write(line + b"\n")
                self.agent.stdin.flush()

    def close(self) -> None:
        for pipe in (self.agent.stdin, self.agent.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class NodeAgents:
    """One run of all nodes.

    Args:
        plans: Of the nodes, by node, each with the file that shows it.
        cancel: Whether somebody asked for the end.
        timeout: Seconds that the run may last; None for no limit.
        env: Environment of the agents.
        machines: Of the nodes.
        note: Is called with one line for the runner's log.
        usage: Samples what the nodes use.
        needed: Ranks with whose ends the run is over, the others being their servers; empty for all.
    """

    def __init__(
        self,
        plans: Sequence[tuple[Path, NodePlan]],
        cancel: Cancel,
        timeout: float | None,
        env: dict[str, str],
        note: Callable[[str], None],
        *,
        machines: JobNodes,
        usage: Usage,
        needed: frozenset[int] = frozenset(),
    ) -> None:
        self.plans = plans
        self.cancel = cancel
        self.timeout = timeout
        self.env = env
        self.machines = machines
        self.note = note
        self.usage = usage
        self.needed = needed
        self.outcome = RunOutcome()
        self.grace = float(os.environ.get("AMLSTACK_SANDBOX_GRACE") or GRACE)
        self.settle = float(os.environ.get("AMLSTACK_SANDBOX_SETTLE") or SETTLE)
        self._nodes: dict[int, _Node] = {}
        self._selector = selectors.DefaultSelector()
        self._stop_at: float | None = None
        self._kill_at: float | None = None
        self._served = False

    def run(self) -> RunOutcome:
        """Starts every node and returns when nothing of them is left."""
        began = time.monotonic()
        with self._selector:
            self._selector.register(self.cancel.fd, selectors.EVENT_READ, None)
            for number, (file, plan) in enumerate(self.plans):
                self._nodes[number] = self._start(number, file, plan)
            for number, (_, plan) in enumerate(self.plans):
                self._nodes[number].write(plan.dumps().encode())  # once all of them start at the same time
            while self._nodes:
                limit = None if self.timeout is None or self._over else began + self.timeout
                self._due(limit)
                seen = {} if self.machines.remote else self._nodes  # agents on other machines send their samples
                self.usage.sample({number: node.agent.pid for number, node in seen.items()})
                deadline = min(
                    at for at in (limit, self._stop_at, self._kill_at, self.usage.rhythm.due) if at is not None
                )
                for key, _ in self._selector.select(max(0.0, deadline - time.monotonic())):
                    if key.data is None:
                        self.cancel.drain()
                    else:
                        self._hear(key.data)
        # Who takes the nodes ends ranks and agents in any order: a rank that was ended so looks like one that failed.
        if self.outcome.reason in ("lost", "failed") and (loss := self.machines.loss()) is not None:
            self.outcome.reason, self.outcome.detail = loss
        processes.wipe()
        return self.outcome

    @property
    def _over(self) -> bool:
        return self.outcome.reason != "done"

    def _start(self, number: int, file: Path, plan: NodePlan) -> _Node:
        agent = subprocess.Popen(
            [*self.machines.command(number), sys.executable, "-m", "amlstack.sandbox.runner.node_agent", str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.env,
            start_new_session=True,
        )
        scheduling.note_agent(file.parent, agent.pid)
        node = _Node(number, agent, set(plan.numbers))
        self._selector.register(node.out(), selectors.EVENT_READ, node)
        return node

    def _due(self, limit: float | None) -> None:
        """Acts on what is due now: a cancel, the time limit, the end of a grace."""
        now = time.monotonic()
        if self.cancel.requested and not self._over:
            self._end("canceled", settle=0.0)
        if limit is not None and now >= limit:
            self._end("timeout", settle=0.0)
        if self.cancel.requested and self._stop_at is not None:
            self._stop_at = min(self._stop_at, now)
        if self._stop_at is not None and now >= self._stop_at:
            self._stop_at = None
            self._kill_at = now + self.grace + LATE
            for node in self._nodes.values():
                node.send(grace=self.grace)
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            for node in self._nodes.values():
                node.agent.send_signal(signal.SIGKILL)

    def _end(self, reason: Reason, settle: float | None = None) -> None:
        if not self._over:
            self.outcome.reason = reason
            self._stop_at = time.monotonic() + (self.settle if settle is None else settle)
            self.note(f"{reason}: ending what still runs")

    def _hear(self, node: _Node) -> None:
        words = os.read(node.out().fileno(), 65536)
        *lines, node.heard = (node.heard + words).split(b"\n")
        for line in lines:
            self._event(node, json.loads(line))
        if not words:
            self._gone(node)

    def _event(self, node: _Node, event: dict[str, Any]) -> None:
        kind, at = event["event"], event["at"]
        if kind == "ready":
            node.ready = True
            # mpirun reaches for every node at once: it waits until all of their sockets are open.
            if not self._over and all(one.ready for one in self._nodes.values()):
                self._nodes[0].send(start=True)
        elif kind == "start":
            node.started[event["rank"]] = at
            if event["rank"] == LAUNCHER:
                return
            self.note(f"process {event['rank']} started on node {node.number} (pid {event['pid']})")
        elif kind == "exit":
            rank, code = event["rank"], event["code"]
            node.ranks.discard(rank)
            stopped = self._kill_at is not None
            self.outcome.ends.append(RankEnd(rank, node.number, code, node.started.get(rank), at, stopped))
            self.note(f"process {rank} ended with {code}")
            if code != 0 and not self._served:
                self._end("failed")
            elif (
                self.needed
                and not self._served
                and not any(self.needed & there.ranks for there in self._nodes.values())
            ):
                self._served = True
                self._stop_at = time.monotonic()
                self.note("the workers are done: ending the servers")
        elif kind == "usage":
            self.usage.write(node.number, at, event["values"])
        elif kind == "launcher":
            self._launched(event["code"])
        elif kind == "end":  # what mpirun never started has not been lost
            ends = (RankEnd(rank, node.number, None, None, None, stopped=True) for rank in sorted(node.ranks))
            self.outcome.ends.extend(ends)
            node.ranks.clear()

    def _launched(self, code: int) -> None:
        """After mpirun's end, and with it the end of whatever it had started on any node."""
        self.outcome.launcher = code
        self.note(f"mpirun ended with {code}")
        if code != 0:
            self._end("failed")
        for node in self._nodes.values():
            node.send(over=True)

    def _gone(self, node: _Node) -> None:
        """The agent closed its end: all is over there, or the node is lost."""
        self._selector.unregister(node.out())
        node.close()
        code = node.agent.wait()
        del self._nodes[node.number]
        lost = bool(node.ranks) or code != 0
        if lost:
            processes.wipe_node(node.number)
        for rank in sorted(node.ranks):
            self.outcome.ends.append(RankEnd(rank, node.number, None, node.started.get(rank), None, self._over))
        if lost:
            if not self._over:
                self.outcome.lost = node.number
                self.note(f"node {node.number} is lost")
            self._end("lost")
