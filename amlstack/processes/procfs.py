"""What /proc tells of a process: when it started, so that its number names it for ever, and its environment."""

from __future__ import annotations

import os
from pathlib import Path

_ENDING, _KERNEL = 0x4, 0x200000
"""Flags of a process in /proc/PID/stat (PF_EXITING, PF_KTHREAD of the kernel's sched.h)."""

_LOOKS = 100_000
"""Reads after which an empty environment counts as empty: on an older kernel a process may have none, nor a name."""


def started(pid: int) -> int | None:
    """The start time of a live process in clock ticks after boot (/proc/PID/stat, field 22); None when it is gone.

    A zombie counts as gone: it runs nothing and only waits for its parent.
    """
    try:
        fields = _stat(Path(f"/proc/{pid}"))
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def environment(entry: Path) -> bytes:
    """The environment of a process; one that is just being executed shows none for a moment, and is looked at again.

    Args:
        entry: ``/proc/PID``.

    Raises:
        OSError: The process is gone, or another user's.
    """
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
    fields = _stat(entry)
    return fields[0] not in "ZX" and not int(fields[6]) & (_ENDING | _KERNEL)


def _stat(entry: Path) -> list[str]:
    # The command's name may hold blanks and brackets: split after its last bracket.
    return (entry / "stat").read_text().rpartition(")")[2].split()
