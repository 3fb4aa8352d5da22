"""Streams of bytes as lines, without ever holding more than a block; only lines worth a look are cut out."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from amlstack.diagnose.signatures import STEMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BLOCK = 1 << 20
LONGEST = 2000
"""What is looked at of one line; training output has lines of megabytes."""
_STEMS = tuple(stem.encode() for stem in STEMS)
_BEFORE = 2048


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of about a mebibyte that end where a line ends, unless one line is longer than that."""
    left: list[bytes] = []
    size = 0
    for chunk in chunks:
        for start in range(0, len(chunk), BLOCK):
            part = chunk[start : start + BLOCK]
            left.append(part)
            size += len(part)
            if size < BLOCK:
                continue
            block = b"".join(left)
            cut = block.rfind(b"\n") + 1 or len(block)
            yield block[:cut]
            left, size = [block[cut:]], len(block) - cut
    if rest := b"".join(left):
        yield rest


def as_utf8(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """The same text in UTF-8, chunk by chunk."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def worth_a_look(block: bytes) -> list[int]:
    """Where the lines begin that hold one of the table's stems, in order."""
    lower = block.lower()
    starts: set[int] = set()
    for stem in _STEMS:
        at = lower.find(stem)
        while at >= 0:
            starts.add(_begin(block, at))
            end = _end(block, at)
            at = lower.find(stem, end)
    return sorted(starts)


def lines(blocks: Iterable[bytes], attentive: Callable[[], bool]) -> Iterator[tuple[int, str, Callable[[], str]]]:
    """Lines worth a look; all lines while the reader is attentive.

    Args:
        blocks: What `whole_lines` gives.
        attentive: Asked after every line: whether the next one is wanted whatever it holds.

    Yields:
        The 1-based number of the line, its text, and a function that gives the text before it. After the last line
        comes ``(number of lines, "", …)``.
    """
    number = 1
    ended = True
    for block in blocks:
        position = counted = 0
        starts = iter(worth_a_look(block))
        following = next(starts, None)
        while True:
            if not (attentive() and position < len(block)):
                while following is not None and following < position:
                    following = next(starts, None)
                if following is None:
                    break
                position = following
            number += block.count(b"\n", counted, position)
            counted = position
            end = _end(block, position)
            yield number, _text(block[position:end]), _before(block, position)
            position = end + 1
        number += block.count(b"\n", counted)
        ended = block.endswith(b"\n")
    yield number - 1 if ended else number, "", str


def _before(block: bytes, position: int) -> Callable[[], str]:
    return lambda: block[max(0, position - _BEFORE) : position].decode(errors="replace")


def _text(line: bytes) -> str:
    if len(line) > LONGEST:
        found = re.search(rb"(?i)error|exception|fail|signal|killed|nccl", line)
        begin = max(0, (found.start() if found else 0) - LONGEST // 4)
        line = line[begin : begin + LONGEST]
    return line.decode(errors="replace").rstrip("\r\n")


def _begin(block: bytes, at: int) -> int:
    """Progress bars return to the margin instead of ending their line: that too begins a line."""
    return max(block.rfind(b"\n", 0, at), block.rfind(b"\r", 0, at)) + 1


def _end(block: bytes, at: int) -> int:
    feed = block.find(b"\n", at)
    feed = len(block) if feed < 0 else feed
    back = block.find(b"\r", at, feed)
    return feed if back < 0 else back
