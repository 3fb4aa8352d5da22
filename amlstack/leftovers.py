"""Processes that a killed engine leaves behind, found by a mark in their environment.

An engine starts language hosts, plugins and policy packs, each in a process group of its own. Killed, it ends none of
them: plugins notice, but a language host looks for its engine every few minutes, and a policy pack never does.
"""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

MARK = "AMLSTACK_ENGINE"
"""Variable of everything that one run of the engine starts; its value names the home and the run."""


def find(mark: str) -> tuple[int, ...]:
    """Live processes whose mark begins so, this one left out."""
    own = str(os.getpid())
    pids = (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.name != own)
    return tuple(sorted(int(pid) for pid in pids if _is_marked(int(pid), mark)))


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


def _is_marked(pid: int, mark: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        # A zombie has no environment any more: it runs nothing and only waits for its parent.
        return any(word.startswith(f"{MARK}={mark}".encode()) for word in words)
    except OSError:  # gone meanwhile, or another user's
        return False


def _kill(pid: int, mark: str) -> int:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return 0
    try:
        # Through the handle, and looked at again: the number may be somebody else's by now.
        if not _is_marked(pid, mark):
            return 0
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [])
    except ProcessLookupError:
        return 0
    finally:
        os.close(process)
    return 1
