"""Runs a verb in a process of its own, so that nothing that it loads can end it without a word."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_DONE = b"done "


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a verb's process.

    Attributes:
        code: The exit status that the verb asked for; None when it never came to that.
        how: ``signal 9``, or ``exit status 0``: how the process ended.
        last: What it last announced.
    """

    code: int | None
    how: str
    last: str


def possible() -> bool:
    """True where output of another process reaches the same place as this one's: not so in a test that gathers it."""
    try:
        return hasattr(os, "fork") and sys.stdout.fileno() == 1
    except (OSError, ValueError, AttributeError):
        return False


def run(verb: Callable[[Callable[[str], None]], int]) -> Ended:
    """Run a verb in a child of this process, without standard input.

    Args:
        verb: Gets a function by which it announces what it does; returns the exit status. What it raises ends the child
            as it would have ended this process.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _as_child(verb, writing)
    os.close(writing)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child gets it, too, and prints what there is to print
    try:
        with os.fdopen(reading, "rb") as stream:
            lines = stream.read().split(b"\0")[:-1]
        _, status = os.waitpid(child, 0)
    finally:
        signal.signal(signal.SIGINT, before)
    code = os.waitstatus_to_exitcode(status)
    how = f"signal {-code}" if code < 0 else f"exit status {code}"
    if lines and lines[-1].startswith(_DONE):
        return Ended(int(lines[-1].removeprefix(_DONE)), how, "")
    return Ended(None, how, lines[-1].decode(errors="replace") if lines else "")


def _as_child(verb: Callable[[Callable[[str], None]], int], writing: int) -> None:
    """Never returns."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    code = 1
    try:
        code = verb(lambda doing: _send(writing, doing.encode()))
    except KeyboardInterrupt:
        code = 130
    except BaseException as error:  # noqa: BLE001 - shown as it would be without a child
        asked = getattr(error, "exit_code", None)  # of typer, for a wrong option, or an end that is none
        if isinstance(asked, int):
            getattr(error, "show", lambda: None)()
            code = asked
        else:
            sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    _send(writing, _DONE + str(code).encode())
    # Whatever was registered for the end of the process does not run: it may be the file's.
    os._exit(code)


def _send(writing: int, text: bytes) -> None:
    os.write(writing, text.replace(b"\0", b"") + b"\0")
