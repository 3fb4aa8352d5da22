"""Processes named so that a recycled pid is never taken for ours, and found again by a mark in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

MARK = "AMLSTACK_SANDBOX_JOB"
"""Every process started for a job carries ``AMLSTACK_SANDBOX_JOB=<home>:<job key>``."""

_ENDING, _KERNEL = 0x4, 0x200000
"""Flags of a process in /proc/PID/stat (PF_EXITING, PF_KTHREAD of the kernel's sched.h)."""

_LOOKS = 100_000
"""Then it is taken at its word: an older kernel lets a process run with no name and no environment at all."""

NODE = "AMLSTACK_SANDBOX_NODE"
"""The node's number, in every process that a node's agent starts."""


def started(pid: int) -> int | None:
    """The start time of a live process in clock ticks after boot (/proc/PID/stat, field 22); None when it is gone.

    A zombie counts as gone: it runs nothing and only waits for its parent.
    """
    try:
        # The command's name may hold blanks and brackets: split after its last bracket.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


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
            words = _environ(entry).split(b"\0")
            if any(word == wanted if job else word.startswith(wanted) for word in words):
                found.append(int(entry.name))
    return tuple(pid for pid in sorted(found) if started(pid) is not None)


def _environ(entry: Path) -> bytes:
    """The environment of a process; one that is just being executed shows none for a moment, and is looked at again."""
    for _ in range(_LOOKS):
        if words := (entry / "environ").read_bytes():
            return words
        if not _is_executed(entry):
            break  # or not any more
        os.sched_yield()
    return (entry / "environ").read_bytes()


def _is_executed(entry: Path) -> bool:
    """Whether a process is between its old program and its new one: neither ending nor the kernel's, yet nameless."""
    if (entry / "cmdline").read_bytes():
        return False
    fields = (entry / "stat").read_text().rpartition(")")[2].split()
    return fields[0] not in "ZX" and not int(fields[6]) & (_ENDING | _KERNEL)


def send(pid: int, sig: signal.Signals = signal.SIGTERM) -> None:
    """Signals one process; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)
