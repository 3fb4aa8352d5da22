"""Lines that a terminal broke at its width, whole again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.diagnose.reading.writers import Line, plain, strip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


NARROWEST = 60
LOOKED_AT = 1 << 16
"""Bytes of a log's begin that show whether its lines were broken."""
TERMINALS = frozenset({80, 100, 120, 132, 160, 180, 200, 240})
"""Widths that terminals often have: there one broken line is enough to know."""
NEARLY = 15
"""Characters by which lines of a paragraph differ."""
_START = 6
"""Characters of a line's begin that tell a form of line from others."""
_PREFIXED = 4
"""Rows of which one alone lacks the prefix that all others have."""
_FRESH = re.compile(
    r"$|[│╭╰╮╯|+]|[=\-*_#~─━]{5}|Traceback|\s*File \"|\[?20\d\d[-/]|\[?\d\d:\d\d:\d\d|[\w.]+(?:Error|Exception)\b"
    r"|(?:INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL|FATAL)\b"
)
"""The begin of a line that goes on with no other."""
_CLOSED = re.compile(r"[│╮╯|+]\s*$|[=\-*_#~─━]{5}\s*$")
"""The end of a row of a table, or of a rule: it has the terminal's width, and nothing was broken."""
_DIGITS = re.compile(r"\d+")
_UNDERLINED = re.compile(rb"\n(\+ [ ~]*~)\r?\n~+\r?\n")
"""PowerShell's mark below a command, broken as is all that it shows of a program's stderr, often at spaces."""


@dataclass(frozen=True, slots=True)
class Wraps:
    """The width of a log's terminal.

    Attributes:
        width: Characters; 0 where no line was broken.
        starts: Begins of the log's whole lines.
        words: Rows may also end before a word that does not fit, with the space before it.
        line_of: Takes the prefixes off a line.
    """

    width: int
    starts: frozenset[str] = frozenset()
    line_of: Callable[[str], Line] = strip
    words: bool = False

    def rejoined(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Blocks of whole lines with what was broken in one line; empty lines follow it, so that numbers stay."""
        for block in blocks:
            rows = block.split(b"\n")
            found: list[bytes] = []
            at = 0
            while at < len(rows):
                whole, line, first = rows[at], self.line_of(_text(rows[at])), at
                while at + 1 < len(rows) and self.broken(rows[at], line, after := self.line_of(_text(rows[at + 1]))):
                    whole = (_text(whole) + after.text).encode()
                    at += 1
                found += [whole, *[b""] * (at - first)]
                at += 1
            yield b"\n".join(found)

    def broken(self, row: bytes, line: Line, after: Line) -> bool:
        """True where a row goes on in the one after it."""
        if self.words and (shown := _text(row)).endswith(" ") and after.text:
            word = after.text.partition(" ")  # a word has room with the space behind it
            return len(shown) <= self.width < len(shown) + len(word[0] + word[1])
        return (
            _width(row) == self.width
            and (after.rank, after.node) in ((None, None), (line.rank, line.node))
            and not _CLOSED.search(line.text)
            and not _FRESH.match(after.text)
            and _start(after) not in self.starts
        )


def wraps(begin: bytes, line_of: Callable[[str], Line] = strip) -> Wraps:
    """The width at which a terminal broke a log's lines, if it did.

    It is that of the longest lines, and no line that begins as other lines do follows on one of them.
    """
    if underlined := _UNDERLINED.search(begin):
        return Wraps(len(underlined[1]), line_of=Line, words=True)
    rows = begin[:LOOKED_AT].split(b"\n")
    width = max((_width(row) for row in rows if b"\r" not in row.rstrip(b"\r")), default=0)
    if width < NARROWEST:
        return Wraps(0)
    full = [at for at, row in enumerate(rows[:-1]) if _width(row) == width]
    if len(full) * 8 > len(rows) * 7:  # all lines have one length, none was broken
        return Wraps(0)
    lines = [line_of(_text(row)) for row in rows]
    after = {at + 1 for at in full}
    starts = {_start(line) for at, line in enumerate(lines) if at not in after and line.text}
    found = Wraps(width, frozenset(starts), line_of)
    full = [at for at in full if not _CLOSED.search(lines[at].text)]
    fits = [at for at in full if found.broken(rows[at], lines[at], lines[at + 1])]
    if len(fits) == 1:  # a paragraph has lines that are nearly as long as its longest one
        row, rest = lines[fits[0]].text, lines[fits[0] + 1].text
        begins = [each[:_START] for at, each in enumerate(rows) if each and at not in after]
        same = len(begins) > len(full) * _PREFIXED and len(set(begins)) == 1
        alone = same and rows[fits[0] + 1][:_START] not in begins  # the only row without the log's prefix
        near = any(width - NEARLY <= _width(each) < width for at, each in enumerate(rows) if at not in after)
        fits *= alone or (not near and bool(TERMINALS & {width, len(row)}) and not rest[:1].isupper())
    return found if fits and len(fits) * 4 >= len(full) * 3 else Wraps(0)


def _text(row: bytes) -> str:
    return plain(row.decode(errors="replace")).rstrip("\r")


def _width(row: bytes) -> int:
    return len(_text(row))


def _start(line: Line) -> str:
    return _DIGITS.sub("0", line.text[:_START])
