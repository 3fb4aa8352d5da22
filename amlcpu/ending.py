"""A process that met others over gloo ends only when gloo's threads have let go of what belongs to Python.

A thread that has just finished a transfer still frees the transfer's tensors. If the interpreter ends first, the
thread ends the process with SIGABRT ("terminate called without an active exception",
https://github.com/pytorch/pytorch/pull/179291). Busy machines show it often; with NCCL, on Azure, it does not happen.
"""

from __future__ import annotations

import atexit
import os
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 2.0
"""Seconds after which a process ends whatever its threads do: some compute until the last moment."""
_PAUSE = 0.001
_QUIET_LOOKS = 2  # at the first, a thread may wait for the interpreter's lock, which is free between two looks
_registered = False


def wait_at_exit() -> None:
    """Has this process wait for its threads when it ends; once, however many groups it makes."""
    global _registered  # noqa: PLW0603
    if not _registered:
        _registered = True
        atexit.register(wait)


def wait(running: Callable[[], bool] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
    """Returns when no other thread of this process has anything to do, or after `LONGEST`.

    Args:
        running: Whether another thread runs or wants to; by default the system's word.
        clock: Seconds from any start.
    """
    end, quiet = clock() + LONGEST, 0
    while quiet < _QUIET_LOOKS and clock() < end:
        time.sleep(_PAUSE)  # frees the interpreter's lock for whoever waits for it
        quiet = 0 if (running or others_run)() else quiet + 1


def others_run() -> bool:
    """True where a thread of this process other than the caller's runs, or is ready to."""
    own = os.readlink("/proc/thread-self").rpartition("/")[2]
    for task in Path("/proc/self/task").iterdir():
        if task.name == own:
            continue
        try:
            stat = (task / "stat").read_bytes()
        except OSError:  # it has ended
            continue
        # The state follows the name, which is in brackets and may hold any character.
        if stat.rpartition(b")")[2].split()[0] in (b"R", b"D"):
            return True
    return False
