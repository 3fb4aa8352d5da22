"""The end of each log, and the lines around its first error, however large the log is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.redaction import scrub
from amlstack.report.content import Excerpt, LogPart

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TAIL = 64 * 1024
"""Bytes of one log that are shown, unless there are many logs."""
ALL = 3 * 1024 * 1024
LEAST = 4 * 1024
AROUND = 12
"""Lines before and after an error that lies before the tail."""
LONGEST = 2000
CHUNK = 1 << 20

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def budget(logs: int) -> int:
    """Bytes of each of so many logs."""
    return max(LEAST, min(TAIL, ALL // max(1, logs)))


def excerpt(
    path: Path, name: str, *, rank: int | None, node: str | None, marks: Mapping[int, str], size: int = TAIL
) -> Excerpt:
    """Reads what is shown of one log.

    Args:
        path: The file.
        name: As it is shown.
        rank: Whose it is.
        node: Where that ran.
        marks: Lines to show whatever their place: number → ``cause`` or ``victim``.
        size: Bytes of the tail.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        total = file.seek(0, 2)
        begin = max(0, total - size)
        file.seek(0)
        skipped = 0
        left = begin
        while left > 0 and (chunk := file.read(min(CHUNK, left))):
            skipped += chunk.count(b"\n")
            left -= len(chunk)
        rest = file.read(total - begin)
        if begin:  # from a whole line on, unless it is one endless line
            _, ended, whole = rest.partition(b"\n")
            if ended:
                rest, skipped = whole, skipped + 1
        tail = LogPart(skipped + 1, tuple(_lines(rest)))
        before = sorted(number for number in marks if number < tail.first)[:1]
        parts = (*_around(path, before[0], tail.first), tail) if before else (tail,)
    return Excerpt(name, rank, node, total, tail.after - 1, parts, dict(marks))


def plain(raw: bytes) -> str:
    """A line as a reader sees it: what a progress bar wrote last, no colours, no control characters, no secrets."""
    pieces = [piece for piece in raw.split(b"\r") if piece.strip()]
    text = _COLOUR.sub("", (pieces[-1] if pieces else b"")[: LONGEST * 4].decode(errors="replace"))
    text = scrub(_CONTROL.sub("\ufffd", text))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(raw)} bytes)"


def _lines(rest: bytes) -> list[str]:
    raws = rest.split(b"\n")
    if raws and not raws[-1]:
        raws.pop()
    return [plain(raw) for raw in raws]


def _around(path: Path, number: int, until: int) -> tuple[LogPart, ...]:
    """The lines around an early error, which the tail does not reach."""
    first, last = max(1, number - AROUND), min(until - 1, number + AROUND)
    found = []
    at, fresh = 1, True
    with path.open("rb") as file:
        while at <= last and (raw := file.readline(1 << 16)):  # of an endless line its beginning
            if fresh and at >= first:
                found.append(plain(raw.rstrip(b"\n")))
            fresh = raw.endswith(b"\n")
            at += fresh
    return (LogPart(first, tuple(found)),) if found else ()
