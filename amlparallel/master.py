"""The first node's part: gives out mini-batches, tries failed ones again, decides when the step is over."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlparallel import messages

if TYPE_CHECKING:
    from amlparallel.inputs import MiniBatch, StepSettings

JOIN_SECONDS = 120.0
"""The time for which a node looks for the first one, which has to split the input before it listens."""
SHUTDOWN_SECONDS = 30.0
"""The longest time that ``shutdown()`` of an entry script may last."""

MEETING = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NODE_RANK", "RANK", "LOCAL_RANK")
"""Variables by which the nodes find each other; an entry script is no rank of theirs."""


class WorkerProcess:
    """A process that runs the entry script.

    Args:
        settings: The step's.
        node: Number of the node.
        number: Of the process on the node.
    """

    def __init__(self, settings: StepSettings, node: int, number: int) -> None:
        name = f"process{number:03d}"
        logs = {kind: Path("logs/user") / kind / str(node) for kind in ("stdout", "stderr", "entry_script_log")}
        for folder in logs.values():
            folder.mkdir(parents=True, exist_ok=True)
        answers, theirs = os.pipe()
        given = {
            "entry_script": settings.entry_script,
            "input_data": settings.input_data,
            "program": list(settings.program),
            "level": settings.level,
            "log": str((logs["entry_script_log"] / f"{name}.log.txt").resolve()),
        }
        with open(logs["stdout"] / f"{name}.stdout.txt", "ab") as out, open(
            logs["stderr"] / f"{name}.stderr.txt", "ab"
        ) as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "amlparallel.worker", str(theirs), json.dumps(given)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=_environment(settings.workers),
                pass_fds=(theirs,),
                start_new_session=True,
            )
        os.close(theirs)
        self._answers = answers
        self._heard = messages.Timed(answers)

    def ready(self, seconds: float) -> str | None:
        """Waits for the end of ``init()``; why it failed, or None."""
        try:
            answer = self._heard.receive(seconds)
        except TimeoutError:
            return f"init() lasted longer than {seconds:g} s (--first_task_creation_timeout)"
        if answer is None:
            return f"the process ended in init() with {self.process.wait()}"
        return None if answer["ready"] else str(answer["error"])

    def run(self, batch: messages.Message, seconds: float) -> tuple[messages.Message, bool]:
        """Has it run a mini-batch; the answer, and whether the process can go on."""
        try:
            assert self.process.stdin is not None  # noqa: S101 - it is a pipe
            messages.send(self.process.stdin, **batch)
            answer = self._heard.receive(seconds)
        except TimeoutError:
            return {"error": f"run() lasted longer than {seconds:g} s (retry_settings.timeout)"}, False
        except BrokenPipeError:
            answer = None
        if answer is None:
            self.kill()
            return {"error": f"the process ended in run() with {self.process.wait()}"}, False
        return answer, True

    def close(self) -> None:
        """Lets it call ``shutdown()`` and end."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(SHUTDOWN_SECONDS)
        self.kill()

    def end(self) -> None:
        """Ends it with all that it started; whoever waits for its answer hears of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """The same, for the thread that reads its answers."""
        self.end()
        self.process.wait()
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1


class Slot(threading.Thread):
    """One worker's place on a node; a process that cannot go on is replaced by a new one."""

    def __init__(self, settings: StepSettings, address: tuple[str, int], node: int, number: int) -> None:
        super().__init__(daemon=True)
        self.settings = settings
        self.address = address
        self.node = node
        self.number = number
        self.lost: str | None = None
        self._worker: WorkerProcess | None = None

    def run(self) -> None:
        """Until the first node says that all is over."""
        try:
            with _joined(self.address) as connection, connection.makefile("rwb") as stream:
                messages.send(stream, who=f"node {self.node}, process {self.number}")
                while True:
                    message = messages.receive(stream)
                    if message is None:
                        self.lost = "the first node went away"
                        break
                    if message["batch"] is None:
                        break
                    messages.send(stream, **self._one(message["batch"]))
        except OSError as error:
            self.lost = f"the first node went away: {error}"
        if self._worker is not None:
            self._worker.close()

    def stop(self) -> None:
        """Ends its process, from another thread than its own."""
        worker = self._worker
        if worker is not None:
            worker.end()

    def _one(self, batch: messages.Message) -> messages.Message:
        if self._worker is None:
            self._worker = WorkerProcess(self.settings, self.node, self.number)
            problem = self._worker.ready(self.settings.first_timeout)
            if problem is not None:
                self._worker.kill()
                self._worker = None
                return {"fatal": True, "error": problem}
        answer, goes_on = self._worker.run(batch, self.settings.run_timeout)
        if not goes_on:
            self._worker.kill()
            self._worker = None
        return answer


def _joined(address: tuple[str, int]) -> socket.socket:
    until = time.monotonic() + JOIN_SECONDS
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:  # noqa: PERF203 - it is what the loop is for
            if time.monotonic() > until:
                raise
            time.sleep(0.1)  # the first node still reads the input


