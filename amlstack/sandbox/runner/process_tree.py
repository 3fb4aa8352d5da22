"""Owning a tree of processes: death together, adopting orphans, killing all that is left."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

from amlstack.processes import marks
from amlstack.sandbox.server import processes

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Loaded at import: between fork and exec nothing may take a lock that another thread could hold.
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """For a child before exec: SIGKILL as soon as its parent ends, however that ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def adopt_orphans() -> None:
    """Makes this process the new parent of every descendant whose own parent ends (subreaper)."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def descendants(root: int) -> tuple[int, ...]:
    """All living processes below one, parents before children."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names alone, thrice as fast
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):  # gone meanwhile
            # The command's name may hold blanks and brackets: split after its last bracket.
            state, parent = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[:2]
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    front = [root]
    while front:
        front = [child for parent in front for child in children.get(parent, ())]
        found += front
    return tuple(found)


def wipe() -> None:
    """Kills and reaps everything below this process until nothing is left; needs `adopt_orphans`."""
    while True:
        for pid in descendants(os.getpid()):
            processes.send(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def wipe_node(node: int) -> None:
    """Kills what one node has left below this process, once its agent is gone."""
    for pid in descendants(os.getpid()):
        if marks.value(pid, processes.NODE) == str(node):
            processes.send(pid, signal.SIGKILL)
