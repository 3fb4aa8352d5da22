"""A node's part: one thread for each worker process, which asks for mini-batches and has the process run them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from amlparallel import messages

if TYPE_CHECKING:
    from amlparallel.arguments import StepSettings

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
