"""The words that the other modules share: what an engine is, which one is pinned, how a refusal looks."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TextIO

VERSION = "3.259.0"
"""The pinned engine: the newest whose Go module and whose release both exist; every test runs on it."""

OLDEST = (3, 230, 0)
"""An engine on PATH must be at least this. The locked Python SDK asks the engine for features that came late (resource
hooks, replacement triggers); one that lacks them fails in the middle of a deployment instead of at its start."""

SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
COMMANDS = ("pulumi", "pulumi-language-python", "pulumi-language-python-exec")
"""The files of one folder: the CLI, the Python language host, and the script by which the host starts a program."""

MANIFEST = "engine.json"
"""The file in a cached engine's folder that tells where it came from; written last, so its presence means complete."""

Source = Literal["path", "release", "build"]
SOURCES: tuple[Source, ...] = ("path", "release", "build")


class NoEngineError(Exception):
    """No engine from this source and no sense in trying the next one; the text is the whole message."""


class Unavailable(Exception):  # noqa: N818 - a state of the world, not a mistake
    """This source has no engine to offer here; the text says why and the next source is tried."""


@dataclass(frozen=True)
class FoundEngine:
    """One usable engine.

    Attributes:
        version: Without a leading ``v``.
        source: Where it came from.
        folders: To prepend to PATH, in this order.
    """

    version: str
    source: Source
    folders: tuple[Path, ...]


def cache() -> Path:
    """The user's cache folder, by the rule of ``amlstack.base.paths``, which needs ``.venv`` to be imported."""
    if chosen := os.environ.get("AMLSTACK_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(base) / "amlstack").absolute()


def target() -> tuple[str, str]:
    """Operating system and processor in the words of the release files: ``("linux", "x64")``."""
    machine = platform.machine().lower()
    return platform.system().lower(), {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)


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
        """Sets the text that is shown from the next tick on; may be called as often as one likes."""
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
