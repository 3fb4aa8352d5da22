"""Ports chosen afresh: a job's MASTER_PORT, so that two rehearsals never meet on one, and the server's first."""

from __future__ import annotations

import errno
import random
import socket

PORTS = range(20_000, 32_000)
"""Where they are taken from: below the range that the kernel gives to outgoing connections."""


def free() -> int:
    """A port that is free now; drawn at random, so that two jobs hardly ever draw the same."""
    draw = random.SystemRandom()
    while True:
        port = draw.choice(PORTS)
        if _unused(socket.AF_INET, "0.0.0.0", port) and _unused(socket.AF_INET6, "::", port):  # noqa: S104 - only tried
            return port


def several(count: int) -> tuple[int, ...]:
    """As many different ports."""
    found: set[int] = set()
    while len(found) < count:
        found.add(free())
    return tuple(found)


def _unused(family: socket.AddressFamily, address: str, port: int) -> bool:
    """Whether the port can be bound on all addresses of a family; a family that the machine lacks takes no port."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind((address, port))
    except OSError as error:
        return error.errno not in (errno.EADDRINUSE, errno.EACCES)
    return True
