"""Ctrl-C while registrations are under way: the program ends at once.

The engine's Python host runs registrations in threads and, whatever ended the program, waits for all of them. After a
Ctrl-C the engine answers none of them any more, and kills the host after five seconds of that. What was in flight is
the engine's to record, and nothing here has anything left to do.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERRUPTED = 130


def leave_at_once() -> None:
    """Have this process end without a wait where the engine, or a signal, has ended the program.

    To be called while the program runs. Where the SDK has another way of running it, nothing changes.
    """
    executor = getattr(asyncio.get_running_loop(), "_default_executor", None)
    if executor is not None:
        executor.shutdown = _leaving(executor.shutdown)


def _leaving(shutdown: Callable[..., Any]) -> Callable[..., Any]:
    def left(*args: Any, **kwargs: Any) -> Any:
        # A signal is a KeyboardInterrupt; an engine that is ending, a SystemExit of the SDK. An error that the program
        # has shown was handled by now: what is under way then goes on, and is waited for.
        ended = sys.exc_info()[1]
        if isinstance(ended, KeyboardInterrupt | SystemExit):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_INTERRUPTED)
        return shutdown(*args, **kwargs)

    return left
