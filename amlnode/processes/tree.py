"""Processes below this one: ending with it, finding them, and an heir that ends them should it be killed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

_NAME, _DEATH_SIGNAL, _SUBREAPER = 15, 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Makes this process the new parent of every descendant whose own parent ends."""
    _libc.prctl(_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """For a child before exec: SIGKILL as soon as its parent ends."""
    _libc.prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


class Heir:
    """A second process that kills the ranks' groups when this one is killed: a pipe carries both."""

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._writer)
            _wait_for_inheritance(reader)
        os.close(reader)

    def watch(self, group: int) -> None:
        """Name a process group of this process."""
        os.write(self._writer, b"%d\n" % group)

    def dismiss(self) -> None:
        """All has ended well: nothing is left to kill."""
        os.write(self._writer, b"done\n")
        os.close(self._writer)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _wait_for_inheritance(reader: int) -> None:
    """What the forked heir does; never returns."""
    try:
        os.setsid()
        _libc.prctl(_NAME, b"amlnode-heir", 0, 0, 0)
        for number in range(1, 32):
            if number in (signal.SIGKILL, signal.SIGSTOP):
                continue
            signal.signal(number, signal.SIG_IGN)
        # The ranks' pipes and the launcher's own output must end with their owners, not with the heir.
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        received = b""
        while chunk := os.read(reader, 4096):
            received += chunk
        words = received.split()
        if b"done" not in words:
            for word in words:
                with contextlib.suppress(OSError):
                    os.killpg(int(word), signal.SIGKILL)
    finally:
        os._exit(0)


def kill_below(spare: int) -> None:
    """SIGKILL to everything below this process; ``spare`` and what is below it left out."""
    for pid in descendants(os.getpid(), spare=spare):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def reap_one(spare: int) -> bool:
    """Wait for the end of one child; False when the heir alone is left."""
    for pid in _tree().get(os.getpid(), []):
        if pid != spare:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            return True
    return False


def descendants(root: int, *, spare: int) -> list[int]:
    """All processes below one, zombies too; ``spare`` and what is below it left out."""
    tree, found, front = _tree(), [], [root]
    while front:
        front = [child for parent in front for child in tree.get(parent, ()) if child != spare]
        found += front
    return found


def _tree() -> dict[int, list[int]]:
    """Children by parent, zombies too."""
    tree: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names alone, thrice as fast
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                # The command's name may hold blanks and brackets: split after its last bracket.
                parent = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1]
                tree.setdefault(int(parent), []).append(int(name))
    return tree
