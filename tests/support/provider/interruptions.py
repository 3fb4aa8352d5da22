"""Every operation of the provider, interrupted in each of its requests: it ends while the request is still in flight.

As the matrix of faults does, an operation is run once to find its requests. Each of them is then held in turn, after it
has taken effect, and the engine's Cancel comes while it is. The operation has to end before the request is answered; a
plain re-run has to come to the same end as without an interruption, with nothing made twice.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from google.protobuf import empty_pb2

from tests.support.provider.fake_arm import Failure
from tests.support.provider.fault_matrix import bench, prepared, requests_of
from tests.support.provider.provider_wire import LIMIT, Refused

if TYPE_CHECKING:
    from typing import Any

    from tests.support.provider.fault_matrix import Operation

BOUND: Final = 3.0
"""Seconds from a Ctrl-C, or from the answer that was awaited, to the end: `make interruptions` fails beyond them.

Ten times what docs/maintain/faults.md shows. `make test` plays a part of the same and looks at no clock.
"""
ENDED: Final = ("ABORTED", "CANCELLED")
"""The answers to the engine; a resource that is made and was waited for is answered as made, with the reason."""


@dataclass
class InterruptedOperation:
    """One operation, interrupted once in each of its requests.

    Attributes:
        seconds: From Cancel to the operation's end, one for each request.
        wrong: What is other than it has to be, in words.
    """

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def too_slow(seconds: float) -> list[str]:
    """The faults of an end after so many seconds, in words."""
    return [f"{seconds:.2f} s to the end, and {BOUND:.0f} s are the bound"] if seconds > BOUND else []


def interrupted(operation: Operation, *, most: int | None = None) -> InterruptedOperation:
    """Plays an operation.

    Args:
        operation: Which one.
        most: So many of its requests, the last ones, which change something; all by default.
    """
    found, expected = requests_of(operation)
    one = InterruptedOperation()
    for method, path, skip in found[-most:] if most else found:
        if wrong := _once(operation, Failure(method, path, 0, skip=skip, hold=threading.Event()), expected, one):
            one.wrong.append(f"{operation.name}, {method} {path.strip('^$').rsplit('/workspaces/w', 1)[-1]}: {wrong}")
    return one


def _once(operation: Operation, held: Failure, expected: Any, measured: InterruptedOperation) -> str:
    """The faults of an interruption in one request; empty when there are none."""
    assert held.hold is not None
    with bench() as one:
        resource = prepared(one, operation)
        one.arm.failures.append(held)
        refused: list[Refused] = []

        def act() -> None:
            try:
                operation.act(resource, one)
            except Refused as error:
                refused.append(error)

        thread = threading.Thread(target=act)
        thread.start()
        try:
            while not one.arm.held.wait(0.01):
                if not thread.is_alive():
                    return "the request never came"
            since = time.monotonic()
            one.wire.call("Cancel", empty_pb2.Empty())
            thread.join(LIMIT)
            measured.seconds.append(time.monotonic() - since)
            if thread.is_alive():
                return "it waits for the request in flight"
        finally:
            held.hold.set()
            thread.join()
        if not refused:
            return "it went on as if nothing had happened"
        if refused[0].code.name not in ENDED and refused[0].partial is None:
            return f"the engine is answered {refused[0].code.name}: {refused[0]}"
        one.arm.failures.clear()
        one.wire.restart()
        try:
            operation.act(resource, one)
        except Refused as error:
            return f"a plain re-run fails: {error}"
        if one.seen() != expected:
            return f"another end than without an interruption ({refused[0]})"
        if len(set(one.arm.created)) != len(one.arm.created):
            return f"made twice: {one.arm.created}"
    return ""
