"""Processes of this project: known by their start, ended by a mark in their environment, or with their parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import select
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import subprocess

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
    """True where a process is between its old and its new program: neither ending nor the kernel's, yet nameless."""
    if (entry / "cmdline").read_bytes():
        return False
    fields = _stat(entry)
    return fields[0] not in "ZX" and not int(fields[6]) & (_ENDING | _KERNEL)


def _stat(entry: Path) -> list[str]:
    # The command's name may hold blanks and brackets: split after its last bracket.
    return (entry / "stat").read_text().rpartition(")")[2].split()


def mark_of(pid: int, variable: str) -> str:
    """A variable of a live process; empty without it, and for a process that is gone or another user's."""
    try:
        words = environment(Path(f"/proc/{pid}")).split(b"\0")
    except OSError:
        return ""
    # A zombie has no environment any more: it runs nothing and only waits for its parent.
    found = (word for word in words if word.startswith(f"{variable}=".encode()))
    return os.fsdecode(next(found, b"")).removeprefix(f"{variable}=")


def find_marked(variable: str, mark: str, *, prefix: bool = False) -> tuple[int, ...]:
    """Live processes whose variable is a mark, or begins with it; this process is left out."""
    own = str(os.getpid())
    names = (name for name in os.listdir("/proc") if name.isdigit() and name != own)  # noqa: PTH208 - names alone, thrice as fast
    return tuple(sorted(int(name) for name in names if _bears(int(name), variable, mark, prefix=prefix)))


def end_marked(variable: str, mark: str, *, prefix: bool = False) -> int:
    """Kills the processes that `find` finds, and what they start meanwhile, and waits for their ends; how many."""
    ended = 0
    while pids := find_marked(variable, mark, prefix=prefix):
        with contextlib.ExitStack() as handles:
            killed = [handle for pid in pids if (handle := _kill(pid, variable, mark, prefix, handles)) is not None]
            for handle in killed:
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                poll.poll(10_000)
        ended += len(killed)
    return ended


def _bears(pid: int, variable: str, mark: str, *, prefix: bool) -> bool:
    found = mark_of(pid, variable)
    return found.startswith(mark) if prefix else found == mark


def _kill(pid: int, variable: str, mark: str, prefix: bool, handles: contextlib.ExitStack) -> int | None:
    """Kills one process; a handle that becomes readable at its end, None when it was gone already."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        handles.callback(os.close, handle)
        # Through the handle, and looked at again: the number may be another process's by now.
        if _bears(pid, variable, mark, prefix=prefix):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return handle
    return None


MARK = "AMLSTACK_ENGINE"
"""Variable of everything that one run of the engine starts: ``<home>:<pid>:<its start time>:<word>``, where the process
is the one that runs the engine and follows it."""


def new_mark(home: Path) -> str:
    """The mark of a new run of the engine that this process will follow."""
    return f"{home}:{os.getpid()}:{started(os.getpid())}:{secrets.token_hex(8)}"


def find_leftovers(home: Path) -> tuple[int, ...]:
    """Live processes of all runs on a home."""
    return find_marked(MARK, f"{home}:", prefix=True)


def end_abandoned(home: Path) -> None:
    """Ends what runs on a home have started that no process follows any more: who started them was killed."""
    for mark in {mark_of(pid, MARK) for pid in find_leftovers(home)}:
        if mark and not _is_followed(mark):
            end_marked(MARK, mark)


def end_all(home: Path) -> int:
    """Ends the processes of all runs on a home; how many there were."""
    return end_marked(MARK, f"{home}:", prefix=True)


def _is_followed(mark: str) -> bool:
    _, pid, start, _ = mark.rsplit(":", 3)
    return str(started(int(pid))) == start


ASKED_BY: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the end of a CI job, a terminal that is closed."""


@contextlib.contextmanager
def interrupted_by_any() -> Iterator[None]:
    """Inside, each of `ASKED_BY` raises KeyboardInterrupt, unless this process was started to ignore it (nohup)."""
    others = [each for each in ASKED_BY if signal.getsignal(each) is signal.SIG_DFL]
    for each in others:
        signal.signal(each, signal.default_int_handler)
    try:
        yield
    finally:
        for each in others:
            signal.signal(each, signal.SIG_DFL)


_PATIENCE: Final = 2
"""So many are passed on as they are; one more kills the program."""


class Interruption:
    """True where this process was asked to end while it followed a program.

    Attributes:
        asked: How often.
    """

    def __init__(self) -> None:
        self.asked = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._listens = False
        self._held = False

    def attend(self, process: subprocess.Popen[bytes]) -> None:
        """Names the program. The first request waits until it listens; any further one does not."""
        self._process = process
        if self.asked >= _PATIENCE:
            self._pass_on()

    def listens(self, *, now: bool) -> None:
        """True where the program would take the first request as a request, and not die of it."""
        self._listens = now
        if now and self._held:
            self._held = False
            self._pass_on()

    def ask(self) -> None:
        """Takes one request to end."""
        self.asked += 1
        if self._process is None:
            self._held = self.asked == 1
        elif self._listens or self.asked > 1:
            self._pass_on()
        else:
            self._held = True

    def _pass_on(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT if self.asked <= _PATIENCE else signal.SIGKILL)


@contextlib.contextmanager
def passed_on() -> Iterator[Interruption]:
    """Until its end, requests to end this process go to the program that it attends, and raise nothing here.

    Only the main thread gets signals: elsewhere nothing is passed on.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def taken(number: int, frame: FrameType | None) -> None:
        del number, frame
        interruption.ask()

    # What ignores a signal (`nohup`, a shell's background) goes on doing so.
    before = {number: signal.getsignal(number) for number in ASKED_BY}
    taking = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    try:
        for number in taking:
            signal.signal(number, taken)
        yield interruption
    finally:
        for number in taking:
            signal.signal(number, before[number])


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
