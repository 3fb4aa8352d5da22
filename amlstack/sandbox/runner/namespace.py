"""A node's own view of the file system: its /dev/shm, the inputs that are mounted read-only, and its own folders.

All are mounts in a namespace of the node's agent, so that its processes alone see them and they end with it.
Standard library only: `possible` runs this file by itself.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - it is mounted over

_NEW_NAMESPACE, _NEW_USER = 0x00020000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_KEPT = {"nosuid": 2, "nodev": 4, "noexec": 8}
"""Flags by their names in mountinfo. In a user namespace a mount that has one must keep it; how access times are kept
stays as it is unless named."""
_SET_DUMPABLE = 4


def possible(places: Iterable[Path] = ()) -> bool:
    """True where this machine lets a process have a /dev/shm of its own, and these places read-only.

    It is asked in a process that ends at once.
    """
    command = [sys.executable, "-I", "-S", __file__, *map(str, places)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def take(shm: int | None, mounts: Sequence[tuple[str, str]], own: Sequence[tuple[str, str]] = ()) -> None:
    """Gives this process and all that it starts from now on their own view; it must have one thread.

    Where only root may mount, the process becomes root of a user namespace that holds its own user alone.

    Args:
        shm: Bytes of /dev/shm; None for the machine's own.
        mounts: Source and target of what is mounted read-only, in this order; both are folders, or both are files.
        own: The same of what is mounted to be written.

    Raises:
        OSError: The machine does not permit it; a process that tried is in an undefined state.
    """
    if shm is None and not mounts and not own:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NAMESPACE) != 0:
        _check(libc.unshare(_NEW_NAMESPACE | _NEW_USER), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # its marks stay readable for the search for stray processes
    _check(libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "mount")
    if shm is not None:
        given = f"size={shm},mode=1777".encode()
        flags = _KEPT["nosuid"] | _KEPT["nodev"]
        _check(libc.mount(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", flags, given), "mount")
    for source, target in own:
        _check(libc.mount(os.fsencode(source), os.fsencode(target), None, _BIND | _RECURSIVE, None), f"mount {source}")
    for source, target in mounts:
        # With what is mounted below it: in a user namespace those mounts cannot be left out.
        _check(libc.mount(os.fsencode(source), os.fsencode(target), None, _BIND | _RECURSIVE, None), f"mount {source}")
        for place, flags in _mounted(os.path.realpath(target)):
            remount = _REMOUNT | _BIND | _READ_ONLY | flags
            _check(libc.mount(b"none", os.fsencode(place), None, remount, None), f"remount {place}")


def _mounted(top: str) -> list[tuple[str, int]]:
    """Every mount at or below a folder, with the flags that it must keep."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        words = line.split(" ")
        place = _plain(words[4])
        if place == top or place.startswith(top.rstrip("/") + "/"):
            found.append((place, sum(_KEPT.get(word, 0) for word in words[5].split(","))))
    return found


def _plain(text: str) -> str:
    """A path of mountinfo, where a blank, tab, line break and backslash are octal numbers."""
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


if __name__ == "__main__":
    take(1 << 20, [(place, place) for place in sys.argv[1:]])
