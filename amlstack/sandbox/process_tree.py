"""Owning a tree of processes: death together, adopting orphans, killing all that is left."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from amlstack.processes import mark_of
from amlstack.sandbox import processes


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
        if mark_of(pid, processes.NODE) == str(node):
            processes.send(pid, signal.SIGKILL)
