"""One deployment of a stack at a time on this machine: the second one says who is at work, and changes nothing.

The engine locks a stack as well, and its lock holds for other machines too. But it looks for other locks, writes its
own and looks again: of two that begin together both may give up, so that here such a one begins again after a pause of
random length. And a preview takes no lock at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amlstack.engine import Outcome

BUSY: Final = 3
"""Exit status of a command that another one keeps from its stack: nothing was changed, and it may be run again."""

_LOCKED: Final = re.compile(
    r"stack is currently locked by|another update is currently in progress|\[409\] conflict", re.IGNORECASE
)
_HOLDER: Final = re.compile(r"created by (?P<who>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")
_ATTEMPTS: Final = 4
_PAUSE: Final = (0.5, 3.0)
"""Seconds, at random between the two: longer than the engine takes from its first look for locks to its second."""


class BusyError(Exception):
    """Another command works on the stack; the message is for the user."""


@contextlib.contextmanager
def hold(file: Path, stack: str, verb: str) -> Iterator[None]:
    """Locks a stack until the end of the context, or of this process however it ends.

    Args:
        file: The file that is locked; its folder is made.
        stack: The stack's name, for the message.
        verb: What this process does, e.g. ``amlstack up``.

    Raises:
        BusyError: Another process has locked it.
    """
    with contextlib.ExitStack() as opened:
        turn = opened.enter_context(_open(file))
        while not _is_taken(turn, file, stack):
            turn = opened.enter_context(_open(file))
        turn.truncate(0)
        turn.write(json.dumps({"pid": os.getpid(), "verb": verb, "since": time.strftime("%H:%M:%S")}))
        turn.flush()
        yield


def run_when_free(
    command: Callable[[], Outcome],
    stack: str,
    note: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Runs a command of the engine, again where another one took the stack's lock after this one had begun.

    Of two such commands both may have given up. The one that wins keeps its lock, which is older than the next attempt.

    Args:
        command: Runs the engine once.
        stack: The stack's name, for the message.
        note: Prints one line.
        pause: Waits so many seconds.

    Raises:
        BusyError: The engine found the stack locked; nothing was changed.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        began = time.time()
        outcome = command()
        if not (busy := engine_is_locked(outcome, stack)):
            return outcome
        if attempt == _ATTEMPTS or not _since(outcome) >= int(began):
            raise BusyError(busy)
        seconds = random.uniform(*_PAUSE)  # noqa: S311 - no secret
        note(f"another command took the lock of `{stack}` in the same moment: trying again in {seconds:.1f} s")
        pause(seconds)
    raise AssertionError  # the last attempt has returned or raised


def engine_is_locked(outcome: Outcome, stack: str) -> str:
    """The message where the engine found the stack locked, by a plain `pulumi` or on another machine; else empty."""
    words = _words(outcome)
    if not outcome.code or not _LOCKED.search(words):
        return ""
    found = _HOLDER.search(words)
    who = f" ({found['who']}, process {found['pid']}, since {found['since']})" if found else ""
    return (
        f"another `pulumi` command works on the stack `{stack}`{who}; nothing was changed here. Run this again when it "
        "has ended; `pulumi cancel` removes the lock of one that was killed"
    )


def _open(file: Path) -> TextIO:
    """The file of a lock; its folder may go between the two steps, with a `down` that ends."""
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            return file.open("a+", encoding="utf-8")


def _is_taken(turn: TextIO, file: Path, stack: str) -> bool:
    """Locks the file; False where the file that was opened is not the one that others open, as a `down` removed it.

    Raises:
        BusyError: Another process has locked it.
    """
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BusyError(_ours(_content(file), stack)) from None
    try:
        return os.path.samestat(os.fstat(turn.fileno()), file.stat())
    except FileNotFoundError:
        return False


def _words(outcome: Outcome) -> str:
    return "\n".join((*(text for _, _, text in outcome.diagnostics), outcome.output))


def _since(outcome: Outcome) -> float:
    """The time of the lock that the engine found, in seconds of Unix time; 0 where it is not known."""
    found = _HOLDER.search(_words(outcome))
    try:
        moment = datetime.fromisoformat(found["since"]) if found else None
    except ValueError:
        moment = None
    if moment is None:
        return 0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _ours(holder: dict[str, Any], stack: str) -> str:
    verb = holder.get("verb", "amlstack")
    known = "pid" in holder
    who = f" (process {holder['pid']}, since {holder['since']})" if known else ""
    return (
        f"another `{verb}` works on the stack `{stack}`{who}; nothing was changed here. "
        "Run this again when it has ended"
    )


def _content(file: Path) -> dict[str, Any]:
    """The owner of the lock; empty while that is being written."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
