"""Processes below this one: started, ended together, never left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

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
    """Do the forked heir's work; never returns."""
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


FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LONGEST_LINE = 1 << 16
"""A line without an end (a progress bar) is passed on when it is this long."""


@dataclass(frozen=True)
class Member:
    """One rank to start: its number among all, the command, the whole environment."""

    rank: int
    command: Sequence[str]
    environ: Mapping[str, str]


@dataclass
class _Running:
    rank: int
    process: subprocess.Popen[bytes]
    pending: dict[int, bytes] = field(default_factory=dict)


def supervise(members: Sequence[Member], *, grace: float) -> int:
    """Run them to their end.

    The first that fails ends the others: SIGTERM to their process groups, SIGKILL after ``grace`` seconds. Signals that
    reach this process go to all of them. Whatever they have started is killed at the end, also when this process is
    itself killed.

    Returns:
        0 when all ended well, else the exit code of the first that failed; 128 + n when signal n killed it.
    """
    adopt_orphans()
    ranks = _Ranks(grace)
    with _wakes(ranks) as wake:
        try:
            for member in members:
                if not ranks.code:
                    ranks.start(member)
            ranks.run(wake)
        finally:
            ranks.wipe()
    return ranks.code


class _Ranks:
    def __init__(self, grace: float) -> None:
        self.grace = grace
        self.code = 0
        self.running: list[_Running] = []
        self.deadline: float | None = None
        self.received: list[int] = []
        self.selector = selectors.DefaultSelector()
        self.heir = Heir()

    def start(self, member: Member) -> None:
        try:
            process = subprocess.Popen(
                member.command,
                env=dict(member.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
            )
        except OSError as error:
            _write_line(sys.stderr, member.rank, f"{member.command[0]}: {error.strerror}\n".encode())
            self.failed(127)
            return
        self.heir.watch(process.pid)
        one = _Running(member.rank, process)
        self.running.append(one)
        for pipe, out in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self.selector.register(pipe, selectors.EVENT_READ, (one, out))

    def run(self, wake: int) -> None:
        """Until every rank has ended and its output is passed on."""
        self.selector.register(wake, selectors.EVENT_READ, None)
        while self.running:
            left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
            for key, _ in self.selector.select(left):
                if key.data is None:
                    os.read(wake, 4096)
                else:
                    self.carry(key)
            for number in self.taken():
                self.pass_on(number)
            self.reap()
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.signal(signal.SIGKILL)

    def carry(self, key: selectors.SelectorKey) -> bool:
        """Pass on a rank's output, in complete lines with its number in front; whether there may be more at once."""
        one, out = key.data
        try:
            chunk = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return False
        text = one.pending.pop(key.fd, b"") + chunk
        *lines, rest = text.split(b"\n")
        for line in lines:
            _write_line(out, one.rank, line + b"\n")
        if rest and (not chunk or len(rest) >= LONGEST_LINE):
            _write_line(out, one.rank, rest + b"\n")
        elif rest:
            one.pending[key.fd] = rest
        if not chunk:
            self.selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
        return bool(chunk)

    def drain(self, one: _Running) -> None:
        """Pass on all output of a rank so far."""
        for key in tuple(self.selector.get_map().values()):
            if key.data is not None and key.data[0] is one:
                while self.carry(key):
                    pass

    def taken(self) -> list[int]:
        taken, self.received = self.received, []
        return taken

    def pass_on(self, number: int) -> None:
        self.signal(number)
        if number in ENDING and self.deadline is None:
            self.deadline = time.monotonic() + self.grace

    def signal(self, number: int) -> None:
        for one in self.running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(one.process.pid, number)

    def reap(self) -> None:
        for one in tuple(self.running):
            code = one.process.poll()
            if code is None:
                continue
            self.running.remove(one)
            # What it left behind in its group holds its pipes open and would never end by itself.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(one.process.pid, signal.SIGKILL)
            self.drain(one)
            if code:
                how = f"was killed by {_name(-code)}" if code < 0 else f"exited with code {code}"
                first = self.code == 0
                _write_line(
                    sys.stderr, one.rank, f"{how}{'; ending the others' if first and self.running else ''}\n".encode()
                )
                self.failed(128 - code if code < 0 else code)

    def failed(self, code: int) -> None:
        if self.code:
            return
        self.code = code
        if self.deadline is None:
            self.pass_on(signal.SIGTERM)

    def wipe(self) -> None:
        """Kill and reap everything below this process, then pass on the last lines."""
        self.signal(signal.SIGKILL)
        while True:
            kill_below(self.heir.pid)
            for one in self.running:
                one.process.poll()
            if not reap_one(self.heir.pid):
                break
        for key in tuple(self.selector.get_map().values()):
            while key.data is not None and self.carry(key):
                pass
        self.selector.close()
        self.heir.dismiss()


@contextlib.contextmanager
def _wakes(ranks: _Ranks) -> Iterator[int]:
    """Signals wake the selector through a pipe and are kept for `_Ranks.taken`; yields the pipe's reading end."""
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)

    def keep(number: int, frame: FrameType | None) -> None:
        del frame
        ranks.received.append(number)

    before = {number: signal.signal(number, keep) for number in FORWARDED}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    old = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


def _write_line(out: IO[str], rank: int, line: bytes) -> None:
    """One line, written at once, so that lines of two ranks never mix."""
    with contextlib.suppress(BrokenPipeError):
        out.buffer.write(b"[rank %d]: " % rank + line)  # type: ignore[attr-defined]
        out.flush()


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
