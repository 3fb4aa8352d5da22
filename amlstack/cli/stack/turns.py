"""One deployment of a stack at a time on this machine: the second one says who is at work, and changes nothing.

The engine locks a stack as well, and its lock holds for other machines too. But it looks for other locks, writes its
own and looks again: of two that begin together both may give up. And a preview takes no lock at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amlstack.engine import Outcome

BUSY: Final = 3
"""Exit status of a command that another one keeps from its stack: nothing was changed, and it may be run again."""

_LOCKED: Final = re.compile(
    r"stack is currently locked by|another update is currently in progress|\[409\] conflict", re.IGNORECASE
)
_HOLDER: Final = re.compile(r"created by (?P<who>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")


class BusyError(Exception):
    """Another command works on the stack; the message is for the user."""


@contextlib.contextmanager
def alone(file: Path, stack: str, verb: str) -> Iterator[None]:
    """Takes the turn of a stack until the end of the context, or of this process however it ends.

    Args:
        file: Where the turn is taken; its folder is made.
        stack: The stack's name, for the message.
        verb: What this process does, e.g. ``amlstack up``.

    Raises:
        BusyError: Another process has the turn.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+", encoding="utf-8") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(_ours(_content(file), stack)) from None
        turn.truncate(0)
        turn.write(json.dumps({"pid": os.getpid(), "verb": verb, "since": time.strftime("%H:%M:%S")}))
        turn.flush()
        yield


def engine_is_locked(outcome: Outcome, stack: str) -> str:
    """The message where the engine found the stack locked, by a plain `pulumi` or on another machine; else empty."""
    words = "\n".join((*(text for _, _, text in outcome.diagnostics), outcome.output))
    if not outcome.code or not _LOCKED.search(words):
        return ""
    found = _HOLDER.search(words)
    who = f" ({found['who']}, process {found['pid']}, since {found['since']})" if found else ""
    return (
        f"another `pulumi` command works on the stack `{stack}`{who}; nothing was changed here. Run this again when it "
        "has ended; `pulumi cancel` removes the lock of one that was killed"
    )


def _ours(holder: dict[str, Any], stack: str) -> str:
    verb = holder.get("verb", "amlstack")
    known = "pid" in holder
    who = f" (process {holder['pid']}, since {holder['since']})" if known else ""
    return (
        f"another `{verb}` works on the stack `{stack}`{who}; nothing was changed here. "
        "Run this again when it has ended"
    )


def _content(file: Path) -> dict[str, Any]:
    """Who has the turn; empty while that is being written."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
