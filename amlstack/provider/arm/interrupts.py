"""Waits and calls that end at once when the engine wants running operations to end (Ctrl-C)."""

from __future__ import annotations

import contextvars
import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")

_LOOK: Final = 0.2
"""Seconds between two looks at whether the engine wants to end."""


class InterruptedWaitError(Exception):
    """The engine asked for running operations to end while one was being waited for.

    Args:
        request: What was being asked, e.g. ``PUT jobs/a``; empty when nothing was.
        uncertain: Whether that request may have taken effect: it was sent and its answer has not been seen.
    """

    def __init__(self, request: str = "", *, uncertain: bool = False) -> None:
        self.request = request
        self.uncertain = uncertain
        super().__init__(f"interrupted at {request}" if request else "interrupted")


def pause(seconds: float, cancelled: threading.Event | None) -> None:
    """Waits, but no longer than until ``cancelled`` is set.

    Raises:
        InterruptedWaitError: It was set.
    """
    if cancelled is None:
        time.sleep(seconds)
    elif cancelled.wait(seconds):
        raise InterruptedWaitError


def attended(work: Callable[[], _Result], cancelled: threading.Event | None) -> _Result:
    """Does blocking work that may be left behind: a connection, a token, a slow answer cannot be interrupted.

    The work goes on in a daemon thread after an interruption; it must be one exchange, never a loop of them.

    Raises:
        InterruptedWaitError: ``cancelled`` was set before the work had ended.
    """
    if cancelled is None:
        return work()
    if cancelled.is_set():
        raise InterruptedWaitError
    results: list[_Result] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    while not done.wait(_LOOK):
        if cancelled.is_set():
            raise InterruptedWaitError
    if errors:
        raise errors[0]
    return results[0]