def _environment(workers: int) -> dict[str, str]:
    """The step's variables without those by which its nodes meet, the node's threads divided among its processes."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    share = {"OMP_NUM_THREADS": str(max(1, int(threads) // workers))} if threads.isdigit() else {}
    return {**{name: value for name, value in os.environ.items() if name not in MEETING}, **share}


class Master:
    """The state of a step's mini-batches.

    Args:
        settings: The step's.
        batches: Its mini-batches.
        slots: Worker processes on all nodes; each has a connection.
    """

    def __init__(self, settings: StepSettings, batches: list[MiniBatch], slots: int) -> None:
        self.settings = settings
        self.total = len(batches)
        self.slots = slots
        self.texts: dict[int, str] = {}
        self.failed: dict[int, str] = {}
        self.failed_items = 0
        self.processed = 0
        self.reason: str | None = None
        self._waiting: collections.deque[MiniBatch] = collections.deque(batches)
        self._tries: dict[int, int] = {}
        self._changed = threading.Condition()
        self._ended = 0
        self._left = 0
        self._moved = time.monotonic()

    @property
    def ended(self) -> int:
        """Mini-batches that were processed, or given up."""
        return self._ended

    @property
    def _over(self) -> bool:
        return self.reason is not None or self.ended == self.total

    def take(self) -> MiniBatch | None:
        """The next mini-batch; waits while others may still fail and come back. None when the step is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._waiting)
            return None if self._over else self._waiting.popleft()

    def leave(self) -> None:
        """A connection will ask no more."""
        with self._changed:
            self._left += 1
            self._changed.notify_all()

    def settle(self, batch: MiniBatch, who: str, answer: messages.Message | None) -> None:
        """Record the outcome of a mini-batch; an ``answer`` of None is a node that went away."""
        answer = answer or {"error": "its node went away"}
        with self._changed:
            if self.reason is not None:
                return
            self._moved = time.monotonic()
            error = answer.get("error")
            if error is None:
                wanted, items = int(answer["wanted"]), int(answer["items"])
                self.processed += items
                self.texts[batch.number] = str(answer["text"])
                self._ended += 1
                if items < wanted:
                    self.failed_items += wanted - items
                if items < wanted and not self.settings.partition_keys:
                    # Not so for the values of columns: entry scripts of Azure's examples return nothing for them.
                    self.failed[batch.number] = f"run() returned {items} of {wanted} items"
            else:
                tries = self._tries[batch.number] = self._tries.get(batch.number, 0) + 1
                say(f"mini-batch {batch.number} failed on {who}, try {tries} of {self.settings.tries}: {last(error)}")
                if tries < self.settings.tries:
                    self._waiting.append(batch)
                else:
                    self.failed[batch.number] = str(error)
                    self._ended += 1
                    self.failed_items += int(answer.get("wanted") or len(batch.files))
            self._judge(ended=error is None or batch.number in self.failed)
            self._changed.notify_all()

    def fail(self, reason: str, error: str = "") -> None:
        """The step cannot go on. Of a step that has failed already nothing is recorded: its workers are ended then."""
        with self._changed:
            if self.reason is None and error:
                self.failed.setdefault(-1, error)
            self.reason = self.reason or reason
            self._changed.notify_all()

    def wait(self) -> str | None:
        """Waits for the end, and until every connection knows of it; why the step failed, or None."""
        limit = self.settings.progress_timeout
        with self._changed:
            while not self._over:
                left = None if limit is None else self._moved + limit - time.monotonic()
                if left is not None and left <= 0:
                    self.reason = f"no mini-batch ended for {limit:g} s (--progress_update_timeout)"
                    break
                self._changed.wait(left)
            self._changed.notify_all()
            if self.reason is None:
                self._changed.wait_for(lambda: self._left >= self.slots)
        return self.reason

    def rows(self) -> list[str]:
        """The results of all mini-batches, in their order."""
        return [self.texts[index] for index in sorted(self.texts)]

    def _judge(self, *, ended: bool) -> None:
        """Compares with the thresholds, and says how far it is when one has ended."""
        if self.reason is not None:
            return
        allowed = self.settings.mini_batch_error_threshold
        percent = self.settings.allowed_failed_percent
        failed = f"{len(self.failed)} of {self.total} mini-batches failed"
        if 0 <= allowed < len(self.failed):
            self.reason = f"{failed}, more than `mini_batch_error_threshold` {allowed} allows"
        elif 100.0 * len(self.failed) > percent * self.total:
            self.reason = f"{failed}, more than the {percent:g} % of `--allowed_failed_percent`"
        elif 0 <= self.settings.error_threshold < self.failed_items:
            most = self.settings.error_threshold
            self.reason = f"{self.failed_items} items failed, more than `error_threshold` {most} allows"
        step = max(1, self.total // 20)
        if self.reason is None and ended and (self.ended == self.total or self.ended % step == 0):
            say(f"{self.ended} of {self.total} mini-batches ended, {len(self.failed)} failed, {self.processed} items")


class Server(socketserver.ThreadingTCPServer):
    """The server that the nodes ask for mini-batches.

    Args:
        address: Host and port.
        master: What it gives out.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: Any, master: Master) -> None:
        super().__init__(address, _Connection)
        self.master = master


class _Connection(socketserver.StreamRequestHandler):
    """One worker's: gives it one mini-batch after the other."""

    server: Server

    def handle(self) -> None:
        master = self.server.master
        hello = messages.receive(self.rfile)
        if hello is None:
            return
        batch: MiniBatch | None = None
        try:
            while (batch := master.take()) is not None:
                messages.send(self.wfile, batch=batch.wire())
                answer = messages.receive(self.rfile)
                if answer is not None and answer.get("fatal"):
                    say(f"init() failed on {hello['who']}: {last(answer['error'])}")
                    master.fail(f"init() of the entry script failed on {hello['who']}", str(answer["error"]))
                    break
                master.settle(batch, str(hello["who"]), answer)
            messages.send(self.wfile, batch=None)
        except OSError:
            if batch is not None:
                master.settle(batch, str(hello["who"]), None)
        finally:
            with contextlib.suppress(OSError):
                self.wfile.close()
            master.leave()


def last(error: Any) -> str:
    """The last line of a traceback."""
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else ""


def say(line: str) -> None:
    """One line of the step's own log."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()
