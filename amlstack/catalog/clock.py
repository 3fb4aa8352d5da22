"""The day on which the catalogue is asked. Read at the edges only (pack, program, command line); rules are given it."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime

VARIABLE = "AMLSTACK_TODAY"


class ClockError(ValueError):
    """``AMLSTACK_TODAY`` is no day; the message is for the user."""


def today() -> date:
    """The day in ``AMLSTACK_TODAY`` (an ISO date) when that is set, else today in UTC.

    Raises:
        ClockError: The variable holds something that is no ISO date.
    """
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        return datetime.now(tz=UTC).date()
    try:
        return date.fromisoformat(chosen)
    except ValueError as error:
        message = f"{VARIABLE} is {chosen!r}. It must be an ISO date. Write it like 2026-08-01, or unset it."
        raise ClockError(message) from error
