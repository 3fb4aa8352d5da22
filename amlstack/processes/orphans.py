"""Processes at the end of their parents: they end too, or get another parent."""

from __future__ import annotations

import ctypes
import os
import signal

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
