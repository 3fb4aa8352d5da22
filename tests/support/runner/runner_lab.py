"""A sandbox without its server, for tests of the scheduler and the runner."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.sandbox import processes
from amlstack.sandbox.scheduler import Runner, Scheduler
from amlstack.sandbox.store.store import JobRow, Store, job_folder

if TYPE_CHECKING:
    from collections.abc import Callable

ML = "Microsoft.MachineLearningServices"
GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg"
WORKSPACE = f"{GROUP}/providers/{ML}/workspaces/ws"
CLUSTER = f"{WORKSPACE}/computes/cluster"
PLAIN = f"{WORKSPACE}/environments/plain/versions/1"
LIMIT = 300.0
"""Seconds that what is bound to happen may take on a busy machine."""
CURATED = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/5"


@dataclass
class Lab:
    """One sandbox without its server: a store with a workspace and a cluster, and a scheduler driven by hand.

    ``written`` is what a process of a job has written to the pipe of `during`.
    """

    home: Path
    store: Store
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    written: str = ""
    watched: dict[str, Runner] = field(default_factory=dict)

    def cluster(self, low: int = 0, high: int = 2, idle: str = "PT1H") -> None:
        scale = {"minNodeCount": low, "maxNodeCount": high, "nodeIdleTimeBeforeScaleDown": idle}
        body = {"properties": {"computeType": "AmlCompute", "properties": {"scaleSettings": scale}}}
        self.store.resources.put(CLUSTER, f"{ML}/workspaces/computes", WORKSPACE, body)

    def code(self, files: dict[str, str]) -> str:
        """Registers code whose files are blobs of the workspace's storage."""
        number = len(self.store.blobs.under("account", "container"))
        for name, text in files.items():
            self.blob(f"LocalUpload/{number}/src/{name}", text)
        identity = f"{WORKSPACE}/codes/code{number}/versions/1"
        uri = f"https://127.0.0.1:1/blob/account/container/LocalUpload/{number}/src"
        body = {"properties": {"codeUri": uri}}
        self.store.resources.put(identity, f"{ML}/workspaces/codes/versions", identity.rsplit("/", 2)[0], body)
        return identity

    def blob(self, name: str, text: str) -> None:
        file = self.store.blobs.fresh()
        file.write_text(text)
        self.store.blobs.put("account", "container", name, file)

    def job(self, command: str, *, nodes: int = 1, processes: int = 1, name: str = "job", **properties: Any) -> str:
        body = {
            "jobType": "Command",
            "command": command,
            "computeId": CLUSTER,
            "environmentId": PLAIN,
            "resources": {"instanceCount": nodes},
            "distribution": {"distributionType": "PyTorch", "processCountPerInstance": processes},
            **properties,
        }
        wanted = {key: value for key, value in body.items() if value is not None}
        return self.store.jobs.add(WORKSPACE, name, {"properties": wanted}).id

    async def drive(self, done: Callable[[], bool]) -> None:
        """Schedules as the server does until something holds; woken by the ends of runners and by the test."""
        self.wake = asyncio.Event()  # of this event loop
        scheduler = Scheduler(self.store, self.home, self.wake)
        self.watched = scheduler.runners
        try:
            while True:
                self.wake.clear()
                due = scheduler.step(time.time())
                if done():
                    return
                try:
                    await asyncio.wait_for(self.wake.wait(), None if due is None else max(0.0, due - time.time()))
                except TimeoutError:
                    continue
        finally:
            scheduler.close()

    async def during(self, *jobs: str, act: Callable[[], object], pipe: Path) -> None:
        """Drives jobs to their end; ``act`` is called once a process of theirs has written to ``pipe``.

        The pipe is open in both directions all the while: no writer waits for a reader, or is killed by its leaving.
        """
        line = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        loop = asyncio.get_running_loop()
        failed: list[BaseException] = []

        def hear() -> None:
            loop.remove_reader(line)
            self.written = os.read(line, 4096).decode()
            try:
                act()
            except BaseException as error:  # noqa: BLE001 - handed to the test below, and not to the loop's log
                failed.append(error)
            self.wake.set()

        def ended() -> bool:
            if failed:
                raise failed[0]
            return self.ended(*jobs)

        loop.add_reader(line, hear)
        try:
            await self.drive(ended)
        finally:
            loop.remove_reader(line)
            os.close(line)
        assert self.written, [(self.store.jobs[job].status, self.store.jobs[job].error) for job in jobs]

    async def until_ended(self, job: str) -> None:
        """Waits, while something else drives, for the end of a job that runs already."""
        row = self.store.jobs[job]
        with contextlib.suppress(ProcessLookupError):
            if row.runner_pid is not None and processes.alive(row.runner_pid, row.runner_started):
                await asyncio.to_thread(_wait_for, row.runner_pid)

    def ended(self, *jobs: str) -> bool:
        """Their records have ended, and so have their runners."""
        return not any(self.store.jobs[job].active or job in self.watched for job in jobs)

    def run(self, *jobs: str) -> JobRow:
        """Drives jobs to their end; the last one's row."""
        asyncio.run(self.drive(lambda: self.ended(*jobs)))
        return self.store.jobs[jobs[-1]]

    def folder(self, job: str) -> Path:
        return job_folder(self.home, job)

    def log(self, job: str, rank: int = 0) -> str:
        return (self.folder(job) / "user_logs" / f"std_log_process_{rank:02d}.txt").read_text()

    def pipe(self) -> Path:
        path = self.home / f"pipe{len(list(self.home.glob('pipe*')))}"
        os.mkfifo(path)
        return path

    def survivors(self) -> tuple[int, ...]:
        """The processes that jobs have left running; a runner that comes to its end by itself is none."""
        self.rest()
        return processes.marked(self.home)

    def rest(self) -> None:
        """Waits for runners that nobody watches: one that came second, with nothing to run, may still be ending."""
        if self.store.jobs.list(active=True):
            return
        for pid in processes.marked(self.home):
            with contextlib.suppress(OSError):  # gone meanwhile
                if b"amlstack.sandbox.runner" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    with os.fdopen(os.pidfd_open(pid)) as handle:
                        select.select([handle], [], [], LIMIT)

    def steps(self, job: str) -> list[str]:
        """The statuses that a job went through, each once."""
        found: list[str] = []
        for step in self.store.history.of("job", job):
            if step.state not in found[-1:]:
                found.append(step.state)
        return found


def _wait_for(pid: int) -> None:
    handle = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll()
    finally:
        os.close(handle)
