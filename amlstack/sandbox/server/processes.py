"""The processes of a sandbox's jobs, named by pid and start time, and found by a mark in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

from amlstack import processes
from amlstack.processes import started

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MARK", "NODE", "alive", "end_marked", "mark", "marked", "send", "started"]

MARK = "AMLSTACK_SANDBOX_JOB"
"""Every process started for a job carries its `mark` in this variable."""

NODE = "AMLSTACK_SANDBOX_NODE"
"""The node's number, in every process that a node's agent starts."""


def mark(home: Path, job: str | None = None) -> str:
    """``<home>:<job key>``; how the marks of all jobs of a home begin where no job is named."""
    return f"{home}:{job or ''}"


def marked(home: Path, job: str | None = None) -> tuple[int, ...]:
    """Live processes of one job, or of all jobs of a sandbox home."""
    return processes.find_marked(MARK, mark(home, job), prefix=job is None)


def end_marked(home: Path, job: str | None = None) -> int:
    """Kills the processes of one job, or of all jobs, and waits for their ends; how many there were."""
    return processes.end_marked(MARK, mark(home, job), prefix=job is None)


def alive(pid: int | None, start: int | None) -> bool:
    """Whether exactly this process (pid and start time) still runs."""
    return pid is not None and start is not None and started(pid) == start


def send(pid: int, sig: signal.Signals = signal.SIGTERM) -> None:
    """Signals one process; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)
