"""The sandbox's home: claimed with a marker file before anything is written, and only what is known in it is removed.

``AMLSTACK_HOME`` may name any folder, a person's own among them. A folder is ours when it holds the marker. An empty or
missing one becomes ours at the first use.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Final

from amlstack.base import paths

MARKER: Final = "amlstack-home.json"
"""The file that proves a folder to be ours. It holds ``made``: whether we made the folder, and may remove it too."""

FOLDERS: Final = ("sandbox", "pulumi", "pulumi-home", "stacks", "reports")
"""The sandbox's state and jobs, Pulumi's file backend, Pulumi's own home, the states of other stacks on the sandbox,
pages that `amlstack report` wrote."""
OTHERS: Final = 0o077
"""Bits that only the owner has in `FOLDERS`: a mode, and the umask of the processes that write there."""
LOCK: Final = "sandbox.lock"
"""The file that a start of the sandbox locks."""

SITE: Final = "slurm-profile.json"
"""The profile by which Slurm gives all jobs of the sandbox their nodes; without the file they run on this machine."""

_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - nothing is written there
"""Each node of the sandbox mounts a `/dev/shm` of its own, so its jobs see nothing that the machine keeps there."""

_KIND: Final = "home of an amlstack sandbox"


class ForeignHomeError(Exception):
    """The folder is not ours, or cannot be used; the message is for the user."""


def check(home: Path) -> None:
    """Makes sure that a folder is ours or may become so; writes nothing.

    Raises:
        ForeignHomeError: It holds files that no sandbox wrote, it is no folder, or jobs would not see it.
    """
    if home.resolve().is_relative_to(_SHARED_MEMORY) and not is_ours(home):
        raise ForeignHomeError(
            f"{home} lies in {_SHARED_MEMORY}. Each node of the sandbox has a {_SHARED_MEMORY} of its own, "
            "so jobs would not find their files. Set AMLSTACK_HOME to a folder on a disk, or on another tmpfs."
        )
    names = _entries(home)
    if not names or is_ours(home):  # in this order: another process may claim it and write between the two looks
        return
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    raise ForeignHomeError(
        f"{home} holds {shown} and no {MARKER}. A sandbox keeps its files in a folder of its own, which "
        "`amlstack down` removes; a folder with other files is neither used nor removed. "
        "Set AMLSTACK_HOME to a new or empty folder."
    )


def claim(home: Path) -> None:
    """Makes a folder ours before anything is written into it. May be called by several processes at once.

    Raises:
        ForeignHomeError: As `check`, or it cannot be written.
    """
    if is_ours(home):
        return
    check(home)
    try:
        made = _make(home) or home == paths.PROJECT / ".amlstack"
        fresh = home / f"{MARKER}.{os.urandom(4).hex()}"
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps({"kind": _KIND, "made": made}) + "\n", "utf-8")
        if made:  # also over the marker of a process that found the folder between its making and this line
            fresh.replace(home / MARKER)
            return
        with contextlib.suppress(FileExistsError):
            (home / MARKER).hardlink_to(fresh)
        fresh.unlink()
    except OSError as error:
        raise _unusable(home, error) from None


def _make(home: Path) -> bool:
    """Make a folder; whether it was this process that made it."""
    home.parent.mkdir(parents=True, exist_ok=True)
    try:
        home.mkdir(mode=0o700)
    except FileExistsError:
        if not home.is_dir():
            raise
        return False
    return True


def is_ours(home: Path) -> bool:
    """True where the folder holds our marker."""
    return _marker(home) is not None


def is_used(home: Path) -> bool:
    """True where the folder is a home of ours that holds anything beside its marker.

    Raises:
        ForeignHomeError: It holds files and is none of ours.
    """
    check(home)
    return any(name in (*FOLDERS, LOCK) for name in _entries(home))


def close(home: Path) -> None:
    """Takes what others may do away from what a sandbox keeps, wherever the home lies and whoever may enter that.

    Folders that engines write into are gone through: `pulumi` of a shell with an ordinary umask writes for all to read.

    Raises:
        ForeignHomeError: A mode cannot be changed.
    """
    try:
        for name in FOLDERS:
            top = home / name
            if top.is_symlink() or not top.is_dir():
                continue  # what a link leads to was put there by somebody
            _close(top)
            if name not in {"sandbox", "pulumi-home"}:  # closed at their tops; there may be many files in them
                for folder, folders, files in os.walk(top):
                    for each in (*folders, *files):
                        _close(Path(folder) / each)
    except OSError as error:
        raise _unusable(home, error) from None


def _close(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # another process has removed it
        mode = path.lstat().st_mode
        if mode & OTHERS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)


def remove_folder(home: Path, name: str) -> None:
    """Removes one of `FOLDERS` of a home. Of a link only the link goes: what it leads to was put there by somebody.

    Raises:
        ForeignHomeError: The home is none of ours.
    """
    claim(home)
    path = home / name
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def remove(home: Path) -> tuple[str, ...]:
    """Removes what a sandbox writes, and the folder itself when we made it and nothing else is in it.

    Returns:
        Names of what is left in it because no sandbox wrote it; the marker stays beside those.

    Raises:
        ForeignHomeError: The home is none of ours.
    """
    claim(home)
    made = bool((_marker(home) or {}).get("made"))
    for name in FOLDERS:
        remove_folder(home, name)
    for name in (LOCK, SITE):
        (home / name).unlink(missing_ok=True)
    left = tuple(_entries(home))
    if not left:
        for path in home.glob(f"{MARKER}*"):  # also what processes left that were killed while they wrote one
            path.unlink(missing_ok=True)
        if made:
            with contextlib.suppress(OSError):  # somebody put something there meanwhile
                home.rmdir()
    return left


def _marker(home: Path) -> dict[str, object] | None:
    try:
        content = json.loads((home / MARKER).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and content.get("kind") == _KIND else None


def _entries(home: Path) -> list[str]:
    """Names in a folder, the marker's left out; empty when there is no folder."""
    try:
        return sorted(path.name for path in home.iterdir() if not path.name.startswith(MARKER))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(home, error) from None


def _unusable(home: Path, error: OSError) -> ForeignHomeError:
    return ForeignHomeError(
        f"{home} cannot be used: {error.strerror}. The sandbox keeps its files in this folder. "
        "Set AMLSTACK_HOME to a folder that you can write."
    )
