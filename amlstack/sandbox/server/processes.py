"""Processes named so that a recycled pid is never taken for ours, and found again by a mark in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from amlstack.processes.procfs import environment, started

__all__ = ["MARK", "NODE", "alive", "marked", "send", "started"]

MARK = "AMLSTACK_SANDBOX_JOB"
"""Every process started for a job carries ``AMLSTACK_SANDBOX_JOB=<home>:<job key>``."""

NODE = "AMLSTACK_SANDBOX_NODE"
"""The node's number, in every process that a node's agent starts."""


def alive(pid: int | None, start: int | None) -> bool:
    """Whether exactly this process (pid and start time) still runs."""
    return pid is not None and start is not None and started(pid) == start


def marked(home: Path, job: str | None = None) -> tuple[int, ...]:
    """Live processes of one job, or of all jobs of a sandbox home, by the mark in their environment."""
    wanted = f"{MARK}={home}:{job or ''}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # gone meanwhile, or another user's
            words = environment(entry).split(b"\0")
            if any(word == wanted if job else word.startswith(wanted) for word in words):
                found.append(int(entry.name))
    return tuple(pid for pid in sorted(found) if started(pid) is not None)


def send(pid: int, sig: signal.Signals = signal.SIGTERM) -> None:
    """Signals one process; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)
