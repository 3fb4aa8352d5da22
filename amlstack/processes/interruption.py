"""Ctrl-C for a program that this process runs and follows: passed on once, and this process stays until it has ended.

A terminal sends Ctrl-C to every process of its foreground group. A program that gets it from there and from us counts
two, and many take the second as "end at once, whatever is under way". So the program runs in a group of its own, and
what it is asked comes from here alone.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from types import FrameType

ASKED_BY: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the end of a CI job, a terminal that is closed."""
_PATIENCE: Final = 2
"""So many are passed on as they are; one more kills the program."""


class Interruption:
    """Whether this process was asked to end while it followed a program.

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
        """Whether the program would take the first request as a request, and not die of it."""
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
