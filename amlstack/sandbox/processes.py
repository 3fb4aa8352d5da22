"""The processes of a sandbox's jobs, found by a mark in their environment or below their parent; and free ports."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import socket
from collections.abc import Mapping
from pathlib import Path

from amlstack import processes
from amlstack.processes import mark_of, started

__all__ = ["MARK", "NODE", "alive", "end_marked", "mark", "marked", "send", "started"]

MARK = "AMLSTACK_SANDBOX_JOB"
"""Every process started for a job carries its `mark` in this variable."""

NODE = "AMLSTACK_SANDBOX_NODE"
"""The node's number, in every process that a node's agent starts."""


def mark(home: Path, job: str | None = None) -> str:
    """``<home>:<job key>``; how the marks of all jobs of a home begin where no job is named."""
    return f"{home}:{job or ''}"


def marked(home: Path, job: str | None = None) -> tuple[int, ...]:
    """Live processes of one job, or of all jobs of a sandbox home."""
    return processes.find_marked(MARK, mark(home, job), prefix=job is None)


def end_marked(home: Path, job: str | None = None) -> int:
    """Kills the processes of one job, or of all jobs, and waits for their ends; how many there were."""
    return processes.end_marked(MARK, mark(home, job), prefix=job is None)


def alive(pid: int | None, start: int | None) -> bool:
    """True where exactly this process (pid and start time) still runs."""
    return pid is not None and start is not None and started(pid) == start


def send(pid: int, sig: signal.Signals = signal.SIGTERM) -> None:
    """Signals one process; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)


PORTS = range(20_000, 32_000)
"""The range that they are taken from: below the range that the kernel gives to outgoing connections."""


def free_port() -> int:
    """A port that is free now; drawn at random, so that two jobs hardly ever draw the same."""
    draw = random.SystemRandom()
    while True:
        port = draw.choice(PORTS)
        if _unused(socket.AF_INET, "0.0.0.0", port) and _unused(socket.AF_INET6, "::", port):  # noqa: S104 - only tried
            return port


def free_ports(count: int) -> tuple[int, ...]:
    """As many different ports."""
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return tuple(found)


def _unused(family: socket.AddressFamily, address: str, port: int) -> bool:
    """True where the port can be bound on all addresses of a family; a family that the machine lacks takes no port."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind((address, port))
    except OSError as error:
        return error.errno not in (errno.EADDRINUSE, errno.EACCES)
    return True


def living() -> dict[int, list[bytes]]:
    """Every process that is no zombie, by its pid: the fields of /proc/PID/stat from its state on."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names alone, thrice as fast
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):  # gone meanwhile
                # The command's name may hold blanks and brackets: split after its last bracket.
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    found[int(name)] = fields
    return found


def descendants(root: int, among: Mapping[int, list[bytes]] | None = None) -> tuple[int, ...]:
    """All living processes below one, parents before children; ``among`` is what `living` found."""
    children: dict[int, list[int]] = {}
    for pid, fields in (living() if among is None else among).items():
        children.setdefault(int(fields[1]), []).append(pid)
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
            send(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def wipe_node(node: int) -> None:
    """Kills what one node has left below this process, once its agent is gone."""
    for pid in descendants(os.getpid()):
        if mark_of(pid, NODE) == str(node):
            send(pid, signal.SIGKILL)
