"""What a program itself logged as an error last: the only sign of a failure that no signature knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.diagnose.reading.tracebacks import LIVED
from amlstack.diagnose.reading.writers.prefixes import soft
from amlstack.diagnose.signatures import EventRole, match

if TYPE_CHECKING:
    from collections.abc import Callable

    from amlstack.diagnose.reading.writers.prefixes import Line

LAST = 12
"""Lines before a log's end in which a program says why it gives up."""
LONGEST = 500
_LEVEL = re.compile(
    r"^(?:[\w.:/,\[\]() |-]{0,80}?[\[ (|-])?(?:ERROR|CRITICAL|FATAL|Fatal)\b[\])]?(?: *[|:-]|\s+\S)"  # a logger's level
    r"|^(?:[\w./-]{1,80}: )?(?:fatal(?: error)?|[Ee]rror|ERROR)(?:\[\w+\])?: +\S"  # a program's own last words
    r"|^[\w./-]{1,80}: Error response from daemon: "
    r"|: (?:line \d+: )?syntax error\b|: [Ee]xec format error\b|: cannot execute\b|^In '[^']+': Could not find '"
)
_SUCCEEDED = re.compile(
    r"\b(?:training|run|job|evaluation|experiment)\b.{0,20}\b(?:finished|completed?|done|succeeded)\b"
    r"|\b(?:finished|completed) (?:training|successfully)\b|\bsuccessfully (?:finished|completed|saved)\b|\ball done\b"
    r"|\bexit(?:ed)?(?: with)?(?: code| status)?:? 0\b",
    re.IGNORECASE,
)
_WORTH = re.compile(rb"(?:finish|complet|succe|done|exit)", re.IGNORECASE)
_MEASURED = re.compile(r"^[\w ]{0,30}[:=] *[-+]?[\d.]+(?:e[-+]?\d+)? *%?$", re.IGNORECASE)
"""A metric whose name is "error"."""
_FAILED = re.compile(r"\b(?:not|un|fail\w*|error\w*|abort\w*)\b", re.IGNORECASE)


def last(tail: bytes, lines: int, of: Callable[[str], Line]) -> tuple[int, Line] | None:
    """The first of the errors that stand among a log's last lines; None where there is none, or the run succeeded.

    Args:
        tail: The log's last bytes.
        lines: How many lines the log has.
        of: Tells who wrote a line.
    """
    whole = tail.rstrip()
    rows = whole.split(b"\n")
    end = lines - (tail.count(b"\n") - whole.count(b"\n")) + tail.endswith(b"\n")  # the last line that is not blank
    shown = [of(raw[:LONGEST].decode(errors="replace").rstrip("\r")) for raw in rows[-LAST:]]
    if any(succeeded(line.text) for line in shown):
        return None
    first = end - len(shown) + 1
    for number, line in enumerate(shown, start=first):
        if logged_as_error(line.text):
            return max(1, number), line
    return None


def _harmless(text: str) -> bool:
    """Whether a line is a metric, says that the program goes on, or is one that healthy runs are known to write."""
    found = match(text)
    return (
        _MEASURED.search(text) is not None
        or LIVED.search(text) is not None
        or (found is not None and found[0].role is EventRole.NOISE)
    )


def finished(tail: bytes, lines: int, of: Callable[[str], Line]) -> dict[int | None, int]:
    """The last line on which each writer says that its run came to its end as it should; None for nameless ones."""
    found: dict[int | None, int] = {}
    rows = tail.removesuffix(b"\n").split(b"\n")
    for number, raw in enumerate(rows, start=lines - len(rows) + 1):
        if _WORTH.search(raw) and succeeded((line := of(raw[:LONGEST].decode(errors="replace"))).text):
            found[line.rank] = number
    return found


def logged_as_error(text: str) -> bool:
    """Whether a program wrote a line as an error that it does not go on from."""
    return _LEVEL.search(text) is not None and not soft(text) and not _harmless(text)


def succeeded(text: str) -> bool:
    """Whether a line says that a run came to its end as it should."""
    return _SUCCEEDED.search(text) is not None and _FAILED.search(text) is None
