"""How far each rank came: the counters that training loops print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.diagnose.reading.writers.prefixes import strip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amlstack.diagnose.reading.writers.prefixes import Line

TAIL = 64 * 1024
"""Bytes before a log's end in which the last counter of each rank is looked for."""
MOST_LINES = 300
LONGEST = 500

_STEP = re.compile(
    r"(?<![\w.])['\"]?(?P<what>global[_ ]?step|step|iteration|iter|batch|epoch)s?\b['\"]?\s{0,3}"
    r"[:=#]?\s{0,3}\[?['\"]?\s{0,4}(?P<at>\d{1,12}(?:\.\d{1,12})?)",
    re.IGNORECASE,
)
_WORTH = re.compile(rb"(?:step|iter|iteration|epoch|batch)\D{0,10}\d", re.IGNORECASE)
_FORWARD = re.compile(
    rb"(?<![A-Za-z.])(?:(?:global[_ ]?)?step|iter(?:ation)?|epoch|batch)s?[\"']?\s{0,3}[:=#\[(]?\s{0,4}"
    rb"(?!\d+/\d+ : [A-Z]{3})\d+"  # but no step of an image's build
    rb"|\d%\|.{0,400}\d/\d",
    re.IGNORECASE,
)
# Which of several counters on a line: the finest that rises over the whole run.
_FINENESS = ("globalstep", "step", "iteration", "iter", "epoch", "batch")


class LogTail:
    """Passes chunks on and keeps the end of what passed."""

    def __init__(self) -> None:
        self.kept = b""

    def keep(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks."""
        for chunk in chunks:
            self.kept = chunk[-TAIL:] if len(chunk) >= TAIL else (self.kept + chunk)[-TAIL:]
            yield chunk


def counter(text: str) -> tuple[str, float] | None:
    """The finest counter on a line, ``("step", 12.0)``; None when there is none."""
    found = {each["what"].lower().replace("_", "").replace(" ", ""): float(each["at"]) for each in _STEP.finditer(text)}
    for axis in _FINENESS:
        if axis in found:
            return ("step" if axis == "globalstep" else axis), found[axis]
    return None


def progress(tail: bytes, lines: int, of: Callable[[str], Line] = strip) -> dict[int | None, tuple[int, ...]]:
    """Lines at the end of a log on which each rank came forward: counters and progress bars; None for nameless ones.

    Args:
        tail: The log's last bytes.
        lines: How many lines the log has.
        of: Tells who wrote a line.
    """
    found: dict[int | None, list[int]] = {}
    rows = tail.removesuffix(b"\n").split(b"\n")
    for number, raw in enumerate(rows, start=lines - len(rows) + 1):
        if _FORWARD.search(raw):
            found.setdefault(of(raw[:LONGEST].decode(errors="replace")).rank, []).append(number)
    return {rank: tuple(numbers[-MOST_LINES:]) for rank, numbers in found.items()}


def last(tail: bytes, of: Callable[[str], Line] = strip) -> dict[int | None, tuple[str, float]]:
    """The last counter of each rank that the end of a log names; None stands for lines that name none."""
    found: dict[int | None, tuple[str, float]] = {}
    worth = [raw for raw in tail.splitlines() if _WORTH.search(raw)]
    for raw in worth[-MOST_LINES:]:
        line = of(raw[:LONGEST].decode(errors="replace"))
        if (reached := counter(line.text)) is not None:
            found[line.rank] = reached
    return found
