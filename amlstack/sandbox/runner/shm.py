"""A node's /dev/shm as large as its container's would be: a tmpfs that its processes alone see.

Standard library only: `possible` runs this file by itself.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

DEFAULT = "2g"
"""What Azure ML gives a container whose job does not say."""

PLACE = "/dev/shm"  # noqa: S108 - it is mounted over

_NEW_NAMESPACE, _NEW_USER = 0x00020000, 0x10000000
_NO_SUID, _NO_DEVICES, _RECURSIVE, _PRIVATE = 2, 4, 16384, 1 << 18
_SET_DUMPABLE = 4
_SIZE = re.compile(r"(\d+)\s*([bkmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text: str) -> int | None:
    """Bytes of ``64g`` or ``512m``; None when it is no size."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].lower()] or None if found else None


def possible() -> bool:
    """Whether this machine lets a process have a /dev/shm of its own; asked in a process that ends at once."""
    return subprocess.run([sys.executable, "-I", "-S", __file__], capture_output=True, check=False).returncode == 0


def take(amount: int) -> None:
    """Gives this process and all that it starts from now on a /dev/shm of their own; it must have one thread.

    Where only root may mount, the process becomes root of a user namespace that holds its own user alone.

    Raises:
        OSError: The machine does not permit it; a process that tried is in an undefined state.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NAMESPACE) != 0:
        _check(libc.unshare(_NEW_NAMESPACE | _NEW_USER), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # its marks stay readable for whoever looks for strays
    _check(libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "mount")
    given = f"size={amount},mode=1777".encode()
    _check(libc.mount(b"tmpfs", PLACE.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, given), "mount")


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


if __name__ == "__main__":
    take(1 << 20)
