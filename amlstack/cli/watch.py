"""Wakes whoever follows files when they change: inotify, reached through libc since Python has no word for it."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

GATHER_SECONDS = 0.02
"""Between two wakes at least: a rank that prints a thousand lines is looked at a few times only."""
LONGEST_SECONDS = 5.0
"""Without any change: then too it is looked whether who makes the changes is still there."""
POLL_SECONDS = 0.25
"""Between two looks on a machine whose inotify instances are used up."""

_CHANGES = 0x2 | 0x8 | 0x80 | 0x100
"""IN_MODIFY, IN_CLOSE_WRITE, IN_MOVED_TO and IN_CREATE of the kernel's inotify.h."""
_LOST = 0x4000
"""IN_Q_OVERFLOW: more has changed than was told."""
_EVENT = struct.Struct("iIII")


class Watch:
    """Changes of the files in some folders.

    Name the folders with `cover` before looking at their files and `wait` after it: what changes in between is not
    missed.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self._woken = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def cover(self, folders: Iterable[Path]) -> None:
        """Watch these folders too; one that is not there is passed over, one that is watched already costs nothing."""
        for folder in folders if self._handle >= 0 else ():
            self._libc.inotify_add_watch(self._handle, os.fsencode(folder), _CHANGES)

    def wait(self, seconds: float | None = None) -> frozenset[str] | None:
        """Returns after a change, or when time is up.

        Args:
            seconds: How long at most; None for `LONGEST_SECONDS`.

        Returns:
            Names of the files that changed, without their folders; None when it is not known what did.
        """
        if self._handle < 0:
            time.sleep(POLL_SECONDS)
            return None
        limit = LONGEST_SECONDS if seconds is None else max(0.0, seconds)
        if not select.select([self._handle], [], [], limit)[0]:
            return None
        time.sleep(max(0.0, self._woken + GATHER_SECONDS - time.monotonic()))
        self._woken = time.monotonic()
        return self._names()

    def _names(self) -> frozenset[str] | None:
        names: set[str] = set()
        lost = False
        while True:
            try:
                told = os.read(self._handle, 65536)
            except BlockingIOError:
                return None if lost else frozenset(names)
            at = 0
            while at < len(told):
                _, kind, _, length = _EVENT.unpack_from(told, at)
                at += _EVENT.size
                names.add(os.fsdecode(told[at : at + length].rstrip(b"\0")))
                at += length
                lost = lost or bool(kind & _LOST)
