"""Processes found, and ended, by a mark: a variable in their environment, which whatever they start inherits."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from pathlib import Path

from amlstack.processes import procfs


def value(pid: int, variable: str) -> str:
    """A variable of a live process; empty without it, and for a process that is gone or another user's."""
    try:
        words = procfs.environment(Path(f"/proc/{pid}")).split(b"\0")
    except OSError:
        return ""
    # A zombie has no environment any more: it runs nothing and only waits for its parent.
    found = (word for word in words if word.startswith(f"{variable}=".encode()))
    return os.fsdecode(next(found, b"")).removeprefix(f"{variable}=")


def find(variable: str, mark: str, *, prefix: bool = False) -> tuple[int, ...]:
    """Live processes whose variable is a mark, or begins with it; this process is left out."""
    own = str(os.getpid())
    names = (name for name in os.listdir("/proc") if name.isdigit() and name != own)  # noqa: PTH208 - names alone, thrice as fast
    return tuple(sorted(int(name) for name in names if _bears(int(name), variable, mark, prefix=prefix)))


def end(variable: str, mark: str, *, prefix: bool = False) -> int:
    """Kills the processes that `find` finds, and what they start meanwhile, and waits for their ends; how many."""
    ended = 0
    while pids := find(variable, mark, prefix=prefix):
        with contextlib.ExitStack() as handles:
            killed = [handle for pid in pids if (handle := _kill(pid, variable, mark, prefix, handles)) is not None]
            for handle in killed:
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                poll.poll(10_000)
        ended += len(killed)
    return ended


def _bears(pid: int, variable: str, mark: str, *, prefix: bool) -> bool:
    found = value(pid, variable)
    return found.startswith(mark) if prefix else found == mark


def _kill(pid: int, variable: str, mark: str, prefix: bool, handles: contextlib.ExitStack) -> int | None:
    """Kills one process; a handle that becomes readable at its end, None when it was gone already."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        handles.callback(os.close, handle)
        # Through the handle, and looked at again: the number may be another process's by now.
        if _bears(pid, variable, mark, prefix=prefix):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return handle
    return None
