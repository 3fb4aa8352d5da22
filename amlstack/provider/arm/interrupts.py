"""Waits and calls that end at once when the engine wants running operations to end (Ctrl-C)."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

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
    task: _Task[_Result] = _Task(work)
    try:
        worker = _IDLE.pop()
    except IndexError:
        worker = _Worker()
    worker.tasks.put(task)
    while not task.done.acquire(timeout=_LOOK):
        if cancelled.is_set():
            raise InterruptedWaitError
    if task.error is not None:
        raise task.error
    return task.results[0]


class _Task(Generic[_Result]):
    """Work in the context of the thread that waits for it."""

    def __init__(self, work: Callable[[], _Result]) -> None:
        self._work = work
        self._context = contextvars.copy_context()
        self.results: list[_Result] = []
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        """Does the work and keeps its result or its error for the waiting thread."""
        try:
            self.results.append(self._context.run(self._work))
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            self.error = error


class _Worker:
    """A daemon thread that does one task after the other: a new thread for each request cost a third of its CPU."""

    def __init__(self) -> None:
        self.tasks: queue.SimpleQueue[_Task[Any]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            task = self.tasks.get()
            task.run()
            # Idle again before the waiting thread goes on, so that its next request finds this worker.
            _IDLE.append(self)
            task.done.release()
            del task  # an idle thread keeps no answer alive


_IDLE: Final[list[_Worker]] = []
"""Workers without a task; as many as requests were ever under way at once."""
