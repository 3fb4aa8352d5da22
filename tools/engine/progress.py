"""Progress on stderr: one rewritten line on a terminal, a line now and then in a log."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import Self, TextIO

TERMINAL_INTERVAL = 0.2
LOG_INTERVAL = 15.0


def say(text: str) -> None:
    """One whole line on stderr; stdout carries the answer alone."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """``75.2`` as ``1 min 15 s``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class StepProgress:
    """The state of one long step, shown with its time while the context lasts, also while nothing changes."""

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = title
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._started = time.monotonic()
        self._state = "starting"
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        self._write(f"· {self._title}")
        self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        self._ticker.join()
        ending = "done" if kind is None else "given up"
        self._write(f"· {self._title}: {ending} after {self._elapsed()}", last=True)

    def update(self, state: str) -> None:
        """What to show from the next tick on; may be called as often as one likes."""
        self._state = state

    def _elapsed(self) -> str:
        return duration(time.monotonic() - self._started)

    def _tick(self) -> None:
        # A compiler or a linker may say nothing for half a minute; the clock shows that it lives.
        while not self._over.wait(TERMINAL_INTERVAL if self._live else LOG_INTERVAL):
            self._write(f"· {self._title}: {self._state}, {self._elapsed()}")

    def _write(self, line: str, *, last: bool = False) -> None:
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{line[:width]}" + ("\n" if last else ""))
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
