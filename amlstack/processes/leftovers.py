"""Processes that a killed engine leaves behind, found by a mark in their environment.

An engine starts language hosts, plugins and policy packs, each in a process group of its own. Killed, it ends none of
them: plugins notice, but a language host looks for its engine every few minutes, and a policy pack never does.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
from pathlib import Path

from amlstack.processes import procfs

MARK = "AMLSTACK_ENGINE"
"""Variable of everything that one run of the engine starts: ``<home>:<pid>:<its start time>:<word>``, where the process
is the one that runs the engine and follows it."""


def fresh(home: Path) -> str:
    """The mark of a new run of the engine that this process will follow."""
    return f"{home}:{os.getpid()}:{started(os.getpid())}:{secrets.token_hex(8)}"


def abandoned(home: Path) -> tuple[str, ...]:
    """Marks of runs on a home that nobody follows any more: who started them was killed."""
    marks = {_mark(pid) for pid in find(f"{home}:")}
    return tuple(sorted(mark for mark in marks if mark and not _is_followed(mark)))


def find(mark: str) -> tuple[int, ...]:
    """Live processes whose mark begins so, this one left out."""
    own = str(os.getpid())
    pids = (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.name != own)
    return tuple(sorted(int(pid) for pid in pids if _mark(int(pid)).startswith(mark)))


def end(mark: str) -> int:
    """Kill the processes whose mark begins so, and what they start meanwhile; they have nobody left to answer to.

    Returns:
        How many there were.
    """
    ended = 0
    while pids := find(mark):
        for pid in pids:
            ended += _kill(pid, mark)
    return ended


def started(pid: int) -> str:
    """When a live process started, in clock ticks after boot; with its number it names it for ever. Empty when gone."""
    start = procfs.started(pid)
    return "" if start is None else str(start)


def _mark(pid: int) -> str:
    """The mark of a live process; empty for one that has none."""
    try:
        words = procfs.environment(Path(f"/proc/{pid}")).split(b"\0")
    except OSError:  # gone meanwhile, or another user's
        return ""
    # A zombie has no environment any more: it runs nothing and only waits for its parent.
    found = (os.fsdecode(word) for word in words if word.startswith(f"{MARK}=".encode()))
    return next(found, "").removeprefix(f"{MARK}=")


def _is_followed(mark: str) -> bool:
    _, pid, start, _ = mark.rsplit(":", 3)
    return started(int(pid)) == start


def _kill(pid: int, mark: str) -> int:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return 0
    try:
        # Through the handle, and looked at again: the number may be somebody else's by now.
        if not _mark(pid).startswith(mark):
            return 0
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [])
    except ProcessLookupError:
        return 0
    finally:
        os.close(process)
    return 1
